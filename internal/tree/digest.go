package tree

import (
	"encoding/binary"
	"hash/crc32"

	"bellwether/internal/record"
	"bellwether/wire"
)

// The tree's digest is the sum, modulo 2^64, of a CRC-32 for each znode: over its path
// (the root's is empty), its data, and its stat. A znode keeps the part over path and
// data, so that a change of its stat takes only 60 bytes of input.

// crcOf returns the first part of a znode's digest, over path and data.
func (t *Tree) crcOf(path string, data []byte) uint32 {
	if path == "/" {
		path = ""
	}
	t.scratch = append(t.scratch[:0], path...)
	crc := crc32.Update(0, crc32.IEEETable, t.scratch)
	if cap(t.scratch) > scratchMax {
		t.scratch = nil
	}
	return crc32.Update(crc, crc32.IEEETable, data)
}

// scratchMax is the largest scratch memory that is kept for the next path.
const scratchMax = 64 << 10

// finish computes a znode's digest from crc, the first part of the digest, and the
// znode's stat.
func (t *Tree) finish(crc uint32, s *record.StatPersisted) uint64 {
	b := t.scratch[:0]
	b = binary.BigEndian.AppendUint64(b, uint64(s.Czxid))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Mzxid))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Pzxid))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Ctime))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Mtime))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Version))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Cversion))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Aversion))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Owner))
	t.scratch = b
	return uint64(crc32.Update(crc, crc32.IEEETable, b))
}

// sum returns the digest of one znode; 0 if the znode does not count in the tree's
// digest.
func (t *Tree) sum(n *node) uint64 { return t.sumAt(n, 0) }

// sumAt returns the digest that a znode will have once its children have changed at z.
func (t *Tree) sumAt(n *node, z wire.Zxid) uint64 {
	if t.o.DigestOff || n.meta&flagOutside != 0 {
		return 0
	}
	s := n.persisted()
	s.Pzxid = max(s.Pzxid, z)
	return t.finish(n.crc, &s)
}

// Digest returns the last applied zxid and the digest of the tree after it.
func (t *Tree) Digest() (wire.Zxid, uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.last, t.digest
}

// ExactDigest is Digest for a comparison with the trees of other servers. ok is false if no digest is
// computed, or if the tree may contain effects of transactions that it has not applied yet.
func (t *Tree) ExactDigest() (z wire.Zxid, digest uint64, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.last, t.digest, !t.o.DigestOff && !t.digests.fuzzy
}

// DigestEntry is the digest after one transaction.
type DigestEntry struct {
	Zxid   wire.Zxid
	Digest uint64
}

// The digest of every digestEvery-th zxid is kept, up to digestHistory of them. Of the
// mismatches, the first mismatchesKept are kept.
const (
	digestEvery    = 128
	digestHistory  = 1024
	mismatchesKept = 16
)

// digestLog holds past digests and mismatches.
type digestLog struct {
	ring       []DigestEntry
	next       int
	mismatches int64
	first      []wire.Zxid
	// A tree is fuzzy when it was loaded from a snapshot and has not yet applied the
	// transaction at which the snapshot's digest was taken. That digest is want. Until
	// then no other digest is compared.
	fuzzy bool
	want  record.SnapshotDigest
}

func (d *digestLog) remember(z wire.Zxid, digest uint64) {
	if uint64(z)%digestEvery != 0 {
		return
	}
	if len(d.ring) < digestHistory {
		d.ring = append(d.ring, DigestEntry{z, digest})
		return
	}
	d.ring[d.next] = DigestEntry{z, digest}
	d.next = (d.next + 1) % digestHistory
}

// DigestHistory returns the digest after every 128th zxid, the oldest first.
func (t *Tree) DigestHistory() []DigestEntry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	d := &t.digests
	return append(append([]DigestEntry(nil), d.ring[d.next:]...), d.ring[:d.next]...)
}

// DigestMismatches counts the transactions after which the digest of the tree was not the
// expected one, and names the first few.
func (t *Tree) DigestMismatches() (n int64, first []wire.Zxid) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.digests.mismatches, append([]wire.Zxid(nil), t.digests.first...)
}

// checkDigest compares the digest after a transaction with the digest that the leader
// computed for it, or with that of the snapshot.
func (t *Tree) checkDigest(txn *record.Txn) {
	if t.o.DigestOff {
		return
	}
	d := &t.digests
	d.remember(txn.Zxid, t.digest)
	switch {
	case d.fuzzy && txn.Zxid < d.want.Zxid:
	case d.fuzzy && txn.Zxid == d.want.Zxid:
		d.fuzzy = false
		t.compare(txn.Zxid, d.want.Version, d.want.Tree)
	case txn.Digest != nil:
		t.compare(txn.Zxid, txn.Digest.Version, txn.Digest.Tree)
	}
}

func (t *Tree) compare(z wire.Zxid, version int32, digest uint64) {
	if version != record.DigestVersion || digest == t.digest {
		return
	}
	d := &t.digests
	d.mismatches++
	if len(d.first) < mismatchesKept {
		d.first = append(d.first, z)
		t.observe(DigestMismatch{z, t.digest, digest})
	}
}
