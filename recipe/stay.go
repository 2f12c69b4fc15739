package recipe

import (
	"context"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// stay follows the session in which something ephemeral stands: an [Item]'s claim, or the member of
// a [DoubleBarrier]. It runs one goroutine until it is over.
type stay struct {
	b       *bidder
	session zk.SessionID
	ctx     context.Context
	end     context.CancelCauseFunc
	left    chan struct{} // closed by leave
	leave   func()

	mu sync.Mutex
	m  *claim.Stay
}

// newStay begins a stay in a session, which may be over already.
func (b *bidder) newStay(ctx context.Context, session zk.SessionID) *stay {
	proof, ok := b.lease(session)
	s := &stay{b: b, session: session, left: make(chan struct{}), m: claim.NewStay(session, proof)}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.leave = sync.OnceFunc(func() {
		s.end(b.lost(Resigned, nil))
		close(s.left)
	})
	if !ok {
		s.step(claim.Expired{})
		return s
	}
	unhook := b.c.OnClose(func() { s.end(b.lost(SessionClosed, nil)) })
	calm := b.c.KeepAlive(b.opt.KeepAlive)
	go func() {
		defer calm()
		defer unhook()
		s.run()
	}()
	return s
}

// run steps the state machine until the stay is over.
func (s *stay) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	status := s.b.c.State()
	for !s.attached(status) {
		timer.Reset(s.wake())
		select {
		case <-s.left:
			s.step(claim.Resign{})
		case <-timer.C:
			s.step(claim.Tick{})
		case <-status.Changed():
			if next, err := status.Next(context.Background()); err == nil { // it is there
				status = next
			}
		}
	}
}

// attached steps what the status says of the session. It reports whether the stay is over.
func (s *stay) attached(now zk.Status) bool {
	switch now.State {
	case zk.Connected:
		return s.step(claim.Attached{Session: now.Session})
	case zk.Expired:
		return s.step(claim.Expired{})
	case zk.AuthFailed, zk.Closed:
		return s.step(claim.Closed{})
	}
	return s.step(claim.Tick{})
}

// step hands one event to the state machine, and the latest proof. It reports whether the stay is over.
func (s *stay) step(ev claim.Event) bool {
	s.mu.Lock()
	now := s.b.clock.read()
	s.m.Step(now, ev)
	if proof, ok := s.b.lease(s.session); ok {
		s.m.Step(now, claim.Confirmed{Lease: proof})
	} else {
		s.m.Step(now, claim.Expired{}) // there will be no other proof
	}
	why, over := s.m.Over()
	s.mu.Unlock()
	if over {
		s.end(s.b.lost(why, nil))
	}
	return over
}

func (s *stay) wake() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Wake(s.b.clock.read())
}

// Context ends before the server can give away what stands in the session, where [stay.Proof] is nil
// and the process runs; when the client is closed, before a server hears of it; and when it was
// given back. Its cause is a [*LostError]. A process that is stopped, or starved, finds out late:
// Left looks at the clocks when it is called.
func (s *stay) Context() context.Context { return s.ctx }

// Left is how long it lasts without another proof that the session lives, by the clocks as they
// are now; at most 0 when it is over.
func (s *stay) Left() time.Duration {
	if s.ctx.Err() != nil || s.b.c.Lease().Session != s.session {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Left(s.b.clock.read())
}

// Proof is nil while the end of Context is proven to come before the session can expire. Otherwise
// it is a [*NoProof], and the context ends after two thirds of the session timeout without an
// answered ping.
func (s *stay) Proof() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Proof()
}

// Lost is nil while it lasts, then a [*LostError].
func (s *stay) Lost() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if s.Left() <= 0 {
		return s.b.lost(LeaseLapsed, nil)
	}
	return nil
}
