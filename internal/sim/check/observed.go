package check

import (
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Checker checks one rule in a run.
type Checker interface {
	Name() string
	// See takes an observation into account. The observation has one of the types below, or
	// a type of the caller. See returns what is wrong, or an empty text.
	See(o any) string
}

// Protocol returns the checkers of the protocol between servers. They compare with h, to
// which the caller adds each transaction that is committed.
func Protocol(h *History) []Checker {
	return []Checker{
		newLeadership(h), newPrefixConsistency(h), newIntegrity(), newAgreement(), newTotalOrder(),
		newLocalPrimaryOrder(), newGlobalPrimaryOrder(), newPrimaryIntegrity(), newNoHole(), &durability{},
		equalDigest{h}, nothingUndone{h}, newEphemerals(h), newLeadershipTransfers(), newMemberships(h),
	}
}

// Observations of servers.
type (
	// Jumped says that the monotonic clock of a server has jumped forward.
	Jumped struct {
		Server ensemble.ServerID
		At, By int64 // µs
	}
	// Restarted says that a server has loaded its disk. Its log ends at Log.
	Restarted struct {
		Server ensemble.ServerID
		Log    wire.Zxid
	}
	// Forgot says that the disk of a server was replaced, or has lost what it had promised.
	Forgot struct{ Server ensemble.ServerID }
	// Rebuilt says that a server has another tree, made from a snapshot or from its disk.
	Rebuilt struct{ Server ensemble.ServerID }
	// Established says that a server begins to serve clients, with everything up to Zxid
	// applied.
	Established struct {
		Server ensemble.ServerID
		Role   peerwire.ServerState
		Epoch  wire.Epoch
		Zxid   wire.Zxid
	}
	// Ordered says that a duty goes to the log writer. Void says that the duty is dropped,
	// because the disk has refused an earlier one.
	Ordered struct {
		Server ensemble.ServerID
		Duty   *replica.Duty
		Void   bool
	}
	// Undone says that the disk of a server has refused a duty. The log of the server now ends at
	// Zxid.
	Undone struct {
		Server ensemble.ServerID
		Zxid   wire.Zxid
	}
	// Promised says that a server sends a packet to another server. The packet may promise what the
	// sender has on its disk.
	Promised struct {
		Server    ensemble.ServerID
		ByLearner bool
		Packet    *peerwire.QuorumPacket
		Link      zab.LinkID
		At        int64      // µs
		Since     int64      // µs at which the batch that sends the packet began
		Term      wire.Epoch // the epoch that was announced on the link
		Epoch     wire.Epoch // the epoch in which the sender serves
		Log       wire.Zxid  // where the sender's log in memory ends
		SilentMS  int64      // ms of the sender's clock since it has taken a packet of the receiver
		Disk      Durable    // the sender's disk
		To        Receiver
	}
	// Receiver is a server to which a packet is sent. Wiped says that its disk was replaced
	// and that it was not synchronised since.
	Receiver struct {
		Server ensemble.ServerID
		Zxid   wire.Zxid // the last durable zxid
		Wiped  bool
	}
	// VoteHeard says that a server takes a notification. First says that it is the first one of its connection, which
	// the sender may have sent before. Serves says that the receiver serves. Batch tells batches of a server apart.
	VoteHeard struct {
		Server, From  ensemble.ServerID
		Notification  *peerwire.Notification
		First, Serves bool
		Batch         int64
	}
	// VoterDown says that a server learns that another one is down.
	VoterDown struct {
		Server, Peer ensemble.ServerID
		Batch        int64
	}
	// Electing says what a server reports and sends of elections in a batch, in this order. Mono is the server's
	// time in ms, and Log the end of its log. Wiped says that it may have lost its history, Full that it knows
	// that its disk is full, Disabled that it takes no part, and ShutOut that it has taken none since before its disk
	// was found full.
	Electing struct {
		Server      ensemble.ServerID
		Reports     []replica.Observation
		Votes       []election.Message
		Batch, Mono int64
		Log         wire.Zxid
		Wiped, Full bool
		Disabled    bool
		ShutOut     bool
	}
	// Standing describes a server at the end of a batch: whether it looks for a leader, dials one or serves. Leads is the
	// epoch that it leads; 0: it leads none. Linked says that it leads and the links of a quorum are open. Ticked says that
	// the batch has taken everything that had arrived, and a tick after it.
	Standing struct {
		Server               ensemble.ServerID
		Members              *ensemble.Membership // nil: not known
		Mono                 int64
		Looks, Dials, Serves bool
		Leads                wire.Epoch
		Linked, Ticked       bool
	}
	// SyncsTaken says that a leader has taken so many syncs from a learner in a batch, after which its log ends at Log. The leader
	// or the learner is one of ZooKeeper's.
	SyncsTaken struct {
		Link zab.LinkID
		N    int
		Log  wire.Zxid
	}
	// TransferBegan says that a leader begins to transfer leadership. Its log ends at Log.
	TransferBegan struct {
		Server ensemble.ServerID
		Epoch  wire.Epoch
		Log    wire.Zxid
	}
	// LeftSilent says that a learner leaves its leader because of its silence. It has taken the last packet of it SilentMS
	// of its clock ago.
	LeftSilent struct {
		Server, Leader ensemble.ServerID
		SilentMS       int64
	}
	// Committed says that a server is the first to apply a transaction. Index is its place
	// in the history.
	Committed struct {
		Server ensemble.ServerID
		Index  int
		Txn    *record.Txn
	}
	// Ticked says that the loop of a leader that serves takes note of the time, which is Mono in ms. It does so four
	// times a tick.
	Ticked struct {
		Server ensemble.ServerID
		Epoch  wire.Epoch
		Mono   int64
	}
	// Applies says that a transaction is the next one that a server applies.
	Applies struct {
		Server ensemble.ServerID
		Txn    *record.Txn
	}
	// Delivered says that a server has applied a transaction. Sum is the checksum of its
	// bytes.
	Delivered struct {
		Server ensemble.ServerID
		Txn    *record.Txn
		Sum    uint32
	}
	// Stands gives the zxid and digest of a server's tree after the last delivery. Shown is
	// the zxid up to which its clients may have seen the tree before.
	Stands struct {
		Server ensemble.ServerID
		Zxid   wire.Zxid
		Digest uint64
		Shown  wire.Zxid
	}
)
