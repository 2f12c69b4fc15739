package wire

// SnapshotDigest is the digest block of a snapshot: the digest of the tree
// after the transaction Zxid.
type SnapshotDigest struct {
	Zxid    Zxid
	Version int32
	Tree    uint64
}
