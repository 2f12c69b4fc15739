package sim

import (
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// note takes down which paths a transaction changed.
func (h *history) note(z wire.Zxid, op wire.OpCode, body record.TxnBody) {
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
			h.note(z, part.Type, part.Body)
		}
	}
}

func (h *history) at(path string) *changed {
	c := h.changes[path]
	if c == nil {
		c = new(changed)
		h.changes[path] = c
	}
	return c
}

// change notes that the znode was changed, and whether it is there since.
func (c *changed) change(z wire.Zxid, lives bool) {
	c.data = append(c.data, z)
	c.lives = append(c.lives, lives)
}

func (h *history) noteKid(path string, z wire.Zxid, lives bool) {
	h.at(path).change(z, lives)
	up := h.at(parentOf(path))
	up.kids = append(up.kids, z)
}

func (h *history) noteDeleted(path string, z wire.Zxid) {
	h.noteKid(path, z, false)
	h.at(path).kids = append(h.at(path).kids, z)
}

func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// within is the first of the sorted zxids that is above after and not above
// through; 0 if there is none.
func within(zs []wire.Zxid, after, through wire.Zxid) wire.Zxid {
	found := wire.Zxid(0)
	for i := len(zs) - 1; i >= 0 && zs[i] > after; i-- {
		if zs[i] <= through {
			found = zs[i]
		}
	}
	return found
}
