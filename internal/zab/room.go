package zab

import (
	"fmt"

	"bellwether/wire"
)

// knocksMin is how often a member that looks for a leader must connect with a later
// accepted epoch before the term ends for it. One message could come from anybody.
const knocksMin = 3

// seeker is a member that has looked for a leader during the term.
type seeker struct {
	current wire.Epoch // its history is of this epoch or of an earlier one
	knocks  int        // how often it has connected with a later accepted epoch
}

// looks notes how far the history of a member that looks for a leader reaches.
func (l *Leader) looks(e Looks) {
	if _, member := l.committed.Server(e.Server); member {
		s := l.seekers[e.Server]
		s.current = e.Current
		l.seekers[e.Server] = s
	}
}

// makeRoom handles a member that has accepted a later epoch than that of this term,
// from a leader whose term failed. The member cannot join before this term ends, so
// the leader ends the term, and the next epoch is later than both. It does not do so
// for a member with history of a later epoch: a quorum would have promised that
// epoch, and would not follow this leader, so the member is not of this ensemble.
func (l *Leader) makeRoom(k *link, accepted wire.Epoch) {
	s, looks := l.seekers[k.server]
	foreign := s.current > l.epoch
	switch {
	case foreign:
		l.tell(Foreign{k.name(), k.id, l.epoch, s.current})
	case looks:
		s.knocks++
		l.seekers[k.server] = s
	}
	if foreign || s.knocks < knocksMin {
		k.vain = true
		l.invite(k) // it does not accept this epoch
		return
	}
	l.ready.Above = accepted
	l.giveUp(fmt.Sprintf("server %d has accepted epoch %d, and cannot join epoch %d", k.server, accepted, l.epoch))
}
