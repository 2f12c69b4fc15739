package sim

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// Observations of servers.
type (
	// restarted: a server has loaded its disk; its log ends at log.
	restarted struct {
		server ensemble.ServerID
		log    wire.Zxid
	}
	// rebuilt: a server has another tree, of a snapshot or of its disk.
	rebuilt struct{ server ensemble.ServerID }
	// established: a server begins to serve clients, with everything up to zxid applied.
	established struct {
		server ensemble.ServerID
		role   peerwire.ServerState
		epoch  wire.Epoch
		zxid   wire.Zxid
	}
	// ordered: a duty goes to the log writer. void: it is dropped, because the disk has
	// refused an earlier one.
	ordered struct {
		server ensemble.ServerID
		duty   *replica.Duty
		void   bool
	}
	// undone: the disk of a server has refused a duty; its log ends at zxid.
	undone struct {
		server ensemble.ServerID
		zxid   wire.Zxid
	}
	// promised: a server sends a packet to another one.
	promised struct {
		server    ensemble.ServerID
		byLearner bool
		packet    *peerwire.QuorumPacket
		epoch     wire.Epoch // in which the sender serves
		log       wire.Zxid  // where the sender's log in memory ends
		disk      durable    // of the sender
		to        receiver
	}
	// durable is what a server has on its disk.
	durable struct {
		accepted, current wire.Epoch
		zxid              wire.Zxid
	}
	// receiver is a server to which a packet is sent. wiped: its disk was replaced, and
	// it was not synchronised since.
	receiver struct {
		server ensemble.ServerID
		zxid   wire.Zxid // durable
		wiped  bool
	}
	// committed: a server is the first to apply a transaction, which is the entry with
	// this index in the history.
	committed struct {
		server ensemble.ServerID
		index  int
		txn    *record.Txn
	}
	// handed: a server applies a transaction next.
	handed struct {
		server ensemble.ServerID
		txn    *record.Txn
	}
	// delivered: a server has applied a transaction; sum is the checksum of its bytes.
	delivered struct {
		server ensemble.ServerID
		txn    *record.Txn
		sum    uint32
	}
	// stands: the zxid and digest of a server's tree after what it delivered; shown is
	// what its clients may have seen before.
	stands struct {
		server ensemble.ServerID
		zxid   wire.Zxid
		digest uint64
		shown  wire.Zxid
	}
)
