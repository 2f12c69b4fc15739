package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// atTerminal is the program at a pseudo-terminal of 100 columns, with everything that it has printed.
type atTerminal struct {
	t     *testing.T
	tty   *os.File
	mu    sync.Mutex
	out   strings.Builder
	seen  int // the bytes of out up to the end of what the last call of shows has found
	ended chan error
}

func runAtTerminal(t *testing.T, env []string, args ...string) *atTerminal {
	t.Helper()
	return runAtSize(t, &pty.Winsize{Cols: 100, Rows: 24}, env, args...)
}

func runAtSize(t *testing.T, size *pty.Winsize, env []string, args ...string) *atTerminal {
	t.Helper()
	cmd := exec.Command("bellwether", args...)
	cmd.Env = append(append(os.Environ(), raceOptions, "TERM=xterm", "INPUTRC="+os.DevNull), env...)
	tty, err := pty.StartWithSize(cmd, size)
	must(t, err)
	a := &atTerminal{t: t, tty: tty, ended: make(chan error, 1)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			a.mu.Lock()
			a.out.Write(buf[:n])
			a.mu.Unlock()
			if err != nil {
				a.ended <- cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill() })
	return a
}

func (a *atTerminal) keys(text string) {
	a.t.Helper()
	_, err := a.tty.WriteString(text)
	must(a.t, err)
}

// shows waits until the program prints a text, and ignores the output up to what the last call has found.
func (a *atTerminal) shows(want string) {
	a.t.Helper()
	for deadline := time.Now().Add(waitMax); ; <-time.After(2 * time.Millisecond) {
		a.mu.Lock()
		out := a.out.String()
		if i := strings.Index(out[a.seen:], want); i >= 0 {
			a.seen += i + len(want)
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		if time.Now().After(deadline) {
			a.t.Fatalf("%q was not printed:\n%q", want, out)
		}
	}
}

func (a *atTerminal) endsWell() {
	a.t.Helper()
	select {
	case err := <-a.ended:
		must(a.t, err)
	case <-time.After(waitMax):
		a.t.Fatal("the program does not end")
	}
}

// TestShellAtATerminal shows the shell at a terminal with a real server: completion of live paths, events, Ctrl-C
// while a line is typed and while a command runs, Ctrl-D, and a history file without credentials.
func TestShellAtATerminal(t *testing.T) {
	dir := t.TempDir()
	address := serveForTest(t, dir)
	history := filepath.Join(dir, "history")
	a := runAtTerminal(t, []string{"BELLWETHER_SERVER=" + address, "BELLWETHER_HISTORY=" + history}, "shell")
	a.shows("[zk: " + address + "(CONNECTED) 0] ")
	a.keys("create /orchard apple\r")
	a.shows("Created /orchard")
	a.keys("get -w /orch\t\r")
	a.shows("apple")
	out, err := exec.Command("bellwether", "set", "--server", address, "/orchard", "pear").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.shows("type:NodeDataChanged path:/orchard")
	a.keys("delete /orchard\x03")
	a.keys("addauth digest ann:secret\r")
	a.shows(" 3] ")
	a.keys("watch /orchard\r")
	a.shows(`"watch":"begun"`)
	a.keys("\x03")
	a.shows(" 4] ")
	a.keys("get /orchard\r")
	a.shows("pear")
	a.keys("top\r")
	a.shows("standalone")
	a.keys("q")
	a.shows(" 6] ")
	a.keys("set -b /orchard G1szMW0=\r") // an escape sequence
	a.keys("get /orchard\r")
	a.shows("?[31m")
	a.keys("close\r")
	a.shows("(CLOSED) 9] ")
	a.keys("\x04")
	a.endsWell()
	text, err := os.ReadFile(history)
	must(t, err)
	if strings.Contains(string(text), "secret") || !strings.Contains(string(text), "get -w /orchard\n") || strings.Contains(string(text), "delete") {
		t.Errorf("the history is\n%s", text)
	}
}

// TestOddTextAtATerminal shows that data and names cannot change a terminal, even one whose size is not known, such as a serial line.
func TestOddTextAtATerminal(t *testing.T) {
	address := serveForTest(t, t.TempDir())
	must(t, exec.Command("bellwether", "create", "--server", address, "/odd\u202ename", "red: \x1b[31m").Run())
	for _, args := range [][]string{{"get", "/odd\u202ename"}, {"ls", "/"}, {"ls", "-R", "/"}} {
		a := runAtSize(t, &pty.Winsize{}, nil, append(args, "--server", address)...)
		a.endsWell()
		if out := a.out.String(); strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, "?") {
			t.Errorf("%v: %q", args, out)
		}
	}
}

// TestTopAtATerminal shows that top draws at a terminal, and that Ctrl-C ends it and gives the terminal back.
func TestTopAtATerminal(t *testing.T) {
	address := serveForTest(t, t.TempDir())
	a := runAtTerminal(t, nil, "top", "--server", address, "-d", "200ms")
	a.shows("SERVER")
	a.keys("p")
	a.shows("paused")
	a.keys("\x03")
	a.shows("\x1b[?1049l")
	a.endsWell()
}

// TestShellWithoutServer shows that the shell starts without a server and says so in its prompt.
func TestShellWithoutServer(t *testing.T) {
	a := runAtTerminal(t, []string{"BELLWETHER_HISTORY=-"}, "shell", "--server", "127.0.0.1:1", "--connect-timeout", "300ms")
	a.shows("(CONNECTING) 0] ")
	a.keys("ls /\r")
	a.shows("no server could be reached within 300ms")
	a.keys("quit\r")
	a.endsWell()
}
