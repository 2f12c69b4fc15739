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

// TestMain lets the test binary also act as the started server: it prints its zoo.cfg and
// ends when its standard input ends or when it gets a signal.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		fmt.Fprintln(os.Stderr, "config", os.Args[2])
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

func program(config string) *exec.Cmd { return exec.Command(os.Args[0], "serve", config) }

// log collects lines and lets tests wait for them.
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

func TestExistingEnsembleIsReused(t *testing.T) {
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
		first, _, _ := strings.Cut(members, "\n")
		for _, want := range []string{first + ";" + e.Client(1) + "\n", "maxClientCnxns=7", "dataDir=" + e.servers[id-1].dir} {
			if !strings.Contains(text, want) {
				t.Errorf("zoo.cfg of %d lacks %q:\n%s", id, want, text)
			}
		}
		if got := strings.TrimSpace(read(fmt.Sprintf("%d/myid", id))); got != fmt.Sprint(id) {
			t.Errorf("myid of %d is %s", id, got)
		}
	}
	if _, err := Make(o); err != nil || read("members") != members {
		t.Errorf("second Make: %v, members %q", err, read("members"))
	}
	for _, n := range []int{0, 2, 4, 100} {
		o.Servers = n
		if _, err := Make(o); err == nil {
			t.Errorf("Make accepts %d servers in a folder of 3", n)
		}
	}
}

// TestObservers shows that the last servers are observers in every zoo.cfg, and that at least one server votes.
func TestObservers(t *testing.T) {
	o := Options{Dir: t.TempDir(), Servers: 5, Observers: 2, Host: "127.0.0.1"}
	e, err := Make(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(e.Folder(1), "zoo.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 5; id++ {
		_, line, _ := strings.Cut(string(text), fmt.Sprintf("server.%d=", id))
		line, _, _ = strings.Cut(line, "\n")
		if observes := strings.Contains(line, ":observer;"+e.Client(id)); observes != (id > 3) {
			t.Errorf("server %d: %s", id, line)
		}
	}
	for _, n := range []int{-1, 5} {
		if _, err := Make(Options{Dir: t.TempDir(), Servers: 5, Observers: n, Host: "127.0.0.1"}); err == nil {
			t.Errorf("%d of 5 servers are observers", n)
		}
	}
}

// TestPortsDiffer shows that the servers of a reused folder never share a port.
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
				t.Fatalf("two servers of the ensemble have port %s", port)
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
		t.Error("a running server was started again")
	}
	lines := l.wait(2)
	for _, line := range lines {
		if !strings.Contains(line, "zoo.cfg") {
			t.Errorf("line %q", line)
		}
	}
	pid := e.PID(1)
	if err := e.Kill(1); err != nil || e.PID(1) != 0 {
		t.Errorf("Kill: %v, process id %d", err, e.PID(1))
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the process still exists")
	}
	if how := e.HowEnded(1); how == nil || how.Error() != "signal: killed" {
		t.Errorf("the killed process ended with %v", how)
	}
	if err := e.Kill(1); err == nil {
		t.Error("Kill succeeded for a server that does not run")
	}
	if err := e.Start(1, program, l.add); err != nil {
		t.Error(err)
	}
	e.Stop(time.Minute)
	if e.PID(1) != 0 || e.PID(2) != 0 {
		t.Error("a server still runs after Stop")
	}
	if how := e.HowEnded(2); how == nil || how.Error() != "signal: terminated" {
		t.Errorf("the stopped process ended with %v", how)
	}
	// A server that is started after Stop would never be ended, so Start refuses.
	if err := e.Start(1, program, l.add); !errors.Is(err, ErrStopped) {
		t.Errorf("Start after Stop: %v", err)
		e.Stop(time.Minute)
	}
}

// TestProcessesEndWithTheirParent shows that the processes end when the pipes to them
// close, as they do when this process is killed.
func TestProcessesEndWithTheirParent(t *testing.T) {
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
