package check

import (
	"fmt"
	"maps"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// equalDigest checks that trees at the same zxid are equal.
type equalDigest struct{ history *History }

func (equalDigest) Name() string { return "EqualDigest" }

func (c equalDigest) See(o any) string {
	e, ok := o.(Stands)
	if !ok {
		return ""
	}
	i, known := c.history.Place(e.Zxid)
	if known && c.history.Entries[i].Digest != e.Digest {
		return fmt.Sprintf("server %d at %v has digest %x, others have %x", e.Server, e.Zxid, e.Digest, c.history.Entries[i].Digest)
	}
	return ""
}

// nothingUndone checks that the tree of a serving server contains everything that its
// clients have seen.
type nothingUndone struct{ history *History }

func (nothingUndone) Name() string { return "NothingUndone" }

func (c nothingUndone) See(o any) string {
	e, ok := o.(Stands)
	if !ok || e.Zxid >= e.Shown {
		return ""
	}
	now, _ := c.history.Place(e.Zxid)
	if before, _ := c.history.Place(e.Shown); now < before {
		return fmt.Sprintf("server %d serves at %v, but its clients have seen %v", e.Server, e.Zxid, e.Shown)
	}
	return ""
}

// ephemerals checks that an ephemeral exists exactly as long as its session, unless it is
// deleted before.
type ephemerals struct {
	history *History
	open    map[wire.SessionID]bool
	owner   map[string]wire.SessionID
}

func newEphemerals(h *History) *ephemerals {
	return &ephemerals{h, map[wire.SessionID]bool{}, map[string]wire.SessionID{}}
}

func (*ephemerals) Name() string { return "EphemeralsOfSessions" }

func (c *ephemerals) See(o any) string {
	e, ok := o.(Committed)
	if !ok {
		return ""
	}
	switch e.Txn.Type {
	case wire.OpCreateSession:
		c.open[e.Txn.Session] = true
	case wire.OpCloseSession:
		delete(c.open, e.Txn.Session)
		maps.DeleteFunc(c.owner, func(_ string, id wire.SessionID) bool { return id == e.Txn.Session })
		return c.compare(e.Txn)
	default:
		return c.change(e.Txn.Session, e.Txn.Body)
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
			return fmt.Sprintf("%s is created by session %v, which does not exist", b.Path, id)
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

// compare compares the expected ephemerals with those in the tree.
func (c *ephemerals) compare(txn *record.Txn) string {
	there := map[string]wire.SessionID{}
	for _, s := range c.history.Tree.EphemeralsBySession() {
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
