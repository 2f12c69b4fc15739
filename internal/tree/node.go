package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// node is a znode. A million of them is a normal load, so a node is one object of 120
// bytes and one byte slice.
type node struct {
	parent   *node     // nil: the root, or a znode no longer in the tree
	children *childSet // nil: no child
	// text is the name, followed by the data. It is replaced as a whole and never
	// changed, so that readers may keep parts of it.
	text []byte

	czxid, mzxid, pzxid wire.Zxid
	ctime, mtime        int64
	owner               int64 // as stored on disk: a session id, or a number that stands for a kind of znode (see kindOf)

	version  int32
	cversion int32 // creates of children so far; clients see a different number
	aversion int32
	acl      int32  // in the tree's aclTable
	crc      uint32 // checksum of path and data: the first part of the digest
	hash     uint32 // hash of the name
	slot     uint32 // index in the nodeList of its owner
	meta     uint32 // length of the name, and the flags below
}

const (
	flagNull    = 1 << 31 // the data is null, not just empty
	flagOutside = 1 << 30 // the znode is outside the digest
	nameMask    = flagOutside - 1
)

func (n *node) nameLen() int { return int(n.meta & nameMask) }

// name returns the name. It is valid only until the caller returns; to keep it the caller
// must copy it.
func (n *node) name() []byte { return n.text[:n.nameLen()] }

// data returns the data, which may be kept; nil if the data is null.
func (n *node) data() []byte {
	if n.meta&flagNull != 0 {
		return nil
	}
	if d := n.text[n.nameLen():]; d != nil {
		return d[:len(d):len(d)]
	}
	return []byte{}
}

func (n *node) dataLen() int { return len(n.text) - n.nameLen() }

// newNode returns a znode with a name, the hash of the name, and data. It copies name and data.
func newNode(name string, hash uint32, data []byte) *node {
	n := &node{hash: hash}
	n.write(name, data)
	return n
}

// write sets name and data, which it copies.
func (n *node) write(name string, data []byte) {
	text := make([]byte, len(name)+len(data))
	copy(text, name)
	copy(text[len(name):], data)
	n.text = text
	n.meta = n.meta&flagOutside | uint32(len(name))
	if data == nil {
		n.meta |= flagNull
	}
}

// rewrite replaces the data.
func (n *node) rewrite(data []byte) {
	text := make([]byte, n.nameLen()+len(data))
	copy(text, n.name())
	copy(text[n.nameLen():], data)
	n.text = text
	n.meta &^= flagNull
	if data == nil {
		n.meta |= flagNull
	}
}

// stat fills in the stat that clients see.
func (t *Tree) stat(n *node, s *wire.Stat) {
	count := int32(n.children.len())
	*s = wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: record.VisibleCversion(n.cversion, count), Aversion: n.aversion,
		DataLength: int32(n.dataLen()), NumChildren: count,
	}
	if kind, _ := t.o.kindOf(n.owner); kind == kindEphemeral {
		s.EphemeralOwner = wire.SessionID(n.owner)
	}
}

// persisted fills in the stat that is stored on disk.
func (n *node) persisted() record.StatPersisted {
	return record.StatPersisted{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: n.cversion, Aversion: n.aversion, Owner: n.owner,
	}
}

// kind returns the type of a znode, according to its owner field.
type kind uint8

const (
	kindPersistent kind = iota
	kindEphemeral
	kindContainer
	kindTTL
)

// kindOf decodes an owner field. It recognises TTLs even if no new TTL znodes may be
// created. In that case ZooKeeper takes such znodes for ephemerals, and would delete them
// at the next start.
func (o *Options) kindOf(owner int64) (k kind, ttl int64) {
	switch owner {
	case 0:
		return kindPersistent, 0
	case record.OwnerContainer:
		return kindContainer, 0
	}
	if ttl, ok := record.OwnerTTL(owner); ok {
		return kindTTL, ttl
	}
	if owner < 0 && o.Emulate353TTL {
		return kindTTL, owner &^ record.OwnerContainer
	}
	return kindEphemeral, 0
}

// nodeList holds the znodes of one owner. Each znode stores its index in the list.
type nodeList []*node

func (l *nodeList) add(n *node) {
	n.slot = uint32(len(*l))
	*l = append(*l, n)
}

func (l *nodeList) remove(n *node) {
	old := *l
	end := len(old) - 1
	old[end].slot = n.slot
	old[n.slot] = old[end]
	old[end] = nil
	*l = old[:end]
	if end == 0 {
		*l = nil
	}
}
