package server

import (
	"context"
	"net"
	"time"

	"bellwether/internal/replica"
	"bellwether/wire"
)

// Seams are where a server's surroundings can be replaced: for ensembles
// within a process, and for faults on demand. The zero value replaces nothing.
type Seams struct {
	// Clients accepts client connections in place of the configured port; the
	// server closes it.
	Clients net.Listener
	// Dial and Listen are the network to other servers, see peer.Options.
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	Listen func(address string) (net.Listener, error)
	// Skew is by how much the clock on the wall is wrong. Durations are not
	// measured by that clock. It is called from several goroutines.
	Skew func() time.Duration
	// CounterMax is the last zxid of an epoch, behind which another begins; 0:
	// as the protocol has it.
	CounterMax uint32
	// Yielded is called by the loop in the middle of long work, before it looks
	// whether heartbeats are due.
	Yielded func()
}

// openClients opens the client port, nil if there is none.
func (s *Server) openClients() (net.Listener, error) {
	c := s.config()
	switch {
	case s.opt.Seams.Clients != nil:
		return s.opt.Seams.Clients, nil
	case c.Client.IsZero():
		return nil, nil
	}
	return listen(c.Client, c.Limits.KeepAlive)
}

// skewed is a time as the clock on the wall has it.
func (s *Server) skewed(t time.Time) time.Time {
	if s.opt.Seams.Skew == nil {
		return t
	}
	return t.Add(s.opt.Seams.Skew())
}

// Abort ends the server at once, as the end of its process would: nothing is
// answered and nobody is told. Run returns why.
func (s *Server) Abort(why error) { s.fail(why) }

// Freeze holds the loop: nothing is decided any more, until thaw is called or
// the server is aborted. It returns when the loop stands still.
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

// Expire ends a session as if nothing had been heard of it for too long. Only
// the server that leads, or is alone, does so, and not while it hands over: who
// wants the session to end asks again until it has.
func (s *Server) Expire(id wire.SessionID) {
	s.ask(func(l *loop) { l.replica.Step(l.now, replica.Expire{Session: id}) })
}
