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

// The two implementations that the tests compare.
const (
	Apache     Kind = "apache"
	Bellwether Kind = "bellwether"
)

const (
	startTimeout = 3 * time.Minute      // from exec to the first answer, on a busy machine
	stopTimeout  = time.Minute          // from SIGTERM to the end of the process
	pollInterval = 5 * time.Millisecond // between two requests whether the server serves
	wordTimeout  = time.Minute          // limit for one four-letter word, from connect to close
	pollTimeout  = 5 * time.Second      // time limit of a word that is sent again after a failure
	logTail      = 60                   // lines of a server's log shown on failure
)

// Password is the password of the user "super", who has all permissions, on every server.
const Password = "interop"

// Kinds returns the implementations against which a test must run. The variable
// INTEROP_TARGETS, a comma-separated list, selects some of them.
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

// Server is one server process on loopback. Its methods are not safe for concurrent use.
type Server struct {
	Kind Kind
	Addr string // host:port of the client port; Restart keeps it
	Data string // dataDir and dataLogDir

	dir        string // contains zoo.cfg and the log
	jvm        []string
	reapMS     int
	properties []string   // additional Java properties, as name=value
	place      Place      // where a server of an ensemble runs
	lines      []string   // the server lines of zoo.cfg
	*process              // the current or last process; nil: none yet
	left       []*process // earlier processes that ended by themselves
}

// Options change a server's configuration.
type Options struct {
	Data  string            // an existing data directory; empty: a new one
	Extra map[string]string // additional lines of zoo.cfg

	// JVM are the options of Apache's Java process; nil means the variable JVM, whose options
	// are for a quick start, not for speed.
	JVM []string

	// Properties are additional Java properties, as name=value. Both kinds of server get them.
	Properties []string

	// Reap is the interval at which the server checks for empty containers and expired TTL
	// znodes; 0 means twice a second.
	Reap time.Duration
}

// Start starts a server and returns when it answers. dir receives its configuration, its
// log and, unless Options gives a directory, its data. The caller must call Stop or Kill.
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
	s := &Server{Kind: kind, Addr: addr, Data: data, dir: dir, jvm: opt.JVM, reapMS: int(reap.Milliseconds()), properties: opt.Properties}
	if s.jvm == nil {
		s.jvm = JVM
	}
	if err := s.writeConfig(opt.Extra); err != nil {
		return nil, err
	}
	return s, s.launch()
}

// StartFor is Start for one test. The server uses a directory of the test and is killed at
// the end of the test. If the test fails, the end of its log is printed.
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

// Stop asks the process to end (SIGTERM) and waits for its end.
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

// Kill kills the process and waits for its end. It does nothing if the process has ended.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.signal(syscall.SIGKILL) // an error means that the process has already ended
	<-s.done
}

// Restart kills the process and starts it again with the same data directory and address.
func (s *Server) Restart() error {
	s.Kill()
	return s.launch()
}

// PID returns the process id of the current process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns the end of the server's log, without the lines that AwaitLeader and similar functions cause.
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

// ConfigPath returns the path of the server's zoo.cfg.
func (s *Server) ConfigPath() string { return filepath.Join(s.dir, "zoo.cfg") }

// LogPath returns the file to which the server logs.
func (s *Server) LogPath() string { return s.logPath() }

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

// launch starts the process and waits until it serves.
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

// Begin starts the process and does not wait until it serves: a server of an ensemble serves
// only together with others.
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

// follow makes cmd the current process.
func (s *Server) follow(cmd *exec.Cmd) {
	s.left = s.byItself()
	s.process = watched(cmd)
}

// awaitServing sends srvr until the answer shows that the server serves.
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

// Word sends a four-letter word from the place where the server runs and returns the answer.
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

// FreePort returns a port of the loopback address on which nobody listens at the moment.
func FreePort(t testing.TB) string {
	t.Helper()
	free, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(free[0])
}

// freeAddr returns a loopback address on which nobody listens at the moment.
func freeAddr() (string, error) { return freeAddrOf("127.0.0.1") }

func freeAddrOf(host string) (string, error) {
	free, err := portblock.Free(host, 1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(free[0])), nil
}
