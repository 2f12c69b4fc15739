package replica

import (
	"errors"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// A leader that is asked to give up its role transfers leadership (zab/transfer.go).
// While it does so it holds the writes of its own clients, as a server without a leader
// does. It does not propose what other servers forward to it; they forward it again to
// the next leader (keep.go). The term ends even if the transfer fails.

// TransferLeadership (ensemble) asks a leader to end its term and let server To lead next. To must
// come from Successor. The event is ignored if the transfer is not possible. Leaving says
// that this server is about to stop.
type TransferLeadership struct {
	To      ensemble.ServerID
	Leaving bool
}

func (TransferLeadership) event() {}

// errAlone: there is no other server to which leadership could be transferred.
var errAlone = errors.New("this server is standalone")

// errFollows: only a leader can transfer leadership.
var errFollows = errors.New("this server does not lead")

// errTransferring: a transfer is already running.
var errTransferring = errors.New("this server is already transferring leadership")

// Successor returns the server that would lead next if this server transferred
// leadership: to, or the most suitable server if to is NoServer. The error says why there
// is none.
func (r *Replica) Successor(to ensemble.ServerID, leaving bool) (ensemble.ServerID, error) {
	switch m := r.member; {
	case m == nil:
		return peerwire.NoServer, errAlone
	case !m.leads():
		return peerwire.NoServer, errFollows
	case m.leader.Transferring():
		return peerwire.NoServer, errTransferring
	default:
		return m.leader.Successor(to, leaving)
	}
}

// transferLeadership starts a leadership transfer if this server leads.
func (r *Replica) transferLeadership(e TransferLeadership) {
	if r.member.leads() {
		r.member.leader.Step(r.now.Mono, zab.TransferLeadership{To: e.To, Leaving: e.Leaving})
	}
}

// transferring reports whether this server leads and is transferring leadership. It then
// proposes nothing.
func (r *Replica) transferring() bool {
	return r.member != nil && r.member.leader != nil && r.member.leader.Transferring()
}

// succeed starts the role that a leadership transfer gives to this server. A server that
// is about to stop follows the next leader as an observer: if it counted towards the
// quorum that establishes that leader, the leader would lose its quorum when this server
// stops.
func (r *Replica) succeed(s *zab.Successor) {
	m := r.member
	m.role, m.leaving = peerwire.Looking, s.Leaving
	m.election.Step(r.now.Mono, election.Transferred{From: s.From, Leader: s.Leader, Zxid: s.Zxid, Epoch: s.Epoch, HeldMS: s.HeldMS})
}
