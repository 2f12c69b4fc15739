package peerwire

import (
	"bufio"
	"strconv"

	"bellwether/wire"
)

// LinkID names a connection between a leader and a learner. No two connections of a
// process have the same; 0 is none. It is never sent.
type LinkID uint64

// PacketType says what a packet between a leader and a learner is for.
type PacketType int32

// The packets. Those of learners and those of leaders share the numbers.
const (
	PacketRequest        PacketType = 1  // learner: a client's write, a ForwardedRequest
	PacketProposal       PacketType = 2  // leader: a Txn to log
	PacketAck            PacketType = 3  // learner: logged up to the zxid
	PacketCommit         PacketType = 4  // leader: the transaction is decided
	PacketPing           PacketType = 5  // both: the learner's carries TouchedSessions
	PacketRevalidate     PacketType = 6  // both: Revalidation asks, Revalidated answers
	PacketSync           PacketType = 7  // leader: the learner's oldest sync may be answered
	PacketInform         PacketType = 8  // leader to observer: a decided Txn
	PacketCommitActivate PacketType = 9  // leader: commit of a reconfiguration, an Activation
	PacketNewLeader      PacketType = 10 // leader: the learner has the whole history up to the zxid; configuration text
	PacketFollowerInfo   PacketType = 11 // follower: its accepted epoch, a LearnerInfo
	PacketUpToDate       PacketType = 12 // leader: serve now
	PacketDiff           PacketType = 13 // leader: transactions follow
	PacketTrunc          PacketType = 14 // leader: cut your log behind the zxid
	PacketSnap           PacketType = 15 // leader: a snapshot follows this packet
	PacketObserverInfo   PacketType = 16 // observer: as FollowerInfo
	PacketLeaderInfo     PacketType = 17 // leader: the new epoch, a LeaderInfo
	PacketAckEpoch       PacketType = 18 // learner: promises the epoch, an EpochAck
	PacketInformActivate PacketType = 19 // leader to observer: a reconfiguration, an Activation with its Txn
	packetTypeEnd                   = 20

	// PacketHandOver is sent only between native peers that have agreed on an Extension
	// of version ExtensionHandOver or later; its number is far from those that ZooKeeper
	// may choose. The leader ends its term with it; the data is a Handover, which names
	// the server that is to lead next.
	PacketHandOver PacketType = 1001
	// PacketFitness is sent by a learner, only between native peers that have agreed on an
	// Extension of version ExtensionFitness or later. The data is a Fitness. A learner that has
	// sent none on a connection is fit to lead.
	PacketFitness PacketType = 1002
	// PacketRelay is sent only between native peers that have agreed on an Extension of
	// version ExtensionRelay or later. With it a follower tells the leader that the observer
	// of its Origin has connected to the follower; the leader answers with a Relayed.
	PacketRelay PacketType = 1003
	// PacketDigest is sent only between native peers that have agreed on an Extension of
	// version ExtensionDigest or later. With it they compare their trees. The data of a learner's packet is
	// a TreeReport, that of a leader's packet a TreeOrder.
	PacketDigest PacketType = 1004
	// PacketTouch is sent only between native peers that have agreed on an Extension of
	// version ExtensionTouch or later. With it a learner reports TouchedSessions without
	// waiting for a ping, and asks when they are confirmed. It sends no other PacketTouch until
	// they are. The leader confirms them with a PingInfo, in a PacketTouch or in a ping.
	PacketTouch PacketType = 1005
)

var packetNames = [packetTypeEnd]string{
	PacketRequest: "REQUEST", PacketProposal: "PROPOSAL", PacketAck: "ACK", PacketCommit: "COMMIT",
	PacketPing: "PING", PacketRevalidate: "REVALIDATE", PacketSync: "SYNC", PacketInform: "INFORM",
	PacketCommitActivate: "COMMITANDACTIVATE", PacketNewLeader: "NEWLEADER",
	PacketFollowerInfo: "FOLLOWERINFO", PacketUpToDate: "UPTODATE", PacketDiff: "DIFF",
	PacketTrunc: "TRUNC", PacketSnap: "SNAP", PacketObserverInfo: "OBSERVERINFO",
	PacketLeaderInfo: "LEADERINFO", PacketAckEpoch: "ACKEPOCH", PacketInformActivate: "INFORMANDACTIVATE",
}

// String returns the name that operators know from logs.
func (p PacketType) String() string {
	switch {
	case p > 0 && p < packetTypeEnd:
		return packetNames[p]
	case p == PacketHandOver:
		return "HANDOVER"
	case p == PacketFitness:
		return "FITNESS"
	case p == PacketRelay:
		return "RELAY"
	case p == PacketDigest:
		return "DIGEST"
	case p == PacketTouch:
		return "TOUCH"
	}
	return "packet " + strconv.Itoa(int(p))
}

// elementMax is the largest string or buffer, in bytes, that ZooKeeper reads by
// default: jute.maxbuffer (0xfffff) plus the same again of extra size.
const elementMax = 2 * wire.FrameMax

// PacketMax is the default limit of a quorum packet in bytes: its data and
// its identities may each be as long as the longest element.
const PacketMax = 2 * elementMax

// QuorumPacket is a message between a leader and a learner. It has no frame: each packet
// follows the one before it, and a PacketSnap is followed by the bytes of a snapshot.
// Null and empty Data are both accepted everywhere.
type QuorumPacket struct {
	Type PacketType
	Zxid wire.Zxid
	Data []byte    // the record that Type names, nil where there is none
	Auth []wire.ID // only in a PacketRequest: the identities of the client
}

// Code encodes or decodes the fields.
func (p *QuorumPacket) Code(c *wire.Coder) {
	c.Int32((*int32)(&p.Type))
	p.Zxid.Code(c)
	c.Buffer(&p.Data)
	c.IDs(&p.Auth)
}

// ReadPacket fills p with the next packet of r, of at most max bytes. The packet has
// memory of its own. The errors are those of [wire.ReadRecord]. An unknown type is no
// error: a receiver ignores packets that it does not expect.
func ReadPacket(r *bufio.Reader, p *QuorumPacket, max int) error {
	c := wire.StreamDecoder(r, max)
	p.Code(&c)
	return c.Err()
}

// SnapshotEnd is the string behind the snapshot that follows a PacketSnap.
const SnapshotEnd = "BenWasHere"
