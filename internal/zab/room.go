package zab

import (
	"fmt"

	"bellwether/wire"
)

// knocksMin is how often a member must have come with the promise of a later
// epoch, while it looked for a leader, before the term ends for it: what one
// message says could be said by anybody.
const knocksMin = 3

// seeker is a member that has looked for a leader during the term.
type seeker struct {
	current wire.Epoch // its history is of this epoch or of an earlier one
	knocks  int        // how often it came with a promise of a later epoch
}

// looks notes how far the history of a member that looks for a leader reaches.
func (l *Leader) looks(e Looks) {
	if _, member := l.committed.Server(e.Server); member {
		s := l.seekers[e.Server]
		s.current = e.Current
		l.seekers[e.Server] = s
	}
}

// makeRoom is for a member that has accepted a later epoch than that of this
// term. A leader that came to nothing had its promise, and it could join no
// sooner than this term ends; so the term does, and the next epoch is later than
// both. Not for a member with history of a later epoch: a quorum would have
// promised that one, and would not follow here.
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
		l.invite(k) // which it does not accept
		return
	}
	l.ready.Above = accepted
	l.giveUp(fmt.Sprintf("server %d has accepted epoch %d, and cannot join epoch %d", k.server, accepted, l.epoch))
}
