package guard

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// stateOf returns the state, as /proc shows it, of the process whose id a file holds.
func stateOf(file string) byte {
	p, _ := parseStat([]byte(readFile("/proc/" + readFile(file) + "/stat")))
	return p.state
}

// TestStoppedCommandStopsNobodyElse shows that without a terminal a stopped command just
// stays stopped. Neither its parent nor the other members of the parent's process group
// stop. The user gets a message, and the deadline still applies.
func TestStoppedCommandStopsNobodyElse(t *testing.T) {
	for _, sig := range []string{"TSTP", "TTIN", "TTOU", "STOP"} {
		t.Run(sig, func(t *testing.T) {
			dir := t.TempDir()
			p := startParent(t, dir, "echo $$ > new; mv new pid; kill -"+sig+" $$; touch on; sleep 1000", func(p *exec.Cmd) {
				p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			}, "/bin/sh", "-c", `cd "$3"; sleep 1000 & echo $! > "$3/stranger"; exec "$@"`, "sh")
			t.Cleanup(func() {
				for _, left := range inDir(t, dir) { // these include the sleep above, which is not part of the command
					syscall.Kill(left.pid, syscall.SIGKILL)
				}
			})
			os.WriteFile(dir+"/parent", []byte(strconv.Itoa(p.Process.Pid)), 0o666)
			waitFor(t, "the message", func() bool { return strings.Contains(readFile(dir+"/said"), "is stopped by SIG"+sig) })
			if stateOf(dir+"/pid") != 'T' || exists(dir+"/on") {
				t.Error("the command is running, want stopped")
			}
			for _, name := range []string{"parent", "stranger"} {
				if s := stateOf(dir + "/" + name); s == 'T' || s == 0 {
					t.Errorf("the %s is in state %c", name, s)
				}
			}
			os.WriteFile(dir+"/deadline", []byte("100ms"), 0o666)
			waitFor(t, "the end of the parent", func() bool { return exists(dir + "/status") })
			if got := readFile(dir + "/status"); got != "120 true" {
				t.Errorf("status %s, want 120 true", got)
			}
		})
	}
}

// TestStoppedCommandIsEndedBySignals shows that a stopped command is continued when a
// user ends it with a signal.
func TestStoppedCommandIsEndedBySignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(sig) { // a program under nohup ignores the signal
			continue
		}
		dir := t.TempDir()
		c := start(t, dir, "echo $$ > new; mv new pid; kill -STOP $$; while :; do sleep 1; done")
		renew(t, c, waitMax)
		waitFor(t, "the stop", func() bool { return stateOf(dir+"/pid") == 'T' })
		c.Signal(sig)
		if got, lost := c.Wait(); got != 128+int(sig) || lost {
			t.Errorf("%v: status %d, lost %v; want %d", sig, got, lost, 128+int(sig))
		}
	}
}
