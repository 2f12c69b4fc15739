package election

import (
	"cmp"
	"fmt"
	"math"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// NoHistory is the zxid of a vote by a server that must not be elected nor help to elect,
// because its database is missing or its disk does not answer. Others ignore such votes.
const NoHistory wire.Zxid = -1

// Vote names a candidate and its history.
type Vote struct {
	Leader    ensemble.ServerID // peerwire.NoServer: nobody
	Zxid      wire.Zxid         // the newest transaction in the candidate's log
	PeerEpoch wire.Epoch        // the candidate's current epoch
}

// noVote is the vote of an observer.
var noVote = Vote{Leader: peerwire.NoServer, Zxid: math.MinInt64, PeerEpoch: math.MinInt64}

// Compare orders votes by peer epoch, zxid and id, all of them signed.
func (v Vote) Compare(o Vote) int {
	return cmp.Or(v.history(o), cmp.Compare(v.Leader, o.Leader))
}

// history compares only the histories.
func (v Vote) history(o Vote) int {
	return cmp.Or(cmp.Compare(v.PeerEpoch, o.PeerEpoch), cmp.Compare(v.Zxid, o.Zxid))
}

func (v Vote) String() string {
	if v.Leader == peerwire.NoServer {
		return "nobody"
	}
	switch {
	case v.Zxid == NoHistory && v.PeerEpoch > 0:
		return fmt.Sprintf("%d, which must not be elected", v.Leader)
	case v.Zxid == NoHistory:
		return fmt.Sprintf("%d without history", v.Leader)
	}
	return fmt.Sprintf("%d at %s of epoch %d", v.Leader, v.Zxid, v.PeerEpoch)
}

// beats reports whether vote a is to be adopted instead of b. weigh returns a server's
// weight. A server without weight is never adopted, and its vote for itself is replaced
// by one for any candidate with weight.
func beats(a, b Vote, weigh func(ensemble.ServerID) int64) bool {
	if weigh(a.Leader) == 0 {
		return false
	}
	return a.Compare(b) > 0 || weigh(b.Leader) == 0 && b.Leader != peerwire.NoServer
}

// ballot is a vote as it was heard, with the sender's state and round. version is that of a
// FOLLOWING or LEADING message that carries a configuration. It is 0 for all other messages,
// and for each ballot in Election.votes.
type ballot struct {
	Vote
	round   wire.Epoch
	state   peerwire.ServerState
	version peerwire.NotificationVersion
	// fresh: the message is not the first of its connection. The first message may be an
	// old one that the sender has sent again.
	fresh bool
}

// agrees reports whether two ballots count as the same vote. If one of the senders looks,
// everything must be equal. Members of a running ensemble may differ in zxid and round
// (ZOOKEEPER-1805), and in the epoch too if exactly one of the two is older than 3.4.6
// (ZOOKEEPER-1732).
func (b ballot) agrees(o ballot) bool {
	switch {
	case b.state == peerwire.Looking || o.state == peerwire.Looking:
		return b.Vote == o.Vote && b.round == o.round
	case (b.version > 0) != (o.version > 0):
		return b.Leader == o.Leader
	}
	return b.Leader == o.Leader && b.PeerEpoch == o.PeerEpoch
}
