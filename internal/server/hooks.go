package server

import (
	"context"
	"net"
	"time"

	"bellwether/internal/replica"
	"bellwether/wire"
)

// Hooks replace parts of a server's environment, for ensembles within a process and for faults
// on demand. The zero value replaces nothing.
type Hooks struct {
	// Clients accepts client connections in place of the configured port: clientPort, or
	// secureClientPort if there is no clientPort. The server closes it.
	Clients net.Listener
	// Dial and Listen replace the network to other servers (see peer.Options).
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	Listen func(address string) (net.Listener, error)
	// Skew returns by how much the wall clock is wrong. It does not change measured
	// durations. Several goroutines call it.
	Skew func() time.Duration
	// CounterMax is the last zxid counter of an epoch, after which a new epoch begins; 0:
	// the limit of the protocol.
	CounterMax uint32
	// PreferMS is for how long a server that leaderPriority prefers must have been fit to lead;
	// 0: 10 s.
	PreferMS int64
	// Free returns the free space of the disk, in bytes; nil: the file system is asked.
	Free func() float64
	// Yielded is called by the loop in the middle of long work, before the loop checks for
	// due heartbeats.
	Yielded func()
}

// openClientPorts opens the client ports of the configuration.
func (s *Server) openClientPorts() (err error) {
	c := s.config()
	if err := checkClientPorts(c); err != nil {
		return err
	}
	switch hook := s.opt.Hooks.Clients; {
	case hook != nil && c.Client.IsZero() && !c.TLS.Client.IsZero():
		s.secureClient = hook
		return nil
	case hook != nil:
		s.client = hook
	case !c.Client.IsZero():
		if s.client, err = listen(c.Client, c.Limits.KeepAlive, "clientPort"); err != nil {
			return err
		}
	}
	if !c.TLS.Client.IsZero() {
		if s.secureClient, err = listen(c.TLS.Client, c.Limits.KeepAlive, "secureClientPort"); err != nil {
			s.closeClientPorts()
		}
	}
	return err
}

// closeClientPorts closes the client ports, so that no connection is accepted any more.
func (s *Server) closeClientPorts() {
	for _, ln := range []net.Listener{s.clientPort(), s.secureClient} {
		if ln != nil {
			ln.Close()
		}
	}
}

// skewed returns a time as the wall clock shows it.
func (s *Server) skewed(t time.Time) time.Time {
	if s.opt.Hooks.Skew == nil {
		return t
	}
	return t.Add(s.opt.Hooks.Skew())
}

// Abort ends the server at once, as the end of its process would. No request is answered,
// and no other server or client is told. Run returns why.
func (s *Server) Abort(why error) { s.fail(why) }

// Freeze stops the loop: it decides nothing until the caller calls thaw or the server is
// aborted. Freeze returns when the loop has stopped.
func (s *Server) Freeze() (thaw func()) {
	resume := make(chan struct{})
	stands := make(chan struct{})
	s.inbox.ask(func(*loop) {
		close(stands)
		select {
		case <-resume:
		case <-s.dead:
		}
	})
	select {
	case <-stands:
	case <-s.loopEnded:
	case <-s.dead:
	}
	return func() { close(resume) }
}

// Expire ends a session as if nothing had been heard from it for too long. Only a leader or
// a standalone server does so, and a leader does not while it transfers leadership. A
// caller that needs the session to end must repeat the call until it has ended.
func (s *Server) Expire(id wire.SessionID) {
	s.ask(func(l *loop) { l.replica.Step(l.now, replica.Expire{Session: id}) })
}
