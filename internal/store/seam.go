package store

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// Source is a tree to be written as a snapshot. The three passes come in
// this order; the tree may change in between (the format is made for it).
type Source interface {
	Sessions(yield func(id wire.SessionID, timeoutMS int32) error) error
	ACLs(yield func(key int64, acl []wire.ACL) error) error
	// Nodes yields every znode, parents before children, the root as "".
	// What yield gets it must not keep.
	Nodes(yield func(path string, n *record.DataNode) error) error
	// Digest is asked last: the last applied zxid and the digest of the tree
	// at that zxid.
	Digest() (wire.Zxid, uint64)
}

// Sink receives what Load finds: first Reset, then one snapshot in the order
// of Source, then the transactions behind it. Reset comes again before an
// older snapshot is tried because a newer one proved unsound.
type Sink interface {
	Reset()
	Session(id wire.SessionID, timeoutMS int32) error
	ACL(key int64, acl []wire.ACL) error
	// Node owns n.Data after the call; n itself is used again for the next.
	Node(path string, n *record.DataNode) error
	// SnapshotDone ends the snapshot named after zxid. digest is nil where
	// the file has none; else its zxid may be later than the file's.
	SnapshotDone(zxid wire.Zxid, digest *SnapshotDigest) error
	// Txn owns t after the call.
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
