package check

import (
	"hash/crc32"
	"sort"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// History is the committed history: each transaction that any server was the first to
// apply, in that order, and a tree over it. Entries[Index[z]] is the transaction z;
// Entries[0] is the empty tree.
type History struct {
	Entries []Entry
	Index   map[wire.Zxid]int
	Tree    *tree.Tree
	Changes map[string]*Changed // by path
	buf     []byte
}

// Entry is a transaction of the history.
type Entry struct {
	Zxid   wire.Zxid
	sum    uint32 // checksum of its bytes
	Digest uint64 // of the tree after it
	Txn    *record.Txn
}

// Changed holds the zxids at which something happened to a path, in order.
type Changed struct {
	Data  []wire.Zxid // it was created, changed or deleted
	Lives []bool      // for each of Data, whether it exists since then
	Kids  []wire.Zxid // a child was created or deleted, or the path itself was deleted
}

// NewHistory returns the empty history, over an empty tree.
func NewHistory(t *tree.Tree) History {
	h := History{Index: map[wire.Zxid]int{}, Tree: t, Changes: map[string]*Changed{}}
	_, digest := h.Tree.Digest()
	h.Index[0] = 0
	h.Entries = []Entry{{Digest: digest}}
	return h
}

// Last is the last entry.
func (h *History) Last() *Entry { return &h.Entries[len(h.Entries)-1] }

// Place is the index of the last entry that a tree at a zxid contains; false: no
// transaction has this zxid. The first zxid of an epoch is that of no transaction, and
// means everything before it.
func (h *History) Place(z wire.Zxid) (int, bool) {
	if z.Counter() != 0 {
		i, known := h.Index[z]
		return i, known
	}
	i := sort.Search(len(h.Entries), func(i int) bool { return h.Entries[i].Zxid > z })
	return i - 1, true
}

// Sum is the checksum of a transaction's bytes.
func (h *History) Sum(t *record.Txn) uint32 {
	h.buf = t.Append(h.buf[:0])
	return crc32.ChecksumIEEE(h.buf)
}

// Add adds a transaction at the end.
func (h *History) Add(t *record.Txn) {
	h.Tree.Apply(t)
	_, digest := h.Tree.Digest()
	h.Index[t.Zxid] = len(h.Entries)
	h.Entries = append(h.Entries, Entry{t.Zxid, h.Sum(t), digest, t})
	h.Note(t.Zxid, t.Type, t.Body)
}
