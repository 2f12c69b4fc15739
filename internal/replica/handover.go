package replica

import (
	"errors"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// A leader that is to give up its role hands over (zab/handover.go). From its
// beginning on writes of its own clients are held, as they are while there is
// no leader; what other servers ask for finds no leader that proposes it, and
// is asked of the next one (keep.go). The role ends in any case.

// HandOver (ensemble): this server is to end its role as leader, and have To
// lead next, which Successor has named; nothing happens if that cannot be.
// Leaving: this server is about to stop.
type HandOver struct {
	To      ensemble.ServerID
	Leaving bool
}

func (HandOver) event() {}

// errAlone: there is nobody to hand over to.
var errAlone = errors.New("this server is alone")

// errFollows: another server leads, or none does.
var errFollows = errors.New("this server does not lead")

// errHandsOver: it is asked for once more.
var errHandsOver = errors.New("this server hands over already")

// Successor returns who would lead if this server handed over: to, or the
// fittest of those that can if that is NoServer. The error says why nobody can.
func (r *Replica) Successor(to ensemble.ServerID, leaving bool) (ensemble.ServerID, error) {
	switch m := r.member; {
	case m == nil:
		return peerwire.NoServer, errAlone
	case !m.leads():
		return peerwire.NoServer, errFollows
	case m.leader.HandingOver():
		return peerwire.NoServer, errHandsOver
	default:
		return m.leader.Successor(to, leaving)
	}
}

// handOver begins it.
func (r *Replica) handOver(e HandOver) {
	if r.member.leads() {
		r.member.leader.Step(r.now.Mono, zab.HandOver{To: e.To, Leaving: e.Leaving})
	}
}

// handsOver reports whether this server leads and proposes nothing any more.
func (r *Replica) handsOver() bool {
	return r.member != nil && r.member.leader != nil && r.member.leader.HandingOver()
}

// succeed takes the role that a hand-over has given to this server. One that is
// about to stop learns from the next leader as an observer: were it part of the
// quorum by which that one is established, that one would have none soon.
func (r *Replica) succeed(s *zab.Successor) {
	m := r.member
	m.role, m.leaving = peerwire.Looking, s.Leaving
	m.election.Step(r.now.Mono, election.HandedOver{From: s.From, Leader: s.Leader, Zxid: s.Zxid, Epoch: s.Epoch, HeldMS: s.HeldMS})
}
