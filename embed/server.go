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
	"bellwether/internal/admin/web"
	"bellwether/internal/peerwire"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/wire"
)

// Errors of the calls that start or end a server.
var (
	// ErrRunning means that the server already runs.
	ErrRunning = errors.New("the server already runs")
	// ErrNotRunning means that the server was stopped, was killed or has failed.
	ErrNotRunning = errors.New("the server does not run")
)

// errKilled is the error with which a killed server ends.
var errKilled = errors.New("killed")

// Server is one server of an Ensemble. It is also an Endpoint for faults.
type Server struct {
	e       *Ensemble
	id      int
	address string // the address for clients
	bound   string // the address of the open port, which may be a wildcard
	dir     string
	disk    disk
	hung    atomic.Bool // the disk hangs
	skew    atomic.Int64

	turn chan struct{}         // a lock: holds one value while a call starts or ends the server
	life atomic.Pointer[life]  // nil while the server does not run
	err  atomic.Pointer[error] // why the server has failed
}

// life is one run of a server, from its start to its end.
type life struct {
	srv    *server.Server
	host   *host
	front  *front    // nil with InMemory
	admin  *web.Port // nil: no admin port
	stop   context.CancelFunc
	ended  chan struct{} // closed when everything of this run has ended and err is set
	err    error
	over   atomic.Bool // the server's Run has returned
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

// ID returns the server's number. The first server is 1.
func (s *Server) ID() int { return s.id }

// Address returns the host:port for clients.
func (s *Server) Address() string { return s.address }

// String returns the name of the server in faults and messages.
func (s *Server) String() string { return fmt.Sprintf("server %d", s.id) }

// Running reports whether the server runs. A paused server runs too.
func (s *Server) Running() bool { return s.life.Load() != nil }

// Paused reports whether the server is paused.
func (s *Server) Paused() bool {
	l := s.life.Load()
	return l != nil && l.paused.Load()
}

// Leads reports whether the server serves as leader, according to its own knowledge. A standalone server leads
// when it serves. After a cut, two servers may report this for a while, but a quorum follows only one of them.
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
	st := l.srv.ReplicaStatus()
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

// epoch returns the epoch in which the server serves, or 0 if it does not serve.
func (s *Server) epoch() wire.Epoch {
	if l := s.life.Load(); l != nil {
		if st := l.srv.ReplicaStatus(); st != nil {
			return st.Epoch
		}
	}
	return 0
}

// Err returns why the server has failed since its last start, or nil if it has not. A kill is not a failure.
func (s *Server) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// AwaitServing waits until the server serves clients. In an ensemble, that needs a quorum. It returns an error
// if the server ends instead.
func (s *Server) AwaitServing(ctx context.Context) error {
	for {
		l := s.life.Load()
		if l == nil {
			return fmt.Errorf("%v: %w", s, s.whyDown())
		}
		if st := l.srv.ReplicaStatus(); l.srv.Serving() && (st == nil || st.Serving) {
			return nil
		}
		var wait error
		select {
		case <-l.ended:
			continue
		default:
			wait = sleep(ctx, checkInterval)
		}
		if wait != nil {
			return fmt.Errorf("%v does not serve: %w", s, wait)
		}
	}
}

// whyDown returns the reason why a server does not run.
func (s *Server) whyDown() error {
	if err := s.Err(); err != nil {
		return err
	}
	return ErrNotRunning
}

// own waits until no other call starts or ends the server. The returned function lets the next call continue.
func (s *Server) own() func() {
	s.turn <- struct{}{}
	return func() { <-s.turn }
}

// Start starts a server that does not run, with the data on its disk. It does not wait until the server serves.
func (s *Server) Start() error { return s.start(nil) }

// start starts the server. port is an open port for its clients, or nil.
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
		endAdmin := l.runAdmin()
		l.err = l.srv.Run(ctx)
		endAdmin()
		stop()
		l.over.Store(true)
		if s.hung.Load() {
			s.disk.abandon() // calls that still wait for the disk must not delay the next start
		}
		if l.err != nil && !errors.Is(l.err, errKilled) && !errors.Is(l.err, store.ErrCrashed) {
			s.err.Store(&l.err)
		}
		if l.err != nil {
			s.e.net.kill(l.host)
		} else {
			l.host.kill() // the server's connections end after the other side has received everything
		}
		if l.front != nil {
			l.front.close()
		}
		s.life.Store(nil)
	}()
	return nil
}

// begin opens the ports and the disk for a new run.
func (s *Server) begin(port net.Listener) (*life, error) {
	switch {
	case s.e.life.Err() != nil:
		return nil, ErrClosed
	case s.life.Load() != nil:
		return nil, ErrRunning
	}
	s.disk.hang(s.hung.Load()) // a disk that hung when the last run ended still hangs
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
	words := admin.New(version)
	l.srv, err = server.New(server.Options{
		Config: s.e.config(s), FS: processFS{s.disk.fs(), &l.over}, Log: slog.New(serverLog{s.e.opt.Logger.With("sid", s.id).Handler(), l.host}), FourLetterWords: words.Word,
		Hooks: server.Hooks{
			Clients: inner,
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return s.e.net.dial(ctx, l.host, address)
			},
			Listen: func(address string) (net.Listener, error) { return s.e.net.listen(l.host, address) },
			Skew:   func() time.Duration { return time.Duration(s.skew.Load()) },
		},
	})
	if err == nil {
		if err = s.openAdmin(l, words); err != nil {
			err = errors.Join(err, l.srv.Close())
		}
	}
	if err != nil {
		s.e.net.kill(l.host)
		if l.front != nil {
			l.front.close()
		}
		return nil, err
	}
	return l, nil
}

// openAdmin opens the admin port of a run, if Options ask for one.
func (s *Server) openAdmin(l *life, words *admin.Admin) (err error) {
	if s.e.opt.Admin {
		l.admin, err = web.Open(web.Options{Server: l.srv, Admin: words, Log: s.e.opt.Logger.With("sid", s.id)})
	}
	return err
}

// runAdmin answers requests to the admin port. The returned function ends that.
func (l *life) runAdmin() (end func()) {
	if l.admin == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.admin.Run(ctx) // it fails only if somebody else closes the port
	}()
	return func() {
		cancel()
		<-ended
	}
}

// AdminURL returns the address of the server's admin port, such as http://127.0.0.1:40123/; empty if the server does
// not run or has none. Each start of the server opens another port.
func (s *Server) AdminURL() string {
	if l := s.life.Load(); l != nil && l.admin != nil {
		return l.admin.URL()
	}
	return ""
}

// version is the version that the servers report.
const version = "3.9.5-bellwether-embedded"

// running is like own and also returns the current run. It returns an error if the server does not run.
func (s *Server) running() (l *life, give func(), err error) {
	give = s.own()
	if l = s.life.Load(); l == nil {
		give()
		return nil, nil, fmt.Errorf("%v: %w", s, ErrNotRunning)
	}
	return l, give, nil
}

// Stop ends the server in an orderly way: what it has acknowledged is on its disk, and its sessions continue on
// the other servers or after its next start. Stop resumes a paused server first.
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

// Kill ends the server as kill -9 ends a process: its connections are reset, and the disk keeps everything that
// was written.
func (s *Server) Kill() error { return s.abort(s.disk.keep, func() {}) }

// Crash ends the server as a loss of power does. Unlike Kill, it loses what was written to the disk and not
// fsynced.
func (s *Server) Crash() error { return s.abort(s.disk.lose, s.disk.fail) }

// abort ends the server at once. It calls the function before at the beginning, and the
// function after when the server has ended.
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

// Pause stops the server as SIGSTOP does: it reads, writes and decides nothing. Its connections stay open, and
// its clocks continue.
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

// HangDisk makes the server's disk hang without an error: no write and no fsync returns until ResumeDisk, even
// if the server ends meanwhile. Reads still return. Stop and Kill of a server whose disk hangs take some
// seconds, and a server that is started on such a disk waits for it.
func (s *Server) HangDisk() {
	s.hung.Store(true)
	s.disk.hang(true)
}

// ResumeDisk ends HangDisk: the waiting writes are carried out.
func (s *Server) ResumeDisk() {
	s.hung.Store(false)
	s.disk.hang(false)
}

// DiskHangs reports whether the disk hangs.
func (s *Server) DiskHangs() bool { return s.hung.Load() }

// SkewClock shifts the server's wall clock by d, from now on and also after a restart. The server measures
// durations with another clock, which is not affected.
func (s *Server) SkewClock(d time.Duration) { s.skew.Store(int64(d)) }

// Skew returns the shift of the server's wall clock.
func (s *Server) Skew() time.Duration { return time.Duration(s.skew.Load()) }
