package sim

import (
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

// checker is one rule. see returns what is wrong, or nothing.
type checker interface {
	name() string
	see(o any) string
}

// checkers are all rules that are checked at each step.
func (s *Sim) makeCheckers() []checker {
	return []checker{
		newLeadership(&s.history), newPrefixConsistency(&s.history), newIntegrity(), newAgreement(), newTotalOrder(),
		newLocalPrimaryOrder(), newGlobalPrimaryOrder(), newPrimaryIntegrity(), newNoHole(), durability{},
		equalDigest{&s.history}, nothingUndone{&s.history}, newEphemerals(&s.history), newAtMostOnce(), ackedWrites{&s.history},
		sessionOrder{}, newWatchOrder(&s.history), newRealTime(), claims{s}, &fence{}, shown{&s.history}, newAsIssued(), newRealEvents(&s.history), possibleLeaders{s},
		newHandOvers(), newCommits(), newBarriers(s), newItems(), newCaches(&s.history), newCounts(), newPassages(), newShares(s), newSeveral(s), newAnnouncements(), newRegistrations(s), onlyCommitted{&s.history}, newLocalSessions(s),
	}
}

// see shows all checkers what happened.
func (s *Sim) see(o any) {
	if s.failed != nil {
		return
	}
	for _, c := range s.checkers {
		if wrong := c.see(o); wrong != "" {
			s.fail(c.name(), "%s", wrong)
			return
		}
	}
}
