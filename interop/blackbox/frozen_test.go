package blackbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bellwether/interop/target"
)

// Disks that hang on demand are ext4 images behind loop devices, which fsfreeze
// freezes: every write and fsync then waits, without an error. Only root of the
// machine may mount and freeze them, so a shell script outside of the namespaces
// does so (diskScript). Its standard input is the way to ask it; at the end of that
// it thaws and unmounts everything, whatever has become of the tests.

// frozenDisks is how many there are; disksEnv names the folder in which they are
// mounted, with the numbers 0, 1, 2, or why there are none.
const (
	frozenDisks = 3
	disksEnv    = "BLACKBOX_DISKS"
)

// Descriptors of the process inside, behind the standard ones.
const (
	askFD    = 3
	answerFD = 4
)

// diskScript takes the folder and the number of disks. It answers each line with
// one: ok, or what was wrong.
const diskScript = `
dir=$1 n=$2 owner=$3
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
	truncate -s 1G "$dir/$i.img" &&
	mkfs.ext4 -q -E nodiscard,lazy_itable_init=1 "$dir/$i.img" &&
	mount -o loop "$dir/$i.img" "$dir/$i" &&
	chown "$owner" "$dir/$i" || { echo "disk $i cannot be made and mounted as root"; cleanup; exit 1; }
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

// startDisks mounts the disks, before the namespaces are made. The files are for
// the process inside, in the order of the descriptors above; where is what disksEnv
// tells it. end is called when that process has ended.
func startDisks() (files []*os.File, where string, end func()) {
	dir, err := os.MkdirTemp("", "blackbox-disks-")
	if err != nil {
		return nil, "!" + err.Error(), func() {}
	}
	asked, ask, err1 := os.Pipe()
	answers, answer, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		return nil, fmt.Sprint("!", err1, err2), func() {}
	}
	args := []string{"sh", "-c", diskScript, "disks", dir, strconv.Itoa(frozenDisks), fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}
	if os.Getuid() != 0 {
		args = append([]string{"sudo", "-n"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = asked, answer, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt of the tests does not end it before it has cleaned up
	err = cmd.Start()
	asked.Close()
	answer.Close()
	if err != nil {
		return nil, "!" + err.Error(), func() {}
	}
	end = func() {
		ask.Close()
		_ = cmd.Wait() // it has nothing more to say
	}
	if text, err := readAnswer(answers); err != nil || text != "ok" {
		end()
		return nil, fmt.Sprintf("!%s %v", text, err), func() {}
	}
	return []*os.File{ask, answers}, dir, end
}

// readAnswer reads a line and nothing behind it.
func readAnswer(from *os.File) (string, error) {
	text, err := bufio.NewReaderSize(from, 1<<10).ReadString('\n') // one answer is there at a time
	return strings.TrimSpace(text), err
}

// disks is the way to the script, for the process inside. One scene uses them at a
// time.
var disks struct {
	sync.Mutex
	ask, answers *os.File
}

// freezer lets disks hang, for one scene.
type freezer struct{ t testing.TB }

// onDisks puts the data directories of servers on the disks, that of servers[i] on
// disk i, and gives the scene the disks until its end. A machine that cannot have
// them fails the test and says why.
func onDisks(t testing.TB, servers ...int) (f *freezer, before func(*network, []target.Place)) {
	t.Helper()
	dir := os.Getenv(disksEnv)
	if why, none := strings.CutPrefix(dir, "!"); none || dir == "" {
		t.Fatalf("disks that hang need root or sudo, loop devices, e2fsprogs and util-linux: %s", why)
	}
	return &freezer{t}, func(w *network, places []target.Place) {
		disks.Lock()
		t.Cleanup(disks.Unlock)
		if disks.ask == nil {
			disks.ask, disks.answers = os.NewFile(askFD, "ask"), os.NewFile(answerFD, "answers")
		}
		for i, server := range servers {
			data, err := os.MkdirTemp(filepath.Join(dir, strconv.Itoa(i)), "server")
			w.must(err)
			t.Cleanup(func() { w.must(os.RemoveAll(data)) })
			places[server].Data = data
		}
	}
}

// freeze lets a disk hang until thaw is called, or the test ends: before its
// servers are killed, which do not end while they wait for it.
func (f *freezer) freeze(disk int) (thaw func()) {
	f.t.Helper()
	f.say("freeze", disk)
	thaw = sync.OnceFunc(func() { f.say("thaw", disk) })
	f.t.Cleanup(thaw)
	return thaw
}

func (f *freezer) say(what string, disk int) {
	f.t.Helper()
	if _, err := fmt.Fprintf(disks.ask, "%s %d\n", what, disk); err != nil {
		f.t.Fatal(err)
	}
	if text, err := readAnswer(disks.answers); err != nil || text != "ok" {
		f.t.Fatalf("%s of disk %d: %s %v", what, disk, text, err)
	}
}
