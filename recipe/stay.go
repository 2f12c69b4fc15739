package recipe

import (
	"context"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// stay follows the session of an ephemeral znode: an [Item]'s claim, or the member of
// a [DoubleBarrier]. Its driver runs until leave is called or the session ends.
type stay struct {
	d     *driver
	m     *claim.Stay
	ctx   context.Context
	end   context.CancelCauseFunc
	leave func() // ends the stay
}

// newStay begins a stay in a session. The session may have ended already.
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
	s.d.session, s.d.resigns, s.d.afterStepLocked = session, true, s.confirm
	s.d.afterStep = func(context.Context, claim.Event) {
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
		_ = s.d.run(run) // the machine holds the reason
	}()
	return s
}

// confirm gives the machine the latest proof that the session lives. If the client has
// dropped the session, confirm tells the machine that the session has ended, because no
// further proof follows.
func (s *stay) confirm(now claim.Moment, _ claim.Event) {
	if proof, ok := s.d.a.lease(s.d.session); ok {
		s.m.Step(now, claim.Confirmed{Lease: proof})
	} else {
		s.m.Step(now, claim.Expired{})
	}
}

// Context returns a context that ends before the server can give the znode's role to another client, if [stay.Proof]
// returns nil and the process is not suspended. It also ends when the claim is given up, and when the client is
// closed, before a server learns of that. Its cause is a [*LostError]. A process that was suspended, or got no CPU
// time, finds out late. Left reads the clocks when it is called.
func (s *stay) Context() context.Context { return s.ctx }

// Left returns how long the stay lasts unless a new ping proves that the session lives for longer. It reads the clocks
// when it is called. Once the stay is over it returns 0 or less.
func (s *stay) Left() time.Duration {
	if s.ctx.Err() != nil || s.d.a.c.Lease().Session != s.d.session {
		return 0
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.m.Left(s.d.a.clock.read())
}

// Proof returns nil if it is proven that Context ends before the session can expire. Otherwise
// it returns a [*NoProof], and the context ends after two thirds of the session timeout without an
// answered ping.
func (s *stay) Proof() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.m.Proof()
}

// Lost returns nil while the stay lasts, and afterwards a [*LostError].
func (s *stay) Lost() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if s.Left() <= 0 {
		return s.d.a.lost(LeaseLapsed, nil)
	}
	return nil
}
