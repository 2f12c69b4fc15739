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

// escape starts what leaves the command's process group: a daemon that has
// forked twice, and a session of its own with a child. Each ignores SIGTERM. It
// makes the file escaped when they run.
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
	renew(t, c, patience)
	waitFor(t, "the daemons", func() bool { return exists(dir + "/escaped") })
	return c
}

// What has left the command's process group ends with it: at the deadline,
// when the command ends by itself, when it is stopped, and when somebody kills
// the guardian.
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

// A daemon that has no parent and nobody else would tell is asked to end with
// the command, and not killed before that one has ended.
func TestDaemonsAreAskedToEnd(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, `(setsid sh -c 'trap "touch asked; exit" TERM; echo $$ > new; mv new up; while :; do sleep 0.01; done' &)
		trap "" TERM; until [ -e asked ]; do sleep 0.01; done`)
	renew(t, c, patience)
	waitFor(t, "the daemon to lose its parent", func() bool {
		p, _ := parseStat([]byte(readFile("/proc/" + readFile(dir+"/up") + "/stat")))
		return p.parent == c.guardian
	})
	c.Stop(patience)
	waitFor(t, "the daemon to be asked", func() bool { return exists(dir + "/asked") })
	wantLost(t, c)
}

// A command that forks as fast as it can, with sessions of their own, does not
// outrun the guardian.
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
	renew(t, c, patience)
	waitFor(t, "the bomb", func() bool { return exists(dir+"/up") && len(inDir(t, dir)) > 20 })
	renew(t, c, 0)
	wantLost(t, c)
	wantNobody(t, dir)
}

// The names by which people end processes, the program's, its file's and the
// command's, are not the guardian's.
func TestNameOfTheGuardian(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, "touch up; sleep 1000")
	renew(t, c, patience)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	at := fmt.Sprintf("/proc/%d/", c.guardian)
	if comm, line := readFile(at+"comm"), readFile(at+"cmdline"); comm != guardianName || strings.Trim(line, "\x00") != guardianName {
		t.Errorf("the guardian is called %q, its command line is %q; want %q alone", comm, line, guardianName)
	}
}

// A guardian that somebody stops is continued, and does its work.
func TestStoppedGuardianGoesOn(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, "trap '' TERM; touch up; while :; do sleep 0.01; done")
	renew(t, c, patience)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	renew(t, c, time.Second)
	syscall.Kill(c.guardian, syscall.SIGSTOP)
	wantLost(t, c)
	wantNobody(t, dir)
}

// Where the guardian does nothing, the parent ends the command at the deadline,
// and then the guardian, whether it has been told of the command or not.
func TestParentEndsWhatADeafGuardianRuns(t *testing.T) {
	for _, reports := range []string{"reports", "does not"} {
		dir := t.TempDir()
		t.Setenv(deafEnv, reports)
		c := startEscape(t, dir, "while :; do sleep 1; done")
		began := time.Now()
		renew(t, c, 100*time.Millisecond)
		waitFor(t, "the end of the command", func() bool { return len(inDir(t, dir)) == 0 })
		t.Logf("%v after a deadline in 100ms nobody is left", time.Since(began))
		wantLost(t, c)
	}
}

// A guardian that reads nothing blocks nobody.
func TestRenewalsDoNotWaitForTheGuardian(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(deafEnv, "reports")
	c := start(t, dir, "touch up; while :; do sleep 1; done")
	renew(t, c, patience)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	failed := false
	for range 5000 { // more than the pipe holds
		if failed = c.Renew(func() time.Duration { return patience }, grace) != nil; failed {
			break
		}
	}
	if !failed {
		t.Error("the pipe takes renewals without end")
	}
	c.Stop(0)
	wantLost(t, c)
	wantNobody(t, dir)
}

// A guardian that is killed before it could tell of its command leaves nothing.
func TestGuardianThatDiesBeforeItReports(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(deafEnv, "does not")
	c := startEscape(t, dir, "while :; do sleep 1; done")
	c.kill()
	c.Wait()
	wantNobody(t, dir)
}

// A parent that had children before, as a script that ends with exec has,
// leaves them alone when its guardian is killed.
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
			t.Errorf("the parent's own %s has been killed", name)
		}
		syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, p := range inDir(t, dir) {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// A debugger may hold what has been killed, so that nobody can collect it. It
// has ended all the same; of a guardian, a person is told once.
func TestDebuggerHoldsTheDead(t *testing.T) {
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
				t.Errorf("told %q, want one line with %q, or nothing", said, want)
			}
		})
	}
}

// asNobody runs a process without privileges.
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

// asRoot runs until the file end is there, and cannot be killed by who runs it.
const asRoot = `./become --reuid 0 --regid 0 --clear-groups sh -c 'trap "" TERM; touch up; until [ -e end ]; do sleep 0.05; done'`

// What has become another user cannot be killed. The end of the command waits
// for it, and a person is told.
func TestCommandOfAnotherUserIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		script, deadline string
		kill             bool
		status, said     string
	}{
		"left behind": {asRoot + " & until [ -e up ]; do sleep 0.01; done; exit 4", "", false, "4 false", "is kept until it has"},
		"lost":        {"exec " + asRoot, "200ms", false, "120 true", "another may run the command already"},
		"guardian":    {"echo $PPID > new; mv new guardian; " + asRoot, "", true, "137 false", "is kept until it has"},
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
			waitFor(t, "a person to be told", func() bool { return strings.Contains(readFile(dir+"/said"), c.said) })
			if said := readFile(dir + "/said"); !strings.Contains(said, "(sh, user 0, state ") {
				t.Errorf("told %q, want the name of the process and its user", said)
			}
			if exists(dir + "/status") {
				t.Error("the parent has not waited for it")
			}
			os.WriteFile(dir+"/end", nil, 0o666)
			waitFor(t, "the parent", func() bool { return exists(dir + "/status") })
			if got := readFile(dir + "/status"); got != c.status {
				t.Errorf("status %s, want %s", got, c.status)
			}
		})
	}
}
