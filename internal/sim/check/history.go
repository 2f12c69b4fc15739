package check

import (
	"hash/crc32"
	"sort"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// History is the committed history, and a tree that contains it. A transaction enters the
// history when the first server applies it. Entries are in the order of their zxids.
// Entries[Index[z]] is the transaction z, and Entries[0] stands for the empty tree.
type History struct {
	Entries []Entry
	Index   map[wire.Zxid]int
	Tree    *tree.Tree
	Changes map[string]*Changed // changes of each path
	buf     []byte
}

// Entry is a transaction of the history.
type Entry struct {
	Zxid   wire.Zxid
	sum    uint32 // checksum of its bytes
	Digest uint64 // digest of the tree after the transaction
	Txn    *record.Txn
}

// Changed holds the zxids of what happened to a path, in order. Data and Lives have the
// same length.
type Changed struct {
	Data     []wire.Zxid // the znode was created, changed or deleted
	Lives    []bool      // for each of Data, whether the znode exists since then
	Children []wire.Zxid // a child was created or deleted, or the znode itself was deleted
}

// NewHistory returns an empty history over an empty tree.
func NewHistory(t *tree.Tree) History {
	h := History{Index: map[wire.Zxid]int{}, Tree: t, Changes: map[string]*Changed{}}
	_, digest := h.Tree.Digest()
	h.Index[0] = 0
	h.Entries = []Entry{{Digest: digest}}
	return h
}

// Last returns the last entry.
func (h *History) Last() *Entry { return &h.Entries[len(h.Entries)-1] }

// Place returns the index of the last entry that a tree at zxid z contains. It returns
// false if no transaction has this zxid. The first zxid of an epoch belongs to no
// transaction and means everything before the epoch.
func (h *History) Place(z wire.Zxid) (int, bool) {
	if z.Counter() != 0 {
		i, known := h.Index[z]
		return i, known
	}
	i := sort.Search(len(h.Entries), func(i int) bool { return h.Entries[i].Zxid > z })
	return i - 1, true
}

// Sum returns the checksum of a transaction's bytes.
func (h *History) Sum(t *record.Txn) uint32 {
	h.buf = t.Append(h.buf[:0])
	return crc32.ChecksumIEEE(h.buf)
}

// Add appends a transaction.
func (h *History) Add(t *record.Txn) {
	h.Tree.Apply(t)
	_, digest := h.Tree.Digest()
	h.Index[t.Zxid] = len(h.Entries)
	h.Entries = append(h.Entries, Entry{t.Zxid, h.Sum(t), digest, t})
	h.Note(t.Zxid, t.Type, t.Body)
}
