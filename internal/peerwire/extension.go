package peerwire

import (
	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// extensionMagic is how an Extension begins: the text BELLWETH.
const extensionMagic int64 = 0x42454c4c57455448

// ExtensionLen is the encoded length of an Extension in bytes.
const ExtensionLen = 16

// Versions of the native extension between leader and learner. From version 1 on,
// pings carry a PingInfo. From version ExtensionHandOver on, a leader may send a
// PacketHandOver; from version ExtensionFitness on, a learner may send a PacketFitness. From
// version ExtensionRelay on, a leader knows PacketRelay and Origin. From version ExtensionDigest on,
// both ends know PacketDigest. From version ExtensionTouch on, a leader knows PacketTouch.
// ExtensionVersion is the highest version that this program knows.
const (
	ExtensionHandOver int32 = 2
	ExtensionFitness  int32 = 3
	ExtensionRelay    int32 = 4
	ExtensionDigest   int32 = 5
	ExtensionTouch    int32 = 6
	ExtensionVersion  int32 = 6
)

// Extension is appended to LearnerInfo as an offer, and to LeaderInfo as the answer to
// one. ZooKeeper servers ignore it. Once both were sent, the leader's pings carry a
// PingInfo.
type Extension struct {
	Version int32 // the highest version that the sender knows; the lower one of both ends counts
	// LeaseMS, in the answer: the leader confirms sessions only while a quorum
	// has answered a ping that is no older than this.
	LeaseMS int32
}

// Code encodes or decodes the fields.
func (e *Extension) Code(c *wire.Coder) {
	magic := extensionMagic
	c.Int64(&magic)
	if magic != extensionMagic {
		c.Fail(0, wire.ErrValue)
		return
	}
	c.Int32(&e.Version)
	c.Int32(&e.LeaseMS)
}

// FindExtension reads the extension behind the n bytes of a record. It returns false if
// there is none.
func FindExtension(data []byte, n int) (Extension, bool) {
	var e Extension
	if len(data) < n+ExtensionLen || wire.Decode(data[n:], &e) != nil || e.Version < 1 {
		return Extension{}, false
	}
	return e, true
}

// LearnerInfoLen and LeaderInfoLen are the encoded lengths of a LearnerInfo
// and a LeaderInfo of today in bytes.
const (
	LearnerInfoLen = 20
	LeaderInfoLen  = 4
)

// PingInfo is the data of a leader's PacketPing if an Extension was agreed on, and of its
// PacketTouch. The learner's reports of sessions on this connection, which are its answers to
// pings and its PacketTouches, are counted from the first one. Confirmed is the number of reports
// whose sessions the leader has confirmed.
type PingInfo struct{ Confirmed int64 }

// Code encodes or decodes the fields.
func (p *PingInfo) Code(c *wire.Coder) { c.Int64(&p.Confirmed) }

// Handover is the data of PacketHandOver: the server that is to lead next. The packet's
// zxid is the end of the history, all of which is committed.
type Handover struct {
	Leader ensemble.ServerID
	// Avoid says that the sender should not lead again for a while, even if it is preferred.
	// It is encoded only if it is true, and programs that do not know it ignore it.
	Avoid bool
}

// Code encodes or decodes the fields.
func (h *Handover) Code(c *wire.Coder) {
	c.Int64((*int64)(&h.Leader))
	switch more := c.Decoding() && c.Err() == nil && c.Bounded() && c.Left() > 0; {
	case more:
		c.Bool(&h.Avoid)
		c.NotCanonical(!h.Avoid)
	case c.Decoding():
		h.Avoid = false
	case h.Avoid:
		c.Bool(&h.Avoid)
	}
}

// FitnessMax is the length of the longest Fitness.Why in bytes.
const FitnessMax = 256

// Fitness is the data of PacketFitness.
type Fitness struct {
	// Why says why the sender should not lead; empty if it may.
	Why string
}

// Code encodes or decodes the fields.
func (f *Fitness) Code(c *wire.Coder) {
	at := c.Offset()
	if c.String(&f.Why); len(f.Why) > FitnessMax {
		c.Fail(at, wire.ErrValue)
	}
}

// Origin names the observer for which a follower sends a packet to the leader: the follower
// is the observer's master. The zxid of a PacketRequest, PacketRevalidate or PacketRelay holds
// the origin; it is negative in a packet that the follower sends for itself. ZooKeeper's leaders
// ignore it in requests, and repeat it in the answer to a PacketRevalidate.
type Origin struct {
	Server ensemble.ServerID
	Native bool // the observer is a native peer
}

// OriginMax is the largest server id that an Origin can hold.
const OriginMax ensemble.ServerID = 1 << 61

// Zxid returns the zxid that holds the origin.
func (o Origin) Zxid() wire.Zxid {
	z := wire.Zxid(o.Server+1) << 1
	if o.Native {
		z |= 1
	}
	return z
}

// OriginOf returns the origin that a zxid holds; false if the packet has none.
func OriginOf(z wire.Zxid) (Origin, bool) {
	if z < 2 || z>>1 > wire.Zxid(OriginMax)+1 {
		return Origin{}, false
	}
	return Origin{Server: ensemble.ServerID(z>>1 - 1), Native: z&1 == 1}, true
}

// Relayed is the data of the leader's PacketRelay. If Accepted is false, the observer has
// connected to another server since, and its requests have no effect.
type Relayed struct{ Accepted bool }

// Code encodes or decodes the fields.
func (r *Relayed) Code(c *wire.Coder) { c.Bool(&r.Accepted) }
