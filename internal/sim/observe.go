package sim

import (
	"bellwether/internal/sim/check"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// What the checkers see. They stand outside: none of this is known to the
// servers.
type (
	// attached: a connection got a session.
	attached struct {
		v       *server
		c       *conn
		session wire.SessionID
	}
	// turnedAway: a client is told that its session has expired.
	turnedAway struct {
		v         *server
		session   wire.SessionID
		timeoutMS int32
	}
	// readAlone: a read is answered by a server without a quorum.
	readAlone struct {
		v      *server
		zxid   wire.Zxid
		digest uint64
	}
	// issued and answered: a client's request.
	issued   struct{ call *call }
	answered struct {
		call     *call
		response response
	}
	// lost: the connection ended before the answer.
	lost struct{ call *call }
	// notified: a client got an event.
	notified struct {
		client *client
		event  tree.Event
	}
)

// makeCheckers makes all rules that are checked at each step.
func (s *Sim) makeCheckers() []check.Checker {
	h := &s.history
	return append(check.Protocol(h),
		newAtMostOnce(), ackedWrites{h}, sessionOrder{}, newWatchOrder(h), newRealTime(), claims{s}, &fence{}, shown{h},
		newAsIssued(), newRealEvents(h), possibleLeaders{s}, newCommits(), newBarriers(s), newItems(), newCaches(h), newCounts(),
		newPassages(), newShares(s), newSeveral(s), newAnnouncements(), newRegistrations(s), onlyCommitted{h}, newLocalSessions(s))
}

// see shows all checkers what happened.
func (s *Sim) see(o any) {
	if s.failed != nil {
		return
	}
	for _, c := range s.checkers {
		if wrong := c.See(o); wrong != "" {
			s.fail(c.Name(), "%s", wrong)
			return
		}
	}
}
