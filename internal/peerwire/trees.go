package peerwire

import "bellwether/wire"

// TreeReport is the data of a learner's PacketDigest: what the learner knows about its tree. If Known
// is set, the packet's zxid is the one of Digest.
type TreeReport struct {
	// Differs is the first transaction of the term after which the digest of the sender's tree was not
	// the one that the transaction carries; 0: there is none.
	Differs wire.Zxid
	// Copied says that the tree comes from another server's snapshot, and that no quorum is known
	// to have had the same tree since.
	Copied bool
	// Wrong says that a quorum had another tree, and that neither a snapshot has replaced this one nor a
	// quorum has confirmed it since. To its observer master an observer says with it that its tree has differed for
	// a while.
	Wrong bool
	// Known says that the packet answers a TreeReportDue. Digest is then the digest of the tree
	// after exactly the transactions up to the packet's zxid.
	Known   bool
	Version int32 // of the digest, if it is known; digests of different versions cannot be compared
	Digest  uint64
}

// Code encodes or decodes the fields.
func (t *TreeReport) Code(c *wire.Coder) {
	t.Differs.Code(c)
	c.Bool(&t.Copied)
	c.Bool(&t.Wrong)
	c.Bool(&t.Known)
	c.Int32(&t.Version)
	digest := int64(t.Digest)
	c.Int64(&digest)
	t.Digest = uint64(digest)
}

// TreeTask is what a leader's PacketDigest asks for or says.
type TreeTask int32

// The tasks. The packet's zxid is the transaction after which the trees are compared.
const (
	// TreeReportDue asks for the digest after the packet's zxid. The learner has applied nothing
	// beyond it yet.
	TreeReportDue TreeTask = 1
	// TreeConfirmed says that a quorum has the same tree as the receiver.
	TreeConfirmed TreeTask = 2
	// TreeReplaced says that a quorum has another tree. The leader closes the link, and sends a
	// snapshot when the receiver comes back.
	TreeReplaced TreeTask = 3
	// TreeWrongAgain says that the same has happened once more in this term, although a quorum had confirmed the
	// snapshot. The receiver must stop.
	TreeWrongAgain TreeTask = 4
)

// TreeOrder is the data of a leader's PacketDigest. Digest is that of the leader's tree; 0 in a
// TreeReportDue.
type TreeOrder struct {
	Task   TreeTask
	Digest uint64
}

// Code encodes or decodes the fields.
func (t *TreeOrder) Code(c *wire.Coder) {
	at := c.Offset()
	c.Int32((*int32)(&t.Task))
	if t.Task < TreeReportDue || t.Task > TreeWrongAgain {
		c.Fail(at, wire.ErrValue)
	}
	digest := int64(t.Digest)
	c.Int64(&digest)
	t.Digest = uint64(digest)
}
