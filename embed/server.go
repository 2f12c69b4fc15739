package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/peerwire"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/wire"
)

// Errors of calls that start or end a server.
var (
	// ErrRunning says that the server runs already.
	ErrRunning = errors.New("the server runs")
	// ErrNotRunning says that the server is stopped, was killed or has failed.
	ErrNotRunning = errors.New("the server does not run")
)

// errKilled is the reason for which a killed server ends.
var errKilled = errors.New("killed")

// Server is one server of an Ensemble. It is an Endpoint of faults.
type Server struct {
	e       *Ensemble
	id      int
	address string // for clients
	bound   string // the port's own, which may be a wildcard
	dir     string
	disk    disk
	hung    atomic.Bool // the disk hangs
	skew    atomic.Int64

	turn chan struct{}         // of one: held by who starts or ends the server
	life atomic.Pointer[life]  // nil: it does not run
	err  atomic.Pointer[error] // why it has failed
}

// life is one run of a server, from its start to its end.
type life struct {
	srv    *server.Server
	host   *host
	front  *front // nil in memory
	stop   context.CancelFunc
	ended  chan struct{} // closed when nothing of it is left and err is set
	err    error
	over   atomic.Bool // Run has returned
	paused atomic.Bool
	thaw   func()
}

func newServer(e *Ensemble, id int) *Server {
	s := &Server{e: e, id: id, dir: "data", turn: make(chan struct{}, 1)}
	if e.opt.Dir == "" {
		s.disk = memDisk{store.NewMem(uint64(id))}
	} else {
		s.dir = filepath.Join(e.opt.Dir, strconv.Itoa(id))
		s.disk = newRealDisk()
	}
	return s
}

// ID returns the server's number, from 1.
func (s *Server) ID() int { return s.id }

// Address returns the host:port at which the server serves clients.
func (s *Server) Address() string { return s.address }

// String names the server in faults and messages.
func (s *Server) String() string { return fmt.Sprintf("server %d", s.id) }

// Running reports whether the server runs, paused or not.
func (s *Server) Running() bool { return s.life.Load() != nil }

// Paused reports whether the server is paused.
func (s *Server) Paused() bool {
	l := s.life.Load()
	return l != nil && l.paused.Load()
}

// Leads reports whether the server believes that it leads and serves; a standalone
// server does when it serves. After a cut, two servers may report it for a while, but no
// quorum follows one of them.
func (s *Server) Leads() bool {
	role := s.Role()
	return role == "leader" || role == "standalone"
}

// Role returns standalone, leader, follower, looking, paused or down.
func (s *Server) Role() string {
	l := s.life.Load()
	if l == nil {
		return "down"
	}
	st := l.srv.Standing()
	switch {
	case l.paused.Load():
		return "paused"
	case s.e.members == nil && l.srv.Serving():
		return "standalone"
	case st == nil || !st.Serving:
		return "looking"
	case st.Role == peerwire.Leading:
		return "leader"
	}
	return "follower"
}

// epoch returns the epoch in which the server serves, 0 if there is none.
func (s *Server) epoch() wire.Epoch {
	if l := s.life.Load(); l != nil {
		if st := l.srv.Standing(); st != nil {
			return st.Epoch
		}
	}
	return 0
}

// Err returns why the server has failed since its last start, nil if it has not. Having
// been killed is no failure.
func (s *Server) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// AwaitServing waits until the server serves clients, which in an ensemble needs a
// quorum. It returns an error if the server ends instead.
func (s *Server) AwaitServing(ctx context.Context) error {
	for {
		l := s.life.Load()
		if l == nil {
			return fmt.Errorf("%v: %w", s, s.whyDown())
		}
		if st := l.srv.Standing(); l.srv.Serving() && (st == nil || st.Serving) {
			return nil
		}
		var wait error
		select {
		case <-l.ended:
			continue
		default:
			wait = sleep(ctx, lookAgain)
		}
		if wait != nil {
			return fmt.Errorf("%v does not serve: %w", s, wait)
		}
	}
}

// whyDown returns why a server does not run.
func (s *Server) whyDown() error {
	if err := s.Err(); err != nil {
		return err
	}
	return ErrNotRunning
}

// own takes the right to start and end the server; the returned function gives it back.
func (s *Server) own() func() {
	s.turn <- struct{}{}
	return func() { <-s.turn }
}

// Start starts a server that does not run, with what is on its disk. It does not wait
// until the server serves.
func (s *Server) Start() error { return s.start(nil) }

// start is Start with a port that is open already, or nil.
func (s *Server) start(port net.Listener) error {
	defer s.own()()
	l, err := s.begin(port)
	if err != nil {
		if port != nil {
			port.Close()
		}
		return fmt.Errorf("%v: %w", s, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	s.err.Store(nil)
	s.life.Store(l)
	go func() {
		defer close(l.ended)
		l.err = l.srv.Run(ctx)
		stop()
		l.over.Store(true)
		if s.hung.Load() {
			s.disk.abandon() // it has ended without those that wait for the disk
		}
		if l.err != nil && !errors.Is(l.err, errKilled) && !errors.Is(l.err, store.ErrCrashed) {
			s.err.Store(&l.err)
		}
		if l.err != nil {
			s.e.net.kill(l.host)
		} else {
			l.host.kill() // its connections are closed, behind what they still carry
		}
		if l.front != nil {
			l.front.close()
		}
		s.life.Store(nil)
	}()
	return nil
}

// begin opens the ports and the disk.
func (s *Server) begin(port net.Listener) (*life, error) {
	switch {
	case s.e.life.Err() != nil:
		return nil, ErrClosed
	case s.life.Load() != nil:
		return nil, ErrRunning
	}
	s.disk.hang(s.hung.Load()) // as the end of the server before has left it
	l := &life{host: newHost(s.id), ended: make(chan struct{})}
	inner, err := s.e.net.listen(l.host, s.address)
	if err != nil {
		return nil, err
	}
	if !s.e.opt.InMemory {
		if port == nil {
			if port, err = net.Listen("tcp", s.bound); err != nil {
				inner.Close()
				return nil, err
			}
		}
		l.front = &front{ln: port, inner: inner}
		l.front.open()
	}
	l.srv, err = server.New(server.Options{
		Config: s.e.config(s), FS: processFS{s.disk.fs(), &l.over}, Log: slog.New(voice{s.e.opt.Logger.With("sid", s.id).Handler(), l.host}), Words: admin.Words(version),
		Seams: server.Seams{
			Clients: inner,
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return s.e.net.dial(ctx, l.host, address)
			},
			Listen: func(address string) (net.Listener, error) { return s.e.net.listen(l.host, address) },
			Skew:   func() time.Duration { return time.Duration(s.skew.Load()) },
		},
	})
	if err != nil {
		s.e.net.kill(l.host)
		if l.front != nil {
			l.front.close()
		}
		return nil, err
	}
	return l, nil
}

// version is what the servers call themselves where they are asked.
const version = "3.9.5-bellwether-embedded"

// running takes the right to end the server, which must run.
func (s *Server) running() (l *life, give func(), err error) {
	give = s.own()
	if l = s.life.Load(); l == nil {
		give()
		return nil, nil, fmt.Errorf("%v: %w", s, ErrNotRunning)
	}
	return l, give, nil
}

// Stop shuts the server down in order: what it has acknowledged is on its disk, and its
// sessions continue on the other servers or after its next start. A paused server is
// resumed first.
func (s *Server) Stop() error {
	l, give, err := s.running()
	if err != nil {
		return err
	}
	defer give()
	s.resume(l)
	l.stop()
	<-l.ended
	return l.err
}

// Kill ends the server as the end of its process would: its connections are reset, and
// the disk keeps everything that was written.
func (s *Server) Kill() error { return s.abort(s.disk.keep, func() {}) }

// Crash ends the server as a loss of power would. Unlike Kill, it loses what was written
// to the disk and not fsynced.
func (s *Server) Crash() error { return s.abort(s.disk.lose, s.disk.fail) }

// abort ends the server at once. The disk's functions before and after are called before
// and after that.
func (s *Server) abort(after func() error, before func()) error {
	l, give, err := s.running()
	if err != nil {
		return err
	}
	defer give()
	before()
	s.e.net.kill(l.host)
	if l.front != nil {
		l.front.cut()
	}
	l.srv.Abort(errKilled)
	<-l.ended
	return after()
}

// Pause stops the server as SIGSTOP does: it does not read, write or decide, while its
// connections stay open and time goes on.
func (s *Server) Pause() error {
	l, give, err := s.running()
	if err != nil {
		return err
	}
	defer give()
	if l.paused.CompareAndSwap(false, true) {
		l.host.hold(true)
		l.thaw = l.srv.Freeze()
	}
	return nil
}

// Resume continues a paused server.
func (s *Server) Resume() error {
	l, give, err := s.running()
	if err != nil {
		return err
	}
	defer give()
	s.resume(l)
	return nil
}

func (s *Server) resume(l *life) {
	if l.paused.CompareAndSwap(true, false) {
		l.thaw()
		l.host.hold(false)
	}
}

// HangDisk lets the server's disk hang, like a disk that fails without an error: no
// write and no fsync returns until ResumeDisk, even if the server ends meanwhile. Reads
// go on. Stop and Kill of a server whose disk hangs take some seconds, and Start waits
// for the disk.
func (s *Server) HangDisk() {
	s.hung.Store(true)
	s.disk.hang(true)
}

// ResumeDisk ends HangDisk: the writes that wait are carried out.
func (s *Server) ResumeDisk() {
	s.hung.Store(false)
	s.disk.hang(false)
}

// DiskHangs reports whether the disk hangs.
func (s *Server) DiskHangs() bool { return s.hung.Load() }

// SkewClock makes the server's wall clock wrong by d, from now on and after a restart.
// The server measures durations with another clock, which stays right.
func (s *Server) SkewClock(d time.Duration) { s.skew.Store(int64(d)) }

// Skew returns by how much the server's clock is wrong.
func (s *Server) Skew() time.Duration { return time.Duration(s.skew.Load()) }
