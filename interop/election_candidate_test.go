package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

const (
	electionTick    = 500 * time.Millisecond // tickTime of the servers, which is the confirmation delay of a standalone server
	electionTimeout = 40 * time.Second       // session timeout of candidates that must not expire
	briefTimeout    = 5 * time.Second        // session timeout of candidates that must expire
	electionWait    = 3 * time.Minute        // timeout of every wait
)

// candidate is a candidate with its own client. It reports what happens to it.
type candidate struct {
	id    string
	c     *zk.Client
	e     *recipe.Election
	gone  atomic.Bool // all its new connections fail
	waits chan string // the candidate that it waits for, each time it begins to wait for another one
	leads chan *recipe.Handle
	ended chan error // the error of Campaign if it does not lead
	woken atomic.Int32
}

// stand starts a candidate and returns when its bid exists.
func stand(t *testing.T, addr, parent, id string, timeout time.Duration, o recipe.ElectionOptions) *candidate {
	t.Helper()
	k := newCandidate(t, addr, parent, id, timeout, o)
	k.campaign(t.Context())
	select {
	case who := <-k.waits:
		k.waits <- who
	case h := <-k.leads:
		k.leads <- h
	case err := <-k.ended:
		t.Fatalf("%s: %v", id, err)
	case <-time.After(electionWait):
		t.Fatalf("%s does not stand after %v", id, electionWait)
	}
	return k
}

func newCandidate(t *testing.T, addr, parent, id string, timeout time.Duration, o recipe.ElectionOptions) *candidate {
	t.Helper()
	k := &candidate{id: id, waits: make(chan string, 1000), leads: make(chan *recipe.Handle, 1), ended: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	var err error
	if k.c, err = zk.Connect(ctx, addr, &zk.Options{SessionTimeout: timeout, LeaseDelay: electionTick, Dial: k.dial}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !k.gone.Load() {
			k.close(t)
		}
	})
	o.Logger = slog.New(&listener{k: k})
	if k.e, err = recipe.NewElection(k.c, parent, id, &o); err != nil {
		t.Fatal(err)
	}
	return k
}

var errGone = errors.New("cut off for good")

func (k *candidate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if k.gone.Load() {
		return nil, errGone
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// close closes the client if the server still knows it.
func (k *candidate) close(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), electionWait)
	defer cancel()
	if err := k.c.Close(ctx); err != nil {
		t.Errorf("%s: %v", k.id, err)
	}
}

func (k *candidate) campaign(ctx context.Context) {
	go func() {
		if h, err := k.e.Campaign(ctx); err != nil {
			k.ended <- err
		} else {
			k.leads <- h
		}
	}()
}

// listener follows the steps of a candidate in its log.
type listener struct{ k *candidate }

func (l *listener) Enabled(context.Context, slog.Level) bool { return true }
func (l *listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *listener) WithGroup(string) slog.Handler            { return l }

func (l *listener) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, " woken by ") {
		l.k.woken.Add(1)
	}
	if _, who, ok := strings.Cut(r.Message, " waits for "); ok {
		l.k.waits <- who
	}
	return nil
}

// remote is a candidate in another process, which the test can stop and kill.
type remote struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines chan string   // the lines that the process prints
	done  chan struct{} // closed when the process has ended
}

// Environment variables that make a test process a candidate.
const (
	remoteAddr   = "ELECTION_CANDIDATE_ADDR"
	remoteParent = "ELECTION_CANDIDATE_PARENT"
	remoteState  = "ELECTION_CANDIDATE_STATE"
)

func init() {
	if addr := os.Getenv(remoteAddr); addr != "" {
		if err := remoteMain(addr, os.Getenv(remoteParent), os.Getenv(remoteState)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// standRemote starts a candidate in another process and waits for its bid. If state is not
// empty, the candidate makes guarded writes to that path while it leads.
func standRemote(t *testing.T, addr, parent, state string) *remote {
	t.Helper()
	r := startRemote(t, remoteAddr+"="+addr, remoteParent+"="+parent, remoteState+"="+state)
	r.await(t, "stands")
	return r
}

// startRemote runs this test program with additional environment variables.
func startRemote(t *testing.T, env ...string) *remote {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return begin(t, cmd)
}

// begin starts a process. Its lines are read until it and all its children have closed their
// output.
func begin(t *testing.T, cmd *exec.Cmd) *remote {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &remote{cmd: cmd, in: in, lines: make(chan string, 100_000), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			r.lines <- scan.Text()
		}
		_ = cmd.Wait() // the exit status of a killed process does not matter
	}()
	t.Cleanup(r.kill)
	return r
}

// await returns the rest of the next line that begins with the word.
func (r *remote) await(t *testing.T, word string) string {
	t.Helper()
	timeout := time.After(electionWait)
	for {
		select {
		case line := <-r.lines:
			if rest, ok := strings.CutPrefix(line, word); ok {
				return strings.TrimSpace(rest)
			}
			if strings.HasPrefix(line, "failed:") {
				t.Fatal(line)
			}
		case <-timeout:
			t.Fatalf("the process does not say %q within %v", word, electionWait)
		}
	}
}

// kill kills the process with SIGKILL.
func (r *remote) kill() {
	_ = r.cmd.Process.Kill() // the process may have ended already
	<-r.done
}

// remoteMain is the main function of the candidate's process. It prints when its bid exists,
// when it leads and when it loses, until its input ends.
func remoteMain(addr, parent, state string) error {
	ctx, cancel := untilInputEnds()
	defer cancel()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	say := sayer{stands: make(chan struct{})}
	e, err := recipe.NewElection(c, parent, "remote", &recipe.ElectionOptions{Logger: slog.New(&say)})
	if err != nil {
		return err
	}
	h, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	<-say.stands // the log line about the bid comes a little later
	say.line("leads", h.Token())
	if state == "" {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		left := h.Left()
		_, err := h.Do(ctx, zk.SetOp(state, fmt.Appendf(nil, "%d", h.Token()), zk.AnyVersion))
		switch {
		case err == nil:
			say.line("wrote", left > 0)
		case errors.Is(err, recipe.ErrNotLeader):
			say.line("over", h.Left() > 0, h.Context().Err() != nil)
			return nil
		default:
			say.line("unsure", err)
		}
	}
	return nil
}

// untilInputEnds returns a context that ends when the standard input ends.
func untilInputEnds() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}

// sayer prints lines, and learns from the log when the bid exists.
type sayer struct {
	listener
	stands chan struct{} // closed when the log line has appeared

	mu    sync.Mutex
	stood bool
}

func (s *sayer) line(args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Println(args...)
}

func (s *sayer) Handle(_ context.Context, r slog.Record) error {
	settled := strings.Contains(r.Message, " waits for ") || strings.Contains(r.Message, " leads, ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if settled && !s.stood {
		s.stood = true
		fmt.Println("stands")
		close(s.stands)
	}
	if strings.Contains(r.Message, " waits for ") {
		fmt.Println("waits")
	}
	return nil
}
