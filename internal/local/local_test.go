package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the server that is started: it says what
// its zoo.cfg is and ends with its standard input, or when it is told to.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		fmt.Fprintln(os.Stderr, "config", os.Args[2])
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

func program(config string) *exec.Cmd { return exec.Command(os.Args[0], "serve", config) }

// log collects lines and wakes who waits for one.
type log struct {
	mu    sync.Mutex
	more  *sync.Cond
	lines []string
}

func newLog() *log {
	l := &log{}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *log) add(id int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprint(id, " ", text))
	l.more.Broadcast()
}

func (l *log) wait(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) < n {
		l.more.Wait()
	}
	return l.lines
}

func TestAnEnsembleIsTakenUpAgain(t *testing.T) {
	o := Options{Dir: t.TempDir(), Servers: 3, Host: "127.0.0.1", Settings: []string{"maxClientCnxns=7"}}
	e, err := Make(o)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(o.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	members := read("members")
	if n := strings.Count(members, "server."); n != 3 {
		t.Errorf("%d members in %q", n, members)
	}
	for id := 1; id <= 3; id++ {
		text := read(fmt.Sprintf("%d/zoo.cfg", id))
		for _, want := range []string{members, "maxClientCnxns=7", "dataDir=" + e.servers[id-1].dir} {
			if !strings.Contains(text, want) {
				t.Errorf("zoo.cfg of %d lacks %q:\n%s", id, want, text)
			}
		}
		if got := strings.TrimSpace(read(fmt.Sprintf("%d/myid", id))); got != fmt.Sprint(id) {
			t.Errorf("myid of %d is %s", id, got)
		}
	}
	if _, err := Make(o); err != nil || read("members") != members {
		t.Errorf("taken up again: %v, members %q", err, read("members"))
	}
	for _, n := range []int{0, 2, 4, 100} {
		o.Servers = n
		if _, err := Make(o); err == nil {
			t.Errorf("%d servers in a folder of 3", n)
		}
	}
}

// However often a folder is taken up, its servers never get a port twice.
func TestPortsDiffer(t *testing.T) {
	o := Options{Dir: t.TempDir(), Servers: 99, Host: "127.0.0.1"}
	for range 10 {
		e, err := Make(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(o.Dir, membersFile))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, port := range regexp.MustCompile(`:\d+`).FindAllString(string(text)+e.Clients(), -1) {
			if seen[port] {
				t.Fatalf("two of the ensemble have port %s", port)
			}
			seen[port] = true
		}
		if len(seen) != 3*o.Servers {
			t.Fatalf("%d ports for %d servers", len(seen), o.Servers)
		}
	}
}

func TestProcessesStartAndEnd(t *testing.T) {
	e, err := Make(Options{Dir: t.TempDir(), Servers: 2, Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	l := newLog()
	for id := 1; id <= 2; id++ {
		if err := e.Start(id, program, l.add); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Start(1, program, l.add); err == nil {
		t.Error("a running server was started")
	}
	lines := l.wait(2)
	for _, line := range lines {
		if !strings.Contains(line, "zoo.cfg") {
			t.Errorf("line %q", line)
		}
	}
	pid := e.PID(1)
	if err := e.Kill(1); err != nil || e.PID(1) != 0 {
		t.Errorf("killed: %v, its process is %d", err, e.PID(1))
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the process is still there")
	}
	if how := e.HowEnded(1); how == nil || how.Error() != "signal: killed" {
		t.Errorf("it ended: %v", how)
	}
	if err := e.Kill(1); err == nil {
		t.Error("a server was killed twice")
	}
	if err := e.Start(1, program, l.add); err != nil {
		t.Error(err)
	}
	e.Stop(time.Minute)
	if e.PID(1) != 0 || e.PID(2) != 0 {
		t.Error("a server runs on")
	}
	if how := e.HowEnded(2); how == nil || how.Error() != "signal: terminated" {
		t.Errorf("it ended: %v", how)
	}
	// Who was about to start one again must not leave it behind.
	if err := e.Start(1, program, l.add); !errors.Is(err, ErrStopped) {
		t.Errorf("started after the end: %v", err)
		e.Stop(time.Minute)
	}
}

// The processes end with the pipe to them, as they do when this one is killed.
func TestProcessesEndWithTheirStarter(t *testing.T) {
	e, err := Make(Options{Dir: t.TempDir(), Servers: 1, Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	l := newLog()
	if err := e.Start(1, program, l.add); err != nil {
		t.Fatal(err)
	}
	l.wait(1)
	ended := e.Ended(1)
	if err := e.process(1).alive.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}
