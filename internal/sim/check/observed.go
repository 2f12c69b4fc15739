package check

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// Checker checks one rule in a run.
type Checker interface {
	Name() string
	// See takes an observation into account, which is one of the types below or one of
	// the caller's own. It returns what is wrong, or nothing.
	See(o any) string
}

// Protocol returns checkers of the promises of the protocol between servers: each looks
// at the servers and at the history that the caller keeps of them.
func Protocol(h *History) []Checker {
	return []Checker{
		newLeadership(h), newPrefixConsistency(h), newIntegrity(), newAgreement(), newTotalOrder(),
		newLocalPrimaryOrder(), newGlobalPrimaryOrder(), newPrimaryIntegrity(), newNoHole(), durability{},
		equalDigest{h}, nothingUndone{h}, newEphemerals(h), newHandOvers(),
	}
}

// Observations of servers.
type (
	// Restarted: a server has loaded its disk; its log ends at Log.
	Restarted struct {
		Server ensemble.ServerID
		Log    wire.Zxid
	}
	// Rebuilt: a server has another tree, of a snapshot or of its disk.
	Rebuilt struct{ Server ensemble.ServerID }
	// Established: a server begins to serve clients, with everything up to Zxid applied.
	Established struct {
		Server ensemble.ServerID
		Role   peerwire.ServerState
		Epoch  wire.Epoch
		Zxid   wire.Zxid
	}
	// Ordered: a duty goes to the log writer. Void: it is dropped, because the disk has
	// refused an earlier one.
	Ordered struct {
		Server ensemble.ServerID
		Duty   *replica.Duty
		Void   bool
	}
	// Undone: the disk of a server has refused a duty; its log ends at Zxid.
	Undone struct {
		Server ensemble.ServerID
		Zxid   wire.Zxid
	}
	// Promised: a server sends a packet to another one.
	Promised struct {
		Server    ensemble.ServerID
		ByLearner bool
		Packet    *peerwire.QuorumPacket
		Epoch     wire.Epoch // in which the sender serves
		Log       wire.Zxid  // where the sender's log in memory ends
		Disk      Durable    // of the sender
		To        Receiver
	}
	// Durable is what a server has on its disk.
	Durable struct {
		Accepted, Current wire.Epoch
		Zxid              wire.Zxid
	}
	// Receiver is a server to which a packet is sent. Wiped: its disk was replaced, and
	// it was not synchronised since.
	Receiver struct {
		Server ensemble.ServerID
		Zxid   wire.Zxid // durable
		Wiped  bool
	}
	// Committed: a server is the first to apply a transaction, which is the entry with
	// this Index in the history.
	Committed struct {
		Server ensemble.ServerID
		Index  int
		Txn    *record.Txn
	}
	// Handed: a server applies a transaction next.
	Handed struct {
		Server ensemble.ServerID
		Txn    *record.Txn
	}
	// Delivered: a server has applied a transaction; Sum is the checksum of its bytes.
	Delivered struct {
		Server ensemble.ServerID
		Txn    *record.Txn
		Sum    uint32
	}
	// Stands: the zxid and digest of a server's tree after what it delivered; Shown is
	// what its clients may have seen before.
	Stands struct {
		Server ensemble.ServerID
		Zxid   wire.Zxid
		Digest uint64
		Shown  wire.Zxid
	}
)
