package target

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/portblock"
)

// Kind names a server implementation.
type Kind string

// The two implementations under comparison.
const (
	Apache     Kind = "apache"
	Bellwether Kind = "bellwether"
)

const (
	startTimeout = 3 * time.Minute      // from exec to the first answer, on a loaded machine
	stopTimeout  = time.Minute          // from SIGTERM to the end of the process
	pollInterval = 5 * time.Millisecond // between two readiness questions
	wordTimeout  = time.Minute          // one four-letter word, connect to close
	pollTimeout  = 5 * time.Second      // the same, where it is asked again
	logTail      = 60                   // lines of a server's log shown on failure
)

// Password is the password of the user "super", who may do anything, on every
// target.
const Password = "interop"

// Kinds returns the implementations that a test has to run over.
// INTEROP_TARGETS, a comma list, narrows it while one side is being worked on.
func Kinds() []Kind {
	list := os.Getenv("INTEROP_TARGETS")
	if list == "" {
		return []Kind{Apache, Bellwether}
	}
	var kinds []Kind
	for name := range strings.SplitSeq(list, ",") {
		kinds = append(kinds, Kind(name))
	}
	return kinds
}

// Server is one server process on loopback. Its methods are for one goroutine.
type Server struct {
	Kind Kind
	Addr string // host:port of the client port; survives Restart
	Data string // dataDir and dataLogDir

	dir        string // zoo.cfg and the log
	jvm        []string
	reapMS     int
	properties []string   // further ones, as name=value
	place      Place      // of a server of an ensemble
	lines      []string   // of zoo.cfg behind the keys: the members
	*process              // that runs now, or was the last to; nil: none yet
	left       []*process // those before it that ended by themselves
}

// Options vary a server's configuration.
type Options struct {
	Data  string            // an existing data directory; empty means a new one
	Extra map[string]string // further lines of zoo.cfg

	// JVM are the options of Apache's Java process; nil means the variable JVM,
	// which is for quick starts, not for speed.
	JVM []string

	// Reap is how often the server looks for empty containers and lapsed TTL
	// nodes; 0 means twice a second.
	Reap time.Duration
}

// Start runs a server of the given kind and returns when it answers. The
// directory dir receives its configuration, log and, unless Options names one,
// its data. The caller stops it with Stop or Kill.
func Start(kind Kind, dir string, opt Options) (*Server, error) {
	data := opt.Data
	if data == "" {
		data = filepath.Join(dir, "data")
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	reap := cmp.Or(opt.Reap, 500*time.Millisecond)
	s := &Server{Kind: kind, Addr: addr, Data: data, dir: dir, jvm: opt.JVM, reapMS: int(reap.Milliseconds())}
	if s.jvm == nil {
		s.jvm = JVM
	}
	if err := s.writeConfig(opt.Extra); err != nil {
		return nil, err
	}
	return s, s.launch()
}

// StartFor is Start for one test: the server lives in a directory of the test
// and is stopped at its end; a failing test prints the end of its log.
func StartFor(t testing.TB, kind Kind, opt Options) *Server {
	t.Helper()
	s, err := Start(kind, t.TempDir(), opt)
	if s != nil {
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(Report(s))
			}
			s.Kill()
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Stop asks the process to end and waits for it.
func (s *Server) Stop() error {
	if err := s.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.done:
		return nil
	case <-time.After(stopTimeout):
		s.Kill()
		return fmt.Errorf("%s server did not end within %v of SIGTERM", s.Kind, stopTimeout)
	}
}

// Kill ends the process without warning and waits for it. Killing a server that
// has ended already does nothing.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.signal(syscall.SIGKILL) // already ended: nothing to do
	<-s.done
}

// Restart kills the process and starts it again over the same data directory
// and the same address.
func (s *Server) Restart() error {
	s.Kill()
	return s.launch()
}

// PID is the process that runs now.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns the end of what the server wrote, without the questions of
// AwaitLeader and others.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "Processing srvr command") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-logTail):], "")
}

func (s *Server) logPath() string    { return filepath.Join(s.dir, "server.log") }
func (s *Server) configPath() string { return filepath.Join(s.dir, "zoo.cfg") }

// launch runs the process and waits until it serves.
func (s *Server) launch() error {
	if err := s.Begin(); err != nil {
		return err
	}
	if err := s.awaitServing(); err != nil {
		s.Kill()
		return fmt.Errorf("%s server: %w; its log ends:\n%s", s.Kind, err, s.Log())
	}
	return nil
}

// Begin runs the process and does not wait until it serves, which a server of
// an ensemble does only with others.
func (s *Server) Begin() error {
	cmd, err := s.command()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start of the %s server: %w", s.Kind, err)
	}
	s.follow(cmd)
	return nil
}

// follow makes a process the one that runs now.
func (s *Server) follow(cmd *exec.Cmd) {
	s.left = s.byItself()
	s.process = watched(cmd)
}

// awaitServing polls srvr until the server says that it serves.
func (s *Server) awaitServing() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if text, err := s.word("srvr", pollTimeout); err == nil && strings.HasPrefix(text, "Zookeeper version:") {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("the process ended before it served: %v", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("not serving on %s within %v", s.Addr, startTimeout)
		case <-tick.C:
		}
	}
}

// Word sends a four-letter word and returns the answer.
func Word(addr, word string) (string, error) {
	return (&Server{Addr: addr}).Word(word)
}

// Word sends a four-letter word from where the server runs and returns the
// answer.
func (s *Server) Word(word string) (string, error) { return s.word(word, wordTimeout) }

func (s *Server) word(word string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := s.place.dial(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(word)); err != nil {
		return "", err
	}
	var answer strings.Builder
	_, err = conn.(*net.TCPConn).WriteTo(&answer)
	return answer.String(), err
}

// freeAddr returns a loopback address that nobody listens on just now.
func freeAddr() (string, error) { return freeAddrOf("127.0.0.1") }

func freeAddrOf(host string) (string, error) {
	free, err := portblock.Free(host, 1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(free[0])), nil
}
