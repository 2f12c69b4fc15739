package sim

import (
	"bellwether/internal/sim/check"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Observations of clients and connections, for the checkers. The servers know nothing of
// them.
type (
	// attached says that a connection got a session.
	attached struct {
		v       *server
		c       *conn
		session wire.SessionID
	}
	// turnedAway says that a client is told that its session has expired.
	turnedAway struct {
		v         *server
		session   wire.SessionID
		timeoutMS int32
	}
	// readAlone says that a server without a quorum answers a read.
	readAlone struct {
		v      *server
		zxid   wire.Zxid
		digest uint64
	}
	// issued and answered say that a client sends a request and that it gets the answer.
	issued   struct{ call *call }
	answered struct {
		call     *call
		response response
	}
	// lost says that the connection ended before the answer.
	lost struct{ call *call }
	// notified says that a client got an event.
	notified struct {
		client *client
		event  tree.Event
	}
)

// makeCheckers returns the checkers of all rules that are checked at each step.
func (s *Sim) makeCheckers() []check.Checker {
	h := &s.history
	return append(check.Protocol(h),
		newAtMostOnce(), ackedWrites{h}, sessionOrder{}, newWatchOrder(h), newRealTime(), claims{s}, &fence{}, shown{h},
		newAsIssued(), newRealEvents(h), possibleLeaders{s}, newCommits(), newBarriers(s), newItems(), newCaches(h), newCounts(),
		newPassages(), newShares(s), newSeveral(s), newAnnouncements(), newRegistrations(s), onlyCommitted{h}, newLocalSessions(s))
}

// see shows an observation to all checkers. The first rule that is broken ends the run.
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
