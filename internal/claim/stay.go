package claim

import (
	"time"

	"bellwether/wire"
)

// Stay is the time in which an ephemeral znode of a session is sure to stand: a claim of an item, or
// a member of a barrier. It ends when it was left, and as the term of a [Line] does: by its deadline, with
// its session, with the client. It asks nothing of a server, so it does not learn that somebody has
// deleted the znode.
type Stay struct {
	session wire.SessionID
	lease   Lease
	over    bool
	reason  Reason
}

// NewStay begins a stay in a session, with a proof that it lives.
func NewStay(session wire.SessionID, proof Lease) *Stay { return &Stay{session: session, lease: proof} }

// Step takes one event, which happened at now.
func (s *Stay) Step(now Moment, ev Event) {
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
			s.lease.renew(ev.Lease)
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

// Over reports whether the stay has ended, and why.
func (s *Stay) Over() (Reason, bool) { return s.reason, s.over }

// Left is how long the stay lasts without another proof; at most 0 when it is over.
func (s *Stay) Left(now Moment) time.Duration {
	if s.over {
		return 0
	}
	return s.lease.Left(now)
}

// Proof is nil when the deadline that Left counts to is proven.
func (s *Stay) Proof() error { return s.lease.Proof() }

// Wake is how soon the next Step must come: a suspend is noticed by the wall clock alone.
func (s *Stay) Wake(now Moment) time.Duration {
	return max(min(s.Left(now), s.lease.Timeout/20), time.Millisecond)
}
