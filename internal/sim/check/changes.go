package check

import (
	"sort"
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Note records which paths a transaction has changed.
func (h *History) Note(z wire.Zxid, op wire.OpCode, body record.TxnBody) {
	switch b := body.(type) {
	case *record.CreateTxn:
		h.noteKid(b.Path, z, true)
	case *record.CreateContainerTxn:
		h.noteKid(b.Path, z, true)
	case *record.CreateTTLTxn:
		h.noteKid(b.Path, z, true)
	case *record.DeleteTxn:
		h.noteDeleted(b.Path, z)
	case *record.SetDataTxn:
		h.at(b.Path).change(z, true)
	case *record.CloseSessionTxn:
		for _, p := range b.Paths {
			h.noteDeleted(p, z)
		}
	case *record.MultiTxn:
		if b.Failed() {
			break
		}
		for _, part := range b.Ops {
			h.Note(z, part.Type, part.Body)
		}
	}
}

// at returns the changes of a path so far.
func (h *History) at(path string) *Changed {
	c := h.Changes[path]
	if c == nil {
		c = new(Changed)
		h.Changes[path] = c
	}
	return c
}

// change records that the znode was changed, and whether it exists since then.
func (c *Changed) change(z wire.Zxid, lives bool) {
	c.Data = append(c.Data, z)
	c.Lives = append(c.Lives, lives)
}

// AsOf returns the zxid of the last change up to z, and whether the znode existed then.
func (c *Changed) AsOf(z wire.Zxid) (at wire.Zxid, lives bool) {
	i := sort.Search(len(c.Data), func(i int) bool { return c.Data[i] > z })
	if i == 0 {
		return 0, false
	}
	return c.Data[i-1], c.Lives[i-1]
}

// noteKid records that a znode was created or deleted.
func (h *History) noteKid(path string, z wire.Zxid, lives bool) {
	h.at(path).change(z, lives)
	up := h.at(ParentOf(path))
	up.Children = append(up.Children, z)
}

// noteDeleted records that a znode was deleted.
func (h *History) noteDeleted(path string, z wire.Zxid) {
	h.noteKid(path, z, false)
	h.at(path).Children = append(h.at(path).Children, z)
}

// ParentOf returns the path of a znode's parent.
func ParentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Within returns the first of some sorted zxids that is larger than after and not larger
// than through; 0: there is none.
func Within(zs []wire.Zxid, after, through wire.Zxid) wire.Zxid {
	found := wire.Zxid(0)
	for i := len(zs) - 1; i >= 0 && zs[i] > after; i-- {
		if zs[i] <= through {
			found = zs[i]
		}
	}
	return found
}
