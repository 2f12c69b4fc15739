package sim

import (
	"fmt"
	"maps"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// equalDigest: trees at the same zxid are equal.
type equalDigest struct{ history *history }

func (equalDigest) name() string { return "EqualDigest" }

func (c equalDigest) see(o any) string {
	e, ok := o.(stands)
	if !ok {
		return ""
	}
	i, known := c.history.place(e.zxid)
	if known && c.history.entries[i].digest != e.digest {
		return fmt.Sprintf("server %d at %v has digest %x, others have %x", e.server, e.zxid, e.digest, c.history.entries[i].digest)
	}
	return ""
}

// nothingUndone: what clients of a server have seen is in its tree whenever it
// serves.
type nothingUndone struct{ history *history }

func (nothingUndone) name() string { return "NothingUndone" }

func (c nothingUndone) see(o any) string {
	e, ok := o.(stands)
	if !ok || e.zxid >= e.shown {
		return ""
	}
	now, _ := c.history.place(e.zxid)
	if before, _ := c.history.place(e.shown); now < before {
		return fmt.Sprintf("server %d serves at %v, its clients have seen %v", e.server, e.zxid, e.shown)
	}
	return ""
}

// ephemerals: an ephemeral exists exactly while its session does, unless it is
// deleted.
type ephemerals struct {
	history *history
	open    map[wire.SessionID]bool
	owner   map[string]wire.SessionID
}

func newEphemerals(h *history) *ephemerals {
	return &ephemerals{h, map[wire.SessionID]bool{}, map[string]wire.SessionID{}}
}

func (*ephemerals) name() string { return "EphemeralsOfSessions" }

func (c *ephemerals) see(o any) string {
	e, ok := o.(committed)
	if !ok {
		return ""
	}
	switch e.txn.Type {
	case wire.OpCreateSession:
		c.open[e.txn.Session] = true
	case wire.OpCloseSession:
		delete(c.open, e.txn.Session)
		maps.DeleteFunc(c.owner, func(_ string, id wire.SessionID) bool { return id == e.txn.Session })
		return c.compare(e.txn)
	default:
		return c.change(e.txn.Session, e.txn.Body)
	}
	return ""
}

func (c *ephemerals) change(id wire.SessionID, body record.TxnBody) string {
	switch b := body.(type) {
	case *record.CreateTxn:
		if !b.Ephemeral {
			break
		}
		if !c.open[id] {
			return fmt.Sprintf("%s is created by session %v, which does not live", b.Path, id)
		}
		c.owner[b.Path] = id
	case *record.DeleteTxn:
		delete(c.owner, b.Path)
	case *record.MultiTxn:
		if b.Failed() {
			break
		}
		for _, part := range b.Ops {
			if wrong := c.change(id, part.Body); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// compare holds the ephemerals there should be against those there are.
func (c *ephemerals) compare(txn *record.Txn) string {
	there := map[string]wire.SessionID{}
	for _, s := range c.history.tree.EphemeralsBySession() {
		for _, path := range s.Paths {
			there[path] = s.Session
		}
	}
	if maps.Equal(there, c.owner) {
		return ""
	}
	return fmt.Sprintf("after the end of session %v at %v there are ephemerals %v, there should be %v",
		txn.Session, txn.Zxid, slices.Sorted(maps.Keys(there)), slices.Sorted(maps.Keys(c.owner)))
}
