package shell

import (
	"context"
	"errors"
	"time"

	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// sitting is a claim that lasts as long as the session in which it was made:
// an item of a queue, a place in a double barrier.
type sitting struct {
	r       *runner
	zc      *zk.Client
	session wire.SessionID
}

// sit is the claim made in this session. The client pings often from here on.
func (r *runner) sit(zc *zk.Client, session wire.SessionID) *sitting {
	zc.KeepAlive(r.pace(zc)) // until the client is closed
	return &sitting{r, zc, session}
}

// Context never ends: Left tells the guardian in time.
func (s *sitting) Context() context.Context { return context.Background() }

func (s *sitting) Bid() string { return "" }

func (s *sitting) Token() wire.Zxid { return 0 }

// Left is how long the session is sure to live; where nothing is sure, what
// is left of two thirds of its timeout.
func (s *sitting) Left() time.Duration {
	l := s.r.lease(s.zc)
	if l.Session != s.session {
		return 0
	}
	if l.Term() <= 0 {
		l.Delay = l.Timeout / 3
	}
	return l.Left()
}

// Proof is nil while Left is proven.
func (s *sitting) Proof() error {
	if l := s.r.lease(s.zc); l.Term() <= 0 {
		return &recipe.NoProof{Timeout: l.Timeout, Delay: l.Delay}
	}
	return nil
}

// Lost is nil while the session is sure to live.
func (s *sitting) Lost() error {
	switch {
	case s.Left() > 0:
		return nil
	case s.zc.Lease().Session != s.session:
		return errors.New("its session is over")
	}
	return errors.New("no proof in time that its session lives")
}
