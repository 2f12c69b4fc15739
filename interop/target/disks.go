package target

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Disks are file systems that hang on demand: ext4 images on loop devices, which fsfreeze
// freezes. Every write and fsync then blocks without an error. Only root may mount and
// freeze them, so a shell script does it (diskScript), with sudo if needed. It reads
// commands from its standard input. At the end of that input it thaws and unmounts
// everything, even if this process was killed.
type Disks struct {
	// Dir contains a folder for each disk: 0, 1, 2 and so on.
	Dir string

	mu           sync.Mutex // held while a command is sent and answered
	ask, answers *os.File
	script       *exec.Cmd // nil if another process has started it
}

// diskScript takes the folder, the number of disks, their owner and their size. It answers
// each command with one line: ok, or what was wrong.
const diskScript = `
dir=$1 n=$2 owner=$3 size=$4
PATH=$PATH:/usr/sbin:/sbin
cleanup() {
	for i in $(seq 0 $((n - 1))); do
		fsfreeze -u "$dir/$i" 2>/dev/null
		umount "$dir/$i" 2>/dev/null || umount -l "$dir/$i" 2>/dev/null
	done
	rm -rf "$dir"
}
trap '' INT TERM HUP
for tool in fsfreeze mkfs.ext4 mount losetup; do
	command -v $tool >/dev/null || { echo "$tool is not installed: interop/install-tools.sh installs it"; cleanup; exit 1; }
done
for i in $(seq 0 $((n - 1))); do
	mkdir "$dir/$i" &&
	truncate -s "$size" "$dir/$i.img" &&
	mkfs.ext4 -q -E nodiscard,lazy_itable_init=1 "$dir/$i.img" &&
	mount -o loop "$dir/$i.img" "$dir/$i" &&
	chown "$owner" "$dir/$i" || { echo "cannot create and mount disk $i as root"; cleanup; exit 1; }
done 2>&1
echo ok
while read -r what i; do
	case $what in
	freeze) out=$(fsfreeze -f "$dir/$i" 2>&1) && echo ok || echo "fsfreeze -f: $out" ;;
	thaw) out=$(fsfreeze -u "$dir/$i" 2>&1) && echo ok || echo "fsfreeze -u: $out" ;;
	esac
done
cleanup
`

// StartDisks creates n disks of the given size, in the notation of truncate. End removes them.
func StartDisks(n int, size string) (*Disks, error) {
	dir, err := os.MkdirTemp("", "bellwether-disks-")
	if err != nil {
		return nil, err
	}
	asked, ask, err1 := os.Pipe()
	answers, answer, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	args := []string{"sh", "-c", diskScript, "disks", dir, strconv.Itoa(n), fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), size}
	if os.Getuid() != 0 {
		args = append([]string{"sudo", "-n"}, args...)
	}
	d := OpenDisks(dir, ask, answers)
	d.script = exec.Command(args[0], args[1:]...)
	d.script.Stdin, d.script.Stdout, d.script.Stderr = asked, answer, os.Stderr
	d.script.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt of this process must not end the script before its cleanup
	err = d.script.Start()
	asked.Close()
	answer.Close()
	if err != nil {
		return nil, err
	}
	if err := d.answered(); err != nil {
		d.End()
		return nil, fmt.Errorf("disks that hang need root or sudo, loop devices, e2fsprogs and util-linux: %w", err)
	}
	return d, nil
}

// OpenDisks returns the disks that another process has started and whose Files it has
// passed on.
func OpenDisks(dir string, ask, answers *os.File) *Disks {
	return &Disks{Dir: dir, ask: ask, answers: answers}
}

// Files returns the pipes to the script, for a process that calls OpenDisks.
func (d *Disks) Files() []*os.File { return []*os.File{d.ask, d.answers} }

// Path returns where a disk is mounted.
func (d *Disks) Path(disk int) string { return filepath.Join(d.Dir, strconv.Itoa(disk)) }

// Freeze makes a disk hang until Thaw.
func (d *Disks) Freeze(disk int) error { return d.say("freeze", disk) }

// Thaw ends Freeze. It is an error if the disk is not frozen.
func (d *Disks) Thaw(disk int) error { return d.say("thaw", disk) }

// End thaws all disks and removes them.
func (d *Disks) End() {
	d.ask.Close()
	_ = d.script.Wait() // the exit status of the script does not matter
	d.answers.Close()
}

func (d *Disks) say(what string, disk int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Fprintf(d.ask, "%s %d\n", what, disk); err != nil {
		return err
	}
	if err := d.answered(); err != nil {
		return fmt.Errorf("%s of disk %d: %w", what, disk, err)
	}
	return nil
}

// answered reads one answer. There is never more than one in the pipe.
func (d *Disks) answered() error {
	text, err := bufio.NewReaderSize(d.answers, 1<<10).ReadString('\n')
	if text = strings.TrimSpace(text); err == nil && text != "ok" {
		err = errors.New(text)
	}
	return err
}
