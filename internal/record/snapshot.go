package record

import (
	"bellwether/wire"
)

// SnapshotDigest is the digest block of a snapshot: the digest of the tree
// after the transaction Zxid.
type SnapshotDigest struct {
	Zxid    wire.Zxid
	Version int32
	Tree    uint64
}

// StatPersisted is the part of a znode's stat that is stored on disk. Cversion counts
// only creates here, and Owner also encodes containers and TTLs.
type StatPersisted struct {
	Czxid    wire.Zxid
	Mzxid    wire.Zxid
	Ctime    int64
	Mtime    int64
	Version  int32
	Cversion int32
	Aversion int32
	Owner    int64
	Pzxid    wire.Zxid
}

// Code encodes or decodes the fields.
func (s *StatPersisted) Code(c *wire.Coder) {
	s.Czxid.Code(c)
	s.Mzxid.Code(c)
	c.Int64(&s.Ctime)
	c.Int64(&s.Mtime)
	c.Int32(&s.Version)
	c.Int32(&s.Cversion)
	c.Int32(&s.Aversion)
	c.Int64(&s.Owner)
	s.Pzxid.Code(c)
}

// DataNode is a znode in a snapshot. ACL is a key into the snapshot's ACL
// map, -1 for world:anyone with all permissions.
type DataNode struct {
	Data []byte
	ACL  int64
	Stat StatPersisted
}

// Code encodes or decodes the fields.
func (n *DataNode) Code(c *wire.Coder) {
	c.Buffer(&n.Data)
	c.Int64(&n.ACL)
	n.Stat.Code(c)
}
