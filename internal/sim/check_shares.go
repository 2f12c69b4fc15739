package sim

import (
	"fmt"
	"path"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// shares checks parts that members share. No part has two owners at once, and each owner's
// token is larger than the earlier ones. As long as an owner's deadline has not passed, its
// session lives. A task is removed only by its owner, which must have begun it, and nobody
// begins it again after that.
type shares struct {
	sim    *Sim
	tokens map[string]wire.Zxid // token of the last owner, by part
	tasks  map[string]bool      // tasks that were submitted; true: not over yet
	begun  map[string]bool      // tasks that somebody has begun
}

func newShares(s *Sim) *shares {
	return &shares{sim: s, tokens: map[string]wire.Zxid{}, tasks: map[string]bool{}, begun: map[string]bool{}}
}

func (*shares) Name() string { return "Shares" }

func (c *shares) See(o any) string {
	switch e := o.(type) {
	case partOwned:
		if last := c.tokens[e.o.part]; e.token <= last {
			return fmt.Sprintf("%s is owned by %v after %v", e.o.part, e.token, last)
		}
		c.tokens[e.o.part] = e.token
		return c.beside(e.o)
	case partProven:
		return c.beside(e.o)
	case taskBegan:
		if c.begun[e.o.part] = true; !c.tasks[e.o.part] {
			return fmt.Sprintf("member %s begins %s, which is over", e.o.s.id, e.o.part)
		}
	case taskDone:
		if c.tasks[e.o.part] {
			return fmt.Sprintf("member %s says that %s is over", e.o.s.id, e.o.part)
		}
	case check.Committed:
		return c.committed(e.Txn)
	}
	return ""
}

// beside returns what is wrong if another member owns the same part.
func (c *shares) beside(o *owner) string {
	for _, s := range c.sim.sharers() {
		for _, other := range s.owners {
			if other != o && other.part == o.part && other.holds() && !other.kicked {
				return fmt.Sprintf("members %s and %s own %s at the same time", o.s.id, s.id, o.part)
			}
		}
	}
	return ""
}

func (c *shares) committed(t *record.Txn) string {
	if t.Type == wire.OpCloseSession {
		for _, s := range c.sim.sharers() {
			for _, o := range s.owners {
				if s.c.session == t.Session && o.holds() {
					return fmt.Sprintf("session %v of member %s is ended by %v, and it owns %s yet", t.Session, s.id, t.Zxid, o.part)
				}
			}
		}
	}
	for _, body := range changesOf(t) {
		if wrong := c.changed(t.Session, body); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (c *shares) changed(session wire.SessionID, body record.TxnBody) string {
	switch b := body.(type) {
	case *record.CreateTxn:
		if path.Dir(b.Path) == shareTasks {
			c.tasks[path.Base(b.Path)] = true
		}
	case *record.DeleteTxn:
		name := path.Base(b.Path)
		if path.Dir(b.Path) != shareTasks {
			return ""
		}
		owner := c.sim.first(claim.Join(shareParts, name))
		switch c.tasks[name] = false; {
		case !c.begun[name]:
			return fmt.Sprintf("%s goes, and nobody has begun it", name)
		case owner != session:
			return fmt.Sprintf("session %v ends %s, which is owned by session %v", session, name, owner)
		}
	}
	return ""
}

// first returns the session of the first bid; 0: there is none.
func (s *Sim) first(parent string) (owner wire.SessionID) {
	bids := claim.ParseBids(s.names(parent))
	slices.SortFunc(bids, func(a, b claim.Bid) int { return int(a.Seq - b.Seq) })
	for _, b := range bids {
		if _, stat := s.content(claim.Join(parent, b.Name)); stat.EphemeralOwner != 0 {
			return stat.EphemeralOwner
		}
	}
	return 0
}
