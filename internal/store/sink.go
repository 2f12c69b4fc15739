package store

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// Source is a tree to be written as a snapshot. The three passes are called in this
// order. The tree may change between them; the format allows for that.
type Source interface {
	Sessions(yield func(id wire.SessionID, timeoutMS int32) error) error
	ACLs(yield func(key int64, acl []wire.ACL) error) error
	// Nodes yields every znode, parents before children, the root as "". yield must not
	// keep its arguments.
	Nodes(yield func(path string, n *record.DataNode) error) error
	// Digest is called last. It returns the last applied zxid and the digest of the tree
	// at that zxid.
	Digest() (wire.Zxid, uint64)
}

// Sink receives what Load reads: Reset, then one snapshot in the order of Source, then
// the transactions after it. If a snapshot proves unsound Reset is called again before an
// older one is tried.
type Sink interface {
	Reset()
	Session(id wire.SessionID, timeoutMS int32) error
	ACL(key int64, acl []wire.ACL) error
	// Node must not keep n or n.Data, whose memory is used again for the next znode.
	Node(path string, n *record.DataNode) error
	// SnapshotDone ends the snapshot named after zxid. digest is nil if the file has
	// none; otherwise its zxid may be later than zxid.
	SnapshotDone(zxid wire.Zxid, digest *SnapshotDigest) error
	// Txn may keep t.
	Txn(t *record.Txn) error
}

// SnapshotDigest is the digest block of a snapshot.
type SnapshotDigest = record.SnapshotDigest

// Discard is a Sink that drops everything, for callers who only want to know whether
// files can be read, or who have the history already.
type Discard struct{}

// The methods of Sink, which do nothing.
func (Discard) Reset()                                        {}
func (Discard) Session(wire.SessionID, int32) error           { return nil }
func (Discard) ACL(int64, []wire.ACL) error                   { return nil }
func (Discard) Node(string, *record.DataNode) error           { return nil }
func (Discard) SnapshotDone(wire.Zxid, *SnapshotDigest) error { return nil }
func (Discard) Txn(*record.Txn) error                         { return nil }
