package guard

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// typist is a shell with job control at its own terminal, and a user who types there.
type typist struct {
	t      *testing.T
	dir    string
	shell  *exec.Cmd
	screen *os.File
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	p := &typist{t: t, dir: t.TempDir(), screen: screen, shell: exec.Command("/bin/sh", "-im")}
	p.shell.Stdin, p.shell.Stdout, p.shell.Stderr = keys, keys, keys
	p.shell.Dir = p.dir
	p.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.shell.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 1)
	go func() {
		var all []byte
		for b := make([]byte, 1024); ; {
			n, err := screen.Read(b)
			all = append(all, b[:n]...)
			if err != nil {
				shown <- string(all)
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.shell.Process.Kill()
		p.shell.Wait()
		for _, left := range inDir(t, p.dir) {
			syscall.Kill(left.pid, syscall.SIGKILL)
		}
		text := <-shown // arrives when no process has the terminal open
		screen.Close()
		if t.Failed() {
			t.Logf("the terminal shows %q", text)
		}
	})
	return p
}

func (p *typist) types(keys string) {
	p.t.Helper()
	if _, err := p.screen.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

const ctrlZ = "\x1a"

// runs returns a line for the shell that runs a script under a guardian, in its own
// directory.
func (p *typist) runs(name, script string) string {
	p.t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		p.t.Fatal(err)
	}
	dir := p.dir + "/" + name
	os.Mkdir(dir, 0o777)
	os.WriteFile(dir+"/deadline", []byte(waitMax.String()), 0o666)
	os.WriteFile(dir+"/script", []byte("cd "+dir+"; echo $$ > new; mv new pid\n"+script), 0o666)
	return fmt.Sprintf("sh -c 'echo $$ > %[1]s/parent; exec %[2]s %[3]s %[1]s /bin/sh %[1]s/script'", dir, self, parentArg)
}

// reads waits until a command has read a line.
func (p *typist) reads(file, line string) {
	p.t.Helper()
	p.types(line + "\n")
	waitFor(p.t, file+" to be read", func() bool { return readFile(p.dir+"/"+file) == line })
}

// stopped waits until the commands and their parents are stopped and the shell has the terminal.
func (p *typist) stopped(names ...string) {
	p.t.Helper()
	for _, name := range names {
		for _, file := range []string{"/pid", "/parent"} {
			waitFor(p.t, name+file+" to stop", func() bool { return stateOf(p.dir+"/"+name+file) == 'T' })
		}
	}
	p.waitForTerminal("the shell", strconv.Itoa(p.shell.Process.Pid))
}

// waitForTerminal waits until a process group has the terminal.
func (p *typist) waitForTerminal(who, group string) {
	p.t.Helper()
	waitFor(p.t, who+" to have the terminal", func() bool {
		now, err := unix.IoctlGetInt(int(p.screen.Fd()), unix.TIOCGPGRP)
		return err == nil && strconv.Itoa(now) == group
	})
}

func (p *typist) ends(name string) {
	p.t.Helper()
	waitFor(p.t, "the end of "+name, func() bool { return exists(p.dir + "/" + name + "/status") })
	if got := readFile(p.dir + "/" + name + "/status"); got != "0 false" {
		p.t.Errorf("%s ended with %s, want 0 false", name, got)
	}
}

// TestJobControl shows that the shell's keys and builtins work as they do without a
// guardian: control-Z, fg, bg, and the stop of a background job that reads.
func TestJobControl(t *testing.T) {
	p := newTypist(t)
	// The command starts no process while it may be stopped: a shell's child
	// that is stopped before it runs its program keeps the shell from stopping.
	line := p.runs("c", `read line; echo $line > one
read line < on; echo > background
read line; echo $line > two; read line < off
read line; echo $line > three`)
	for _, name := range []string{"on", "off"} {
		if err := unix.Mkfifo(p.dir+"/c/"+name, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p.types(line + "\n")
	hasTerminal := func() { p.waitForTerminal("the command", readFile(p.dir+"/c/pid")) }
	waitFor(t, "the command", func() bool { return exists(p.dir + "/c/pid") })
	hasTerminal()
	p.reads("c/one", "first")
	p.types(ctrlZ)
	p.stopped("c")

	p.types("bg\n") // the command continues, and is stopped when it reads
	waitFor(t, "the command to go on", func() bool { return stateOf(p.dir+"/c/pid") != 'T' })
	os.WriteFile(p.dir+"/c/on", []byte("\n"), 0o666)
	waitFor(t, "the command to go on", func() bool { return exists(p.dir + "/c/background") })
	p.stopped("c")

	p.types("fg\n")
	hasTerminal()
	p.reads("c/two", "second")
	p.types(ctrlZ)
	p.stopped("c")

	p.types("bg\n")
	waitFor(t, "the command to go on", func() bool { return stateOf(p.dir+"/c/pid") != 'T' })
	p.types("fg\n") // the command was not stopped meanwhile, and gets the terminal when it reads
	p.waitForTerminal("the parent", readFile(p.dir+"/c/parent"))
	os.WriteFile(p.dir+"/c/off", []byte("\n"), 0o666)
	hasTerminal()
	p.reads("c/three", "third")
	p.ends("c")
	p.waitForTerminal("the shell", strconv.Itoa(p.shell.Process.Pid))
}

// TestTwoCommandsInOneJob shows how two commands of one job share the terminal. The
// command that starts first has the terminal. When the other command reads, the job
// stops, and fg gives the terminal to the other command until it ends, even if the first
// command ends before.
func TestTwoCommandsInOneJob(t *testing.T) {
	p := newTypist(t)
	first := p.runs("a", `until [ -e on ]; do sleep 0.01; done`)
	second := p.runs("b", `read line; echo $line > one; read line; echo $line > two`)
	os.WriteFile(p.dir+"/both", []byte(first+" <&3 &\nuntil [ -e a/pid ]; do sleep 0.01; done\n"+second+"\nwait\n"), 0o666)
	p.types("sh ./both 3<&0\n")
	waitFor(t, "both", func() bool { return exists(p.dir+"/a/pid") && exists(p.dir+"/b/pid") })
	hasTerminal := func() { p.waitForTerminal("the second", readFile(p.dir+"/b/pid")) }
	p.stopped("b")
	p.types("fg\n")
	hasTerminal()
	p.reads("b/one", "first")
	p.types(ctrlZ)
	waitFor(t, "the first's parent to stop", func() bool { return stateOf(p.dir+"/a/parent") == 'T' })
	p.stopped("b")
	p.types("fg\n")
	hasTerminal()
	os.WriteFile(p.dir+"/a/on", nil, 0o666)
	p.ends("a")
	p.reads("b/two", "second")
	p.ends("b")
	p.waitForTerminal("the shell", strconv.Itoa(p.shell.Process.Pid))
}

// TestStopKeyWithoutAShell shows that control-Z stops no process if no shell could
// continue it, as at a terminal that was opened for one command.
func TestStopKeyWithoutAShell(t *testing.T) {
	p := newTypist(t)
	line := p.runs("c", `kill -TSTP $$; kill -STOP $$; trap 'touch again' CONT; until read line; do :; done; echo $line > one; until read line; do :; done; echo $line > two`)
	p.types("exec " + strings.Replace(line, "exec ", "", 1) + "\n")
	waitFor(t, "the command", func() bool { return exists(p.dir + "/c/pid") })
	p.waitForTerminal("the command", readFile(p.dir+"/c/pid"))
	p.reads("c/one", "first")
	p.types(ctrlZ)
	waitFor(t, "the command to be continued", func() bool { return exists(p.dir + "/c/again") })
	p.reads("c/two", "second")
	p.ends("c")
}
