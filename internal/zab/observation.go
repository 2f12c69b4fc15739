package zab

import (
	"fmt"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Observation is something that operators should know: one of the types below. String returns
// the text that the log prints.
type Observation interface{ String() string }

// EpochAgreed reports that a quorum has promised the epoch.
type EpochAgreed struct {
	Epoch  wire.Epoch
	TookMS int64
}

// LeaderServes reports that a quorum has the leader's history.
type LeaderServes struct {
	Epoch                              wire.Epoch
	DiscoverMS, SynchroniseMS, InAllMS int64
	Followers                          []ensemble.ServerID
}

// SyncBegan reports that a learner is sent the history.
type SyncBegan struct {
	Learner  string
	How      SyncMode
	From, To wire.Zxid
	Txns     int
}

// LearnerServes reports that a learner has the history and serves.
type LearnerServes struct {
	Learner string
	How     SyncMode
	TookMS  int64
}

// LearnerLost reports the end of a learner's link.
type LearnerLost struct {
	Learner, Why string
	Link         LinkID
	// Nobody says that the link ended before the learner had sent its id, or that the
	// learner could not have joined. Refused says that the leader closed the link because
	// of what the learner sent; Returns, that this is no fault, because the former link of
	// the same server was not closed yet.
	Nobody, Refused, Returns bool
}

// OldEpoch reports a leader of an epoch older than one that this server has promised.
// A native leader ends its term for that. A leader of Apache ZooKeeper does not, and
// this server cannot follow anybody until that term ends.
type OldEpoch struct {
	Leader                   ensemble.ServerID
	Link                     LinkID
	Epoch, Current, Accepted wire.Epoch
}

// HistoryAhead reports a member that cannot join because its history is of a later epoch
// than this term. The history is probably of another ensemble: in this one, no quorum
// would follow a leader of an earlier epoch.
type HistoryAhead struct {
	Learner        string
	Link           LinkID
	Epoch, Current wire.Epoch
}

// Unexpected reports a packet that is ignored, once for each connection.
type Unexpected struct {
	From   string
	Packet peerwire.PacketType
}

// Activated reports that a reconfiguration is committed and holds.
type Activated struct {
	Zxid    wire.Zxid
	Version int64
	Leader  ensemble.ServerID
}

// GaveUp reports the end of a role.
type GaveUp struct {
	Role        peerwire.ServerState
	Epoch       wire.Epoch
	Why         string
	AfterMS     int64
	Transferred bool   // by a leadership transfer
	Link        LinkID // the link of a learner to its leader; 0 for a leader
}

// Synchronising reports that the leader's history has begun to arrive.
type Synchronising struct {
	Leader ensemble.ServerID
	Epoch  wire.Epoch
	How    SyncMode
	From   wire.Zxid
	To     wire.Zxid
}

// ServesUnder reports that this server has the leader's history and serves.
type ServesUnder struct {
	Leader                             ensemble.ServerID
	Epoch                              wire.Epoch
	How                                SyncMode
	DiscoverMS, SynchroniseMS, InAllMS int64
	Observer                           bool
	// Master is the server from which this server learns: the leader, or an observer master.
	Master ensemble.ServerID
}

func (h EpochAgreed) String() string {
	return fmt.Sprintf("epoch %d agreed on after %d ms", h.Epoch, h.TookMS)
}

func (h LeaderServes) String() string {
	ids := make([]string, len(h.Followers))
	for i, id := range h.Followers {
		ids[i] = fmt.Sprint(id)
	}
	return fmt.Sprintf("leads epoch %d with [%s]: discover %d ms, synchronise %d ms, in all %d ms",
		h.Epoch, strings.Join(ids, " "), h.DiscoverMS, h.SynchroniseMS, h.InAllMS)
}

func (h SyncBegan) String() string {
	return fmt.Sprintf("synchronises %s, which ends at %v, by %v(%v) and %d transactions", h.Learner, h.From, h.How, h.To, h.Txns)
}

func (h LearnerServes) String() string {
	return fmt.Sprintf("%s serves after %v in %d ms", h.Learner, h.How, h.TookMS)
}

func (h LearnerLost) String() string { return fmt.Sprintf("%s is disconnected: %s", h.Learner, h.Why) }

func (h OldEpoch) String() string {
	if h.Current > h.Epoch {
		return fmt.Sprintf("server %d leads epoch %d, but this server has history of epoch %d, of which a quorum would know: "+
			"check that its data directory is of this ensemble", h.Leader, h.Epoch, h.Current)
	}
	return fmt.Sprintf("server %d leads epoch %d, but this server has promised epoch %d and follows no earlier one: "+
		"it takes part again from the next election on; to start an election now, restart server %[1]d", h.Leader, h.Epoch, h.Accepted)
}

func (h HistoryAhead) String() string {
	return fmt.Sprintf("%s has history of epoch %d and cannot join epoch %d: check that its data directory is of this ensemble",
		h.Learner, h.Current, h.Epoch)
}

func (h Unexpected) String() string {
	return fmt.Sprintf("%s sent %v, which is ignored", h.From, h.Packet)
}

func (h Activated) String() string {
	return fmt.Sprintf("configuration %x holds from %v, led by %d", h.Version, h.Zxid, h.Leader)
}

func (h GaveUp) String() string {
	return fmt.Sprintf("ends %v in epoch %d after %d ms: %s", h.Role, h.Epoch, h.AfterMS, h.Why)
}

func (h Synchronising) String() string {
	return fmt.Sprintf("synchronises with leader %d of epoch %d by %v(%v); its own history ends at %v", h.Leader, h.Epoch, h.How, h.To, h.From)
}

func (h ServesUnder) String() string {
	through := ""
	if h.Master != h.Leader {
		through = fmt.Sprintf(" through observer master %d", h.Master)
	}
	return fmt.Sprintf("serves under leader %d of epoch %d%s after %v: discover %d ms, synchronise %d ms, in all %d ms",
		h.Leader, h.Epoch, through, h.How, h.DiscoverMS, h.SynchroniseMS, h.InAllMS)
}
