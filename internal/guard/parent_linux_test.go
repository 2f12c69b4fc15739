package guard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	playsRole = func() bool {
		switch {
		case IsGuardian() && os.Getenv(unresponsiveEnv) != "":
			unresponsive(os.Getenv(unresponsiveEnv) == "reports")
		case len(os.Args) > 3 && os.Args[1] == tracerArg:
			trace(os.Args[2], os.Args[3])
		case len(os.Args) > 3 && os.Args[1] == parentArg:
			parent(os.Args[2], os.Args[3:])
		default:
			return false
		}
		return true
	}
}

// parentArg makes the test binary a process that only runs a command under a guardian,
// as bellwether elect does. The process works in a directory. It rereads the file
// deadline, which holds how long the command may run, and writes the files said
// (messages) and status (the command's end).
const parentArg = "parent-of-a-command"

func parent(dir string, argv []string) {
	c, err := Start(Command{Argv: argv, Env: os.Environ(), Say: func(text string) { appendTo(dir+"/said", text+"\n") }})
	if err != nil {
		appendTo(dir+"/said", err.Error())
		return
	}
	for renewed := ""; !c.hasEnded(); {
		if text := readFile(dir + "/deadline"); text != renewed {
			renewed = text
			d, _ := time.ParseDuration(text)
			c.Renew(func() time.Duration { return d }, d/2)
		}
		select {
		case <-c.Ended():
		case <-time.After(10 * time.Millisecond):
		}
	}
	status, lost := c.Wait()
	appendTo(dir+"/new-status", fmt.Sprintln(status, lost))
	os.Rename(dir+"/new-status", dir+"/status") // rename, so that the file is complete when it appears
}

func (c *Child) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func appendTo(name, text string) {
	if f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err == nil {
		f.WriteString(text)
		f.Close()
	}
}

// startParent starts the test binary with parentArg, so that it runs a shell script under a
// guardian. If before is given, it is a command that starts the test binary, such as a shell.
func startParent(t *testing.T, dir, script string, attr func(*exec.Cmd), before ...string) *exec.Cmd {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "guard.test") // in a place where another user may run it
	if err := os.WriteFile(self, program, 0o755); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(dir+"/deadline", []byte(waitMax.String()), 0o666)
	args := append(before, self, parentArg, dir, "/bin/sh", "-c", "cd \"$0\"\n"+script, dir)
	p := exec.Command(args[0], args[1:]...)
	p.Stderr = os.Stderr
	if attr != nil {
		attr(p)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	return p
}

// tracerArg makes the test binary a debugger that holds a process and does not react to
// its end until the file end exists in a directory.
const tracerArg = "tracer"

func trace(dir, pid string) {
	runtime.LockOSThread() // the processes are held by this thread, so it must not end
	tasks, _ := os.ReadDir("/proc/" + pid + "/task")
	for _, task := range tasks {
		n, _ := strconv.Atoi(task.Name())
		if err := unix.PtraceSeize(n); err != nil {
			appendTo(dir+"/said", err.Error())
		}
	}
	appendTo(dir+"/traces", "")
	for !exists(dir + "/end") {
		<-time.After(time.Millisecond)
	}
}

// unresponsiveEnv makes the guardian start its command and then do nothing, as if a debugger had stopped
// it. With the value "reports" the guardian first reports that the command runs.
const unresponsiveEnv = "BELLWETHER_TEST_DEAF_GUARDIAN"

func unresponsive(reports bool) {
	adoptOrphans()
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportFD)
	lines := bufio.NewReader(os.NewFile(ordersFD, "orders"))
	var what spec
	first, _ := lines.ReadBytes('\n')
	json.Unmarshal(first, &what)
	lines.ReadBytes('\n')
	var argv []string
	for _, a := range what.Argv {
		argv = append(argv, string(a))
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	cmd.SysProcAttr = commandAttr()
	cmd.SysProcAttr.Pdeathsig = 0 // otherwise the command would be killed when the thread that has started it ends
	cmd.Start()
	if reports {
		fmt.Fprintln(os.NewFile(reportFD, "report"), startedWord, cmd.Process.Pid)
	}
	<-time.After(time.Hour)
}

// inDir lists the living processes whose working directory is dir.
func inDir(t *testing.T, dir string) (found []process) {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if at, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid)); strings.HasPrefix(at, dir) && p.runs() {
			found = append(found, p)
		}
	}
	return found
}

// wantNobody fails if a process of a command that has ended is still running.
func wantNobody(t *testing.T, dir string) {
	t.Helper()
	if left := inDir(t, dir); len(left) > 0 {
		t.Errorf("the command has ended, but these processes still run: %v", left)
	}
}
