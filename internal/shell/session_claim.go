package shell

import (
	"context"
	"errors"
	"time"

	"bellwether/internal/claim"
	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// sessionClaim is a claim that is held for as long as the session in which it was made: an
// item of a queue, or a place in a double barrier.
type sessionClaim struct {
	r       *runner
	zc      *zk.Client
	session wire.SessionID
}

// claimSession returns the claim made in this session. From now on the client pings often.
func (r *runner) claimSession(zc *zk.Client, session wire.SessionID) *sessionClaim {
	l := r.lease(zc)
	zc.KeepAlive(claim.Lease{Timeout: l.Timeout, Delay: l.Delay}.Pace()) // continues until the client is closed
	return &sessionClaim{r, zc, session}
}

// Context returns a context that never ends: the guardian acts on Left.
func (s *sessionClaim) Context() context.Context { return context.Background() }

func (s *sessionClaim) Bid() string { return "" }

func (s *sessionClaim) Token() wire.Zxid { return 0 }

// Left returns how long the session is certain to live. If that is not proven, it returns
// what is left of two thirds of the session timeout.
func (s *sessionClaim) Left() time.Duration {
	l := s.r.lease(s.zc)
	switch {
	case l.Session != s.session:
		return 0
	case l.Term() <= 0:
		return l.Left() + l.Timeout*2/3
	}
	return l.Left()
}

// Proof returns nil while Left is proven.
func (s *sessionClaim) Proof() error {
	if l := s.r.lease(s.zc); l.Term() <= 0 {
		return &recipe.NoProof{Timeout: l.Timeout, Delay: l.Delay}
	}
	return nil
}

// Lost returns nil while the session is certain to live.
func (s *sessionClaim) Lost() error {
	switch {
	case s.Left() > 0:
		return nil
	case s.zc.Lease().Session != s.session:
		return errors.New("its session has ended")
	}
	return errors.New("no server confirmed its session in time")
}
