//go:build unix

package guard

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// playsRole lets the test binary act as another process that a test needs, and returns
// true when that process is done. It returns false if the binary runs the tests.
var playsRole = func() bool { return false }

// TestMain lets the test binary also act as the guardian.
func TestMain(m *testing.M) {
	if playsRole() {
		return
	}
	if IsGuardian() {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// start runs a shell script in dir under a guardian.
func start(t *testing.T, dir, script string) *Child {
	t.Helper()
	return startCommand(t, "/bin/sh", "-c", "cd \"$0\"\n"+script, dir)
}

func startCommand(t *testing.T, argv ...string) *Child {
	t.Helper()
	c, err := Start(Command{Argv: argv, Env: os.Environ(), Say: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill()
		c.Wait() // collects the process if a failed test left it running
	})
	return c
}

// waitMax is how long a test waits for an expected event.
const waitMax = 3 * time.Minute

// waitFor polls a condition, because real processes cannot signal a test.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitMax); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func readFile(name string) string {
	b, _ := os.ReadFile(name)
	return string(bytes.TrimSpace(b))
}

// grace is how long before its deadline a test's command is asked to end.
const grace = 50 * time.Millisecond

func renew(t *testing.T, c *Child, d time.Duration) {
	t.Helper()
	if err := c.Renew(func() time.Duration { return d }, grace); err != nil {
		t.Fatal(err)
	}
}

// wantLost waits for the command's end and fails unless it was made to end.
func wantLost(t *testing.T, c *Child) {
	t.Helper()
	if got, lost := c.Wait(); got != ExitLost || !lost {
		t.Errorf("status %d, lost %v; want %d, true", got, lost, ExitLost)
	}
}

func TestStatusIsTheCommands(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 120": 120, "kill -9 $$": 137, "kill -TERM $$": 143} {
		c := start(t, t.TempDir(), script)
		renew(t, c, waitMax)
		if got, lost := c.Wait(); got != want || lost {
			t.Errorf("%q: status %d, lost %v; want %d", script, got, lost, want)
		}
	}
}

func TestNothingRunsWithoutADeadline(t *testing.T) {
	dir := t.TempDir()
	for name, act := range map[string]func(*Child){
		"stop":            func(c *Child) { c.Stop(time.Minute) },
		"parent gone":     func(c *Child) { c.orders.Close() },
		"deadline passed": func(c *Child) { renew(t, c, -time.Second) },
		"garbage":         func(c *Child) { fmt.Fprintln(c.orders, "walk 1 2") },
		"half a line":     func(c *Child) { fmt.Fprintln(c.orders, "run 1") },
		// If the parent is stopped after it has read its lease, the time until it
		// continues must count.
		"stale renewal": func(c *Child) {
			c.Renew(func() time.Duration {
				<-time.After(30 * time.Millisecond)
				return 20 * time.Millisecond
			}, grace)
		},
	} {
		c := start(t, dir, "touch mark")
		act(c)
		if got, lost := c.Wait(); got != ExitLost || !lost {
			t.Errorf("%s: status %d, lost %v; want %d, true", name, got, lost, ExitLost)
		}
	}
	if exists(dir + "/mark") {
		t.Error("the command ran")
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	os.WriteFile(plain, []byte("text"), 0o644)
	for cmd, want := range map[string]int{"/no/such/command": ExitNoCmd, "no-such-command-in-path": ExitNoCmd, plain: ExitNotExec} {
		c := startCommand(t, cmd)
		renew(t, c, waitMax)
		if got, _ := c.Wait(); got != want {
			t.Errorf("%s: status %d, want %d", cmd, got, want)
		}
	}
}

// TestGroupDiesAtTheDeadline shows that without renewals the whole process group has
// ended when the deadline has passed, a grandchild that ignores SIGTERM included.
func TestGroupDiesAtTheDeadline(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	c := start(t, filepath.Dir(pid), `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $! > new; mv new pid; wait; while :; do sleep 1; done`)
	renew(t, c, waitMax)
	waitFor(t, "the grandchild", func() bool { return readFile(pid) != "" })
	renew(t, c, 200*time.Millisecond)
	wantLost(t, c)
	waitDead(t, readFile(pid))
}

// waitDead waits until a process has ended or is a zombie.
func waitDead(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of process "+pid, func() bool {
		stat := readFile("/proc/" + pid + "/stat")
		return syscall.Kill(n, 0) != nil || strings.Contains(stat, ") Z ")
	})
}

func TestRenewalsKeepTheCommand(t *testing.T) {
	t.Parallel()
	for deadline := time.Second; ; deadline *= 2 {
		status, gap := keptBy(t, deadline)
		if status == 5 {
			return
		}
		if gap < deadline/2 || deadline > waitMax {
			t.Fatalf("status %d, want the command's 5; %v passed between two renewals with deadline %v", status, gap, deadline)
		}
		t.Logf("the machine paused for %v: trying again with longer deadlines", gap)
	}
}

// keptBy keeps a command running beyond its first deadlines. It returns the command's
// status and the longest time between two renewals.
func keptBy(t *testing.T, deadline time.Duration) (status int, gap time.Duration) {
	t.Helper()
	dir := t.TempDir()
	c := start(t, dir, "until [ -e end ]; do sleep 0.01; done; exit 5")
	renew(t, c, deadline)
	begin := time.Now()
	last := begin
	waitFor(t, "several deadlines to pass", func() bool {
		c.Renew(func() time.Duration { return deadline }, grace) // the guardian may have ended
		now := time.Now()
		gap, last = max(gap, now.Sub(last)), now
		return now.Sub(begin) > 2*deadline
	})
	c.Renew(func() time.Duration { return time.Minute }, grace)
	os.WriteFile(dir+"/end", nil, 0o644)
	status, _ = c.Wait()
	return status, gap
}

// TestPipeEndStops shows that the command ends when its parent dies, with SIGTERM first.
func TestPipeEndStops(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir, "trap 'touch asked; exit 0' TERM; touch up; while :; do sleep 0.01; done")
	renew(t, c, waitMax)
	waitFor(t, "the command", func() bool { _, err := os.Stat(dir + "/up"); return err == nil })
	c.orders.Close()
	wantLost(t, c)
	if _, err := os.Stat(dir + "/asked"); err != nil {
		t.Error("the command was not asked to end")
	}
}

func TestSignalsAreForwarded(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1} {
		if signal.Ignored(sig) { // as under nohup: an ignored signal is not passed on, and a shell cannot catch it
			continue
		}
		dir := t.TempDir()
		c := start(t, dir, "trap 'exit 9' "+name+"; touch up; while :; do sleep 0.01; done")
		renew(t, c, waitMax)
		waitFor(t, "the command", func() bool { return exists(dir + "/up") })
		c.Signal(sig)
		if got, _ := c.Wait(); got != 9 {
			t.Errorf("%s: status %d, want 9", name, got)
		}
	}
}

// TestCommandDiesWithItsGuardian shows that the command ends when its guardian is killed (Linux).
func TestCommandDiesWithItsGuardian(t *testing.T) {
	if steadyClock != 7 { // 7 is CLOCK_BOOTTIME, the clock on Linux
		return
	}
	pid := filepath.Join(t.TempDir(), "pid")
	c := start(t, filepath.Dir(pid), "echo $$ > new; mv new pid; while :; do sleep 1; done")
	renew(t, c, waitMax)
	waitFor(t, "the command", func() bool { return readFile(pid) != "" })
	c.kill()
	if got, _ := c.Wait(); got != 137 {
		t.Errorf("status %d, want that of a killed process, 137", got)
	}
	waitDead(t, readFile(pid))
}

// TestGroupDiesWithItsGuardian shows that the parent kills the command's process group
// when the guardian is killed.
func TestGroupDiesWithItsGuardian(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	c := start(t, dir, "trap 'touch asked' USR1; "+
		`sh -c 'trap "" TERM USR1; echo $$ > new; mv new pid; while :; do sleep 1; done' & until wait; do :; done`)
	renew(t, c, waitMax)
	waitFor(t, "the grandchild", func() bool { return readFile(pid) != "" })
	c.Signal(syscall.SIGUSR1) // the guardian passes it on after it has reported the command
	waitFor(t, "the report", func() bool { return exists(dir + "/asked") })
	c.kill()
	c.Wait()
	waitDead(t, readFile(pid))
}

// stubborn is a command that ignores SIGTERM. It creates the file up when it runs and
// asked when it gets SIGTERM.
const stubborn = "trap 'touch asked' TERM; touch up; while :; do sleep 0.01; done"

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// TestStopHasAGrace shows that Stop gives the command its grace and no more, even if the
// deadline is far away, and less if the deadline comes first.
func TestStopHasAGrace(t *testing.T) {
	for name, c := range map[string]struct{ deadline, grace time.Duration }{
		"grace first":    {time.Hour, 3 * time.Second},
		"deadline first": {3 * time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			child := start(t, dir, stubborn)
			renew(t, child, max(c.deadline, waitMax))
			waitFor(t, "the command", func() bool { return exists(dir + "/up") })
			renew(t, child, c.deadline)
			child.Stop(c.grace)
			wantLost(t, child)
			if !exists(dir + "/asked") {
				t.Error("the command was not asked first")
			}
		})
	}
}

// TestRenewalAfterTermIsTooLate shows that a late renewal does not keep a command that
// has already got SIGTERM.
func TestRenewalAfterTermIsTooLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir, stubborn)
	renew(t, c, waitMax)
	waitFor(t, "the command", func() bool { return exists(dir + "/up") })
	c.Renew(func() time.Duration { return 4 * time.Second }, 5*time.Second)
	waitFor(t, "SIGTERM", func() bool { return exists(dir + "/asked") })
	c.Renew(func() time.Duration { return time.Hour }, grace) // the guardian may have ended
	wantLost(t, c)
}

// TestClocksAreReadOften shows that the guardian reads the clocks often, also during
// grace: a timer does not count the time for which the machine is suspended.
func TestClocksAreReadOften(t *testing.T) {
	for _, grace := range []time.Duration{0, 2 * time.Hour} {
		g := guardian{order: order{due: after(time.Hour), grace: grace}, asked: true}
		if next, over := g.enforce(); next > 500*time.Millisecond || over {
			t.Errorf("grace %v: the clocks are read again after %v, over %v; want half a second", grace, next, over)
		}
	}
}

// TestDeadlinePassesOnEitherClock shows that one clock suffices: the wall clock may have
// jumped, or the steady clock may have run on.
func TestDeadlinePassesOnEitherClock(t *testing.T) {
	d := after(time.Hour)
	if d.left() < 59*time.Minute {
		t.Fatalf("left %v, want about an hour", d.left())
	}
	for _, passed := range []deadline{{d.steady, 1}, {1, d.wall}} {
		if passed.left() > 0 {
			t.Errorf("%+v: left %v", passed, passed.left())
		}
	}
}
