package zab

import (
	"fmt"

	"bellwether/wire"
)

// attemptsMin is how often a member that looks for a leader must connect with a later
// accepted epoch before the leader ends the term because of it. A single message could
// come from anybody.
const attemptsMin = 3

// lookingMember is a member that has looked for a leader during the term.
type lookingMember struct {
	current  wire.Epoch // the member's history is of this epoch or of an earlier one
	attempts int        // how often the member has connected with a later accepted epoch
}

// looks records the epoch up to which a member that looks for a leader has history.
func (l *Leader) looks(e Looks) {
	if l.isMember(e.Server) {
		s := l.lookingMembers[e.Server]
		s.current = e.Current
		l.lookingMembers[e.Server] = s
	}
}

// endForLaterEpoch handles a member that has accepted a later epoch than that of this term,
// from a leader whose term failed. The member cannot join before this term ends, so
// the leader ends the term, and the next epoch is later than both. The leader does not
// end its term for a member with history of a later epoch: if that member were of this
// ensemble, a quorum would have promised that epoch and would not follow this leader.
func (l *Leader) endForLaterEpoch(k *link, accepted wire.Epoch) {
	s, looks := l.lookingMembers[k.server]
	foreign := s.current > l.epoch
	switch {
	case foreign:
		l.report(HistoryAhead{k.name(), k.id, l.epoch, s.current})
	case looks:
		s.attempts++
		l.lookingMembers[k.server] = s
	}
	if foreign || s.attempts < attemptsMin {
		k.acceptedLater = true
		l.invite(k) // the member will not accept this epoch
		return
	}
	l.ready.Above = accepted
	l.giveUp(fmt.Sprintf("server %d has accepted epoch %d, and cannot join epoch %d", k.server, accepted, l.epoch))
}
