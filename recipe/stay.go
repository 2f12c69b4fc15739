package recipe

import (
	"context"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// stay follows the session in which something ephemeral stands: an [Item]'s claim, or the member of
// a [DoubleBarrier]. Its driver runs until it is over.
type stay struct {
	d     *driver
	m     *claim.Stay
	ctx   context.Context
	end   context.CancelCauseFunc
	leave func() // ends it
}

// newStay begins a stay in a session, which may be over already.
func (a *agent) newStay(ctx context.Context, session zk.SessionID) *stay {
	proof, ok := a.lease(session)
	s := &stay{m: claim.NewStay(session, proof)}
	s.d = a.newDriver(s.m)
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.leave = func() {
		s.end(a.lost(Resigned, nil))
		cancel()
	}
	s.d.session, s.d.resigns, s.d.locked = session, true, s.confirm
	s.d.stepped = func(context.Context, claim.Event) {
		if s.m.Over() {
			s.end(a.lost(s.m.Reason(), nil))
		}
	}
	if !ok {
		s.end(a.lost(SessionExpired, nil))
		return s
	}
	unhook := a.c.OnClose(func() { s.end(a.lost(SessionClosed, nil)) })
	go func() {
		defer unhook()
		_ = s.d.run(run) // which ends with the machine
	}()
	return s
}

// confirm steps the latest proof that the session lives. Where the client has dropped the session, no
// other proof follows.
func (s *stay) confirm(now claim.Moment, _ claim.Event) {
	if proof, ok := s.d.a.lease(s.d.session); ok {
		s.m.Step(now, claim.Confirmed{Lease: proof})
	} else {
		s.m.Step(now, claim.Expired{})
	}
}

// Context ends before the server can give away what stands in the session, where [stay.Proof] is nil
// and the process runs; when the client is closed, before a server hears of it; and when it was
// given back. Its cause is a [*LostError]. A process that is stopped, or starved, finds out late:
// Left looks at the clocks when it is called.
func (s *stay) Context() context.Context { return s.ctx }

// Left is how long it lasts without another proof that the session lives, by the clocks as they
// are now; at most 0 when it is over.
func (s *stay) Left() time.Duration {
	if s.ctx.Err() != nil || s.d.a.c.Lease().Session != s.d.session {
		return 0
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.m.Left(s.d.a.clock.read())
}

// Proof is nil while the end of Context is proven to come before the session can expire. Otherwise
// it is a [*NoProof], and the context ends after two thirds of the session timeout without an
// answered ping.
func (s *stay) Proof() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.m.Proof()
}

// Lost is nil while it lasts, then a [*LostError].
func (s *stay) Lost() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if s.Left() <= 0 {
		return s.d.a.lost(LeaseLapsed, nil)
	}
	return nil
}
