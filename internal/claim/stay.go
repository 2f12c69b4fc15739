package claim

import (
	"time"

	"bellwether/wire"
)

// Stay is the time during which an ephemeral znode is known to exist, for example the claim of an item or
// a member of a barrier. It ends by Resign, at its deadline, when the session is over, or when the client
// is closed. Stay makes no requests, so it does not notice if another client deletes the znode.
type Stay struct {
	session wire.SessionID
	lease   Lease
	now     Moment
	over    bool
	reason  Reason
}

// NewStay begins a stay in a session. proof shows that the session is alive.
func NewStay(session wire.SessionID, proof Lease) *Stay { return &Stay{session: session, lease: proof} }

// Step takes one event, which happened at now.
func (s *Stay) Step(now Moment, ev Event) {
	s.now = now
	if s.Left(now) <= 0 { // the deadline has passed, so the event does not matter
		s.end(LeaseLapsed)
	}
	switch ev := ev.(type) {
	case Attached:
		if ev.Session != s.session {
			s.end(SessionExpired)
		}
	case Expired:
		s.end(SessionExpired)
	case Closed:
		s.end(SessionClosed)
	case Confirmed:
		if !s.over {
			s.lease.Renew(ev.Lease)
		}
	case Resign:
		s.end(Resigned)
	}
}

// end ends the stay. The first reason is kept.
func (s *Stay) end(why Reason) {
	if !s.over {
		s.over, s.reason = true, why
	}
}

// Over reports whether the stay has ended.
func (s *Stay) Over() bool { return s.over }

// Reason returns why the stay has ended.
func (s *Stay) Reason() Reason { return s.reason }

// Ready says when the next Step is due. Only the wall clock shows a suspend of the machine, so Ready asks
// for a Step every twentieth of the timeout.
func (s *Stay) Ready() Ready {
	if s.over {
		return Ready{}
	}
	return Ready{KeepAlive: true, Wake: max(min(s.Left(s.now), s.lease.Timeout/20), time.Millisecond)}
}

// Left returns how long the stay lasts without another proof; 0 or negative when it is over.
func (s *Stay) Left(now Moment) time.Duration {
	if s.over {
		return 0
	}
	return s.lease.Left(now)
}

// Proof returns nil if the deadline that Left counts down to is proven.
func (s *Stay) Proof() error { return s.lease.Proof() }
