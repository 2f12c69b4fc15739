package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// escape is a shell script that starts two processes outside the command's process
// group: a daemon that has forked twice, and a new session with a child. Both ignore
// SIGTERM. The script creates the file escaped when they run.
const escape = `cat > daemon <<'END'
trap "" TERM HUP
sleep 1000 &
echo > up.$1
while :; do sleep 0.05; done
END
(setsid sh -c 'sh ./daemon 1 & exit' &)
setsid sh ./daemon 2 &
until [ -e up.1 ] && [ -e up.2 ]; do sleep 0.01; done
touch escaped
`

func startEscape(t *testing.T, dir, rest string) *Child {
	t.Helper()
	c := start(t, dir, escape+rest)
	renew(t, c, waitMax)
	waitFor(t, "the daemons", func() bool { return exists(dir + "/escaped") })
	return c
}

// TestDaemonsEndWithTheCommand shows that processes outside the command's process group
// end with the command: at the deadline, when the command ends by itself, when it is
// stopped, and when somebody kills the guardian.
func TestDaemonsEndWithTheCommand(t *testing.T) {
	for name, c := range map[string]struct {
		rest   string
		act    func(*Child)
		status int
	}{
		"deadline": {"wait", func(c *Child) { c.Renew(func() time.Duration { return 100 * time.Millisecond }, grace) }, ExitLost},
		"stop":     {"wait", func(c *Child) { c.Stop(0) }, ExitLost},
		"end":      {"until [ -e end ]; do sleep 0.01; done; exit 3", func(c *Child) {}, 3},
		"guardian": {"wait", (*Child).kill, 137},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			child := startEscape(t, dir, c.rest)
			os.WriteFile(dir+"/end", nil, 0o666)
			c.act(child)
			if got, _ := child.Wait(); got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
			wantNobody(t, dir)
		})
	}
}

// TestDaemonsAreAskedToEnd shows that a daemon that has lost its parent gets SIGTERM
// together with the command, and is not killed before the command has ended.
func TestDaemonsAreAskedToEnd(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, `(setsid sh -c 'trap "touch asked; exit" TERM; echo $$ > new; mv new up; while :; do sleep 0.01; done' &)
		trap "" TERM; until [ -e asked ]; do sleep 0.01; done`)
	renew(t, c, waitMax)
	waitFor(t, "the daemon to lose its parent", func() bool {
		p, _ := parseStat([]byte(readFile("/proc/" + readFile(dir+"/up") + "/stat")))
		return p.parent == c.guardian
	})
	c.Stop(waitMax)
	waitFor(t, "the daemon to be asked", func() bool { return exists(dir + "/asked") })
	wantLost(t, c)
}

// TestForkBombEnds shows that the guardian ends a command that forks as fast as it can,
// in new sessions.
func TestForkBombEnds(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, `ulimit -u 100000 2>/dev/null; cat > bomb <<'END'
[ $(ls /proc | grep -c '^[0-9]') -lt 400 ] || exit
setsid sh ./bomb & sh ./bomb &
sleep 0.3
sh ./bomb &
touch up
END
trap "" TERM; sh ./bomb; while :; do sh ./bomb; done`)
	renew(t, c, waitMax)
	waitFor(t, "the bomb", func() bool { return exists(dir+"/up") && len(inDir(t, dir)) > 20 })
	renew(t, c, 0)
	wantLost(t, c)
	wantNobody(t, dir)
}

// TestOneSearchProvesNothing shows that a killer is over only when it has found the same zombie, and no
// living process, for longer than killTimeout, however long ago it has begun.
func TestOneSearchProvesNothing(t *testing.T) {
	root := exec.Command("sh", "-c", "true & exec sleep 1000") // sleep does not reap its child
	if err := root.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Process.Kill(); root.Wait() })
	waitFor(t, "the zombie", func() bool {
		f, err := familyOf(root.Process.Pid, nil)
		return err == nil && len(f.living) == 0 && len(f.zombies) == 1
	})
	began := time.Now()
	k := killer{began: began.Add(-time.Hour)}
	waitFor(t, "the killer to be over", func() bool { return k.kill(root.Process.Pid, nil) })
	if took := time.Since(began); took <= killTimeout {
		t.Errorf("the killer was over after %v, before the zombie was seen for %v", took, killTimeout)
	}
}

// TestNameOfTheGuardian shows that the guardian's name contains neither the name of the
// program or its file nor that of the command: users end processes by those names.
func TestNameOfTheGuardian(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, "touch up; sleep 1000")
	renew(t, c, waitMax)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	at := fmt.Sprintf("/proc/%d/", c.guardian)
	if comm, line := readFile(at+"comm"), readFile(at+"cmdline"); comm != guardianName || strings.Trim(line, "\x00") != guardianName {
		t.Errorf("the guardian is called %q, its command line is %q; want %q alone", comm, line, guardianName)
	}
}

// TestStoppedGuardianGoesOn shows that the parent continues a stopped guardian.
func TestStoppedGuardianGoesOn(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, "trap '' TERM; touch up; while :; do sleep 0.01; done")
	renew(t, c, waitMax)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	renew(t, c, time.Second)
	syscall.Kill(c.guardian, syscall.SIGSTOP)
	wantLost(t, c)
	wantNobody(t, dir)
}

// TestParentReplacesAnUnresponsiveGuardian shows that the parent ends the command at
// the deadline if the guardian does nothing, and then the guardian, whether or not the
// guardian has reported the command.
func TestParentReplacesAnUnresponsiveGuardian(t *testing.T) {
	for _, reports := range []string{"reports", "does not"} {
		dir := t.TempDir()
		t.Setenv(unresponsiveEnv, reports)
		c := startEscape(t, dir, "while :; do sleep 1; done")
		began := time.Now()
		renew(t, c, 100*time.Millisecond)
		waitFor(t, "the end of the command", func() bool { return len(inDir(t, dir)) == 0 })
		t.Logf("all processes ended after %v; the deadline was 100ms", time.Since(began))
		wantLost(t, c)
	}
}

// TestRenewalsDoNotWaitForTheGuardian shows that Renew does not block if the guardian
// reads nothing.
func TestRenewalsDoNotWaitForTheGuardian(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(unresponsiveEnv, "reports")
	c := start(t, dir, "touch up; while :; do sleep 1; done")
	renew(t, c, waitMax)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	failed := false
	for range 5000 { // more orders than the pipe can hold
		if failed = c.Renew(func() time.Duration { return waitMax }, grace) != nil; failed {
			break
		}
	}
	if !failed {
		t.Error("5000 renewals fit into the pipe: it was never full")
	}
	c.Stop(0)
	wantLost(t, c)
	wantNobody(t, dir)
}

// TestGuardianThatDiesBeforeItReports shows that no process of the command is left if the
// guardian is killed before it has reported the command.
func TestGuardianThatDiesBeforeItReports(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(unresponsiveEnv, "does not")
	c := startEscape(t, dir, "while :; do sleep 1; done")
	c.kill()
	c.Wait()
	wantNobody(t, dir)
}

// TestOtherChildrenOfTheParentStay shows that a parent with earlier children, such as a
// script that ends with exec, leaves them alone when its guardian is killed.
func TestOtherChildrenOfTheParentStay(t *testing.T) {
	dir := t.TempDir()
	startParent(t, dir, "echo $PPID > new; mv new guardian; sleep 1000", nil,
		"/bin/sh", "-c", `(sh -c 'cd "$2"; sleep 1000 & echo $! > grandchild; sleep 1001' "$@") & echo $! > $3/child; exec "$@"`, "sh")
	waitFor(t, "the guardian", func() bool { return exists(dir+"/guardian") && exists(dir+"/grandchild") })
	pid, err := strconv.Atoi(readFile(dir + "/guardian"))
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	waitFor(t, "the parent", func() bool { return exists(dir + "/status") })
	for _, name := range []string{"child", "grandchild"} {
		pid, _ := strconv.Atoi(readFile(dir + "/" + name))
		if pid == 0 || syscall.Kill(pid, 0) != nil {
			t.Errorf("the parent's own %s was killed", name)
		}
		syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, p := range inDir(t, dir) {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// TestDebuggerHoldsKilledProcess shows that a killed process counts as ended even if a debugger
// holds it, so that nobody can reap it. If it is the guardian, the user gets one message.
func TestDebuggerHoldsKilledProcess(t *testing.T) {
	for held, want := range map[string]string{"command": "", "guardian": "does not answer"} {
		t.Run(held, func(t *testing.T) {
			dir := t.TempDir()
			p := startParent(t, dir, "echo $PPID > guardian; echo $$ > command; touch up; while :; do sleep 1; done", nil)
			waitFor(t, "the command", func() bool { return exists(dir + "/up") })
			tracer := exec.Command(p.Path, tracerArg, dir, readFile(dir+"/"+held))
			if err := tracer.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				tracer.Process.Kill()
				tracer.Wait()
			})
			waitFor(t, "the debugger", func() bool { return exists(dir + "/traces") })
			if held == "guardian" { // SIGKILL ends it, but not before the debugger lets it
				pid, _ := strconv.Atoi(readFile(dir + "/guardian"))
				syscall.Kill(pid, syscall.SIGSTOP)
			}
			os.WriteFile(dir+"/deadline", []byte("100ms"), 0o666)
			commandEnds := func() bool { return stateOf(dir+"/command") == 'Z' || stateOf(dir+"/command") == 0 }
			waitFor(t, "the end of the command", commandEnds)
			if held == "guardian" {
				waitFor(t, "the end of the guardian", func() bool { return stateOf(dir+"/guardian") == 'Z' })
				os.WriteFile(dir+"/end", nil, 0o666)
			}
			waitFor(t, "the parent", func() bool { return exists(dir + "/status") })
			if got := readFile(dir + "/status"); got != "120 true" {
				t.Errorf("status %s, want 120 true", got)
			}
			said := readFile(dir + "/said")
			if strings.Count(said, "\n") > 0 || !strings.Contains(said, want) || want == "" && said != "" {
				t.Errorf("message %q, want one line with %q, or none", said, want)
			}
		})
	}
}

// asNobody makes a process run as a user without privileges.
func asNobody(p *exec.Cmd) {
	if os.Geteuid() == 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// becomesRoot puts a program into dir that runs its arguments as root, as sudo
// does. That needs root or sudo.
func becomesRoot(t *testing.T, dir string) {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"install", "-o", "0", "-m", "4755", setpriv, dir + "/become"}
	if os.Geteuid() != 0 {
		args = append([]string{"sudo", "-n"}, args...)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("a program that becomes root needs root or sudo: %v: %s", err, out)
	}
	os.Chmod(dir, 0o777)
	for up := dir; strings.HasPrefix(up, os.TempDir()) && up != os.TempDir(); up = filepath.Dir(up) {
		os.Chmod(up, 0o777)
	}
}

// asRoot runs a process of root until the file end exists; the test's user cannot kill it.
const asRoot = `./become --reuid 0 --regid 0 --clear-groups sh -c 'trap "" TERM; touch up; until [ -e end ]; do sleep 0.05; done'`

// TestCommandOfAnotherUserIsWaitedFor shows that Ended waits for a process that has changed
// to another user and so cannot be killed, and that a message reports the process.
func TestCommandOfAnotherUserIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		script, deadline string
		kill             bool
		status, said     string
	}{
		"left behind": {asRoot + " & until [ -e up ]; do sleep 0.01; done; exit 4", "", false, "4 false", "is kept until it ends"},
		"lost":        {"exec " + asRoot, "200ms", false, "120 true", "another process may already run the command"},
		"guardian":    {"echo $PPID > new; mv new guardian; " + asRoot, "", true, "137 false", "is kept until it ends"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			becomesRoot(t, dir)
			startParent(t, dir, c.script, asNobody)
			waitFor(t, "the command", func() bool { return exists(dir + "/up") })
			if c.deadline != "" {
				os.WriteFile(dir+"/deadline", []byte(c.deadline), 0o666)
			}
			if c.kill {
				pid, _ := strconv.Atoi(readFile(dir + "/guardian"))
				syscall.Kill(pid, syscall.SIGKILL)
			}
			waitFor(t, "the message", func() bool { return strings.Contains(readFile(dir+"/said"), c.said) })
			if said := readFile(dir + "/said"); !strings.Contains(said, "(sh, user 0, state ") {
				t.Errorf("message %q, want the name of the process and its user", said)
			}
			if exists(dir + "/status") {
				t.Error("the parent did not wait for it")
			}
			os.WriteFile(dir+"/end", nil, 0o666)
			waitFor(t, "the parent", func() bool { return exists(dir + "/status") })
			if got := readFile(dir + "/status"); got != c.status {
				t.Errorf("status %s, want %s", got, c.status)
			}
		})
	}
}
