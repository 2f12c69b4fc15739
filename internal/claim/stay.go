package claim

import (
	"time"

	"bellwether/wire"
)

// Stay is the time in which an ephemeral znode of a session is sure to stand: a claim of an item, or
// a member of a barrier. It ends when it was left, and as the term of a [lines.Line] does: by its deadline, with
// its session, with the client. It asks nothing of a server, so it does not learn that somebody has
// deleted the znode.
type Stay struct {
	session wire.SessionID
	lease   Lease
	now     Moment
	over    bool
	reason  Reason
}

// NewStay begins a stay in a session, with a proof that it lives.
func NewStay(session wire.SessionID, proof Lease) *Stay { return &Stay{session: session, lease: proof} }

// Step takes one event, which happened at now.
func (s *Stay) Step(now Moment, ev Event) {
	s.now = now
	if s.Left(now) <= 0 { // whatever the event says
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

// end ends the stay; the first reason counts.
func (s *Stay) end(why Reason) {
	if !s.over {
		s.over, s.reason = true, why
	}
}

// Over reports whether the stay has ended.
func (s *Stay) Over() bool { return s.over }

// Reason is why it has ended.
func (s *Stay) Reason() Reason { return s.reason }

// Ready says when the next Step must come. A suspend of the machine is noticed by its wall clock alone, so
// the clocks are read often.
func (s *Stay) Ready() Ready {
	if s.over {
		return Ready{}
	}
	return Ready{KeepAlive: true, Wake: max(min(s.Left(s.now), s.lease.Timeout/20), time.Millisecond)}
}

// Left is how long the stay lasts without another proof; at most 0 when it is over.
func (s *Stay) Left(now Moment) time.Duration {
	if s.over {
		return 0
	}
	return s.lease.Left(now)
}

// Proof is nil when the deadline that Left counts to is proven.
func (s *Stay) Proof() error { return s.lease.Proof() }
