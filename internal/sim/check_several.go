package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// several checks locks that clients take together. No lock has two holders at once, and
// each holder's token is larger than the earlier ones. As long as a holder's deadline has
// not passed, its session lives. A client that reports to have all its locks holds each of
// them.
type several struct {
	sim    *Sim
	tokens map[string]wire.Zxid // token of the last holder, by path
}

func newSeveral(s *Sim) *several { return &several{s, map[string]wire.Zxid{}} }

func (*several) Name() string { return "Several" }

func (c *several) See(o any) string {
	switch e := o.(type) {
	case lockTaken:
		if last := c.tokens[e.k.path]; e.token <= last {
			return fmt.Sprintf("%s is held by %v after %v", e.k.path, e.token, last)
		}
		c.tokens[e.k.path] = e.token
		return c.beside(e.k)
	case lockProven:
		return c.beside(e.k)
	case allTaken:
		for _, path := range e.g.paths {
			if !slices.ContainsFunc(e.g.grabs, func(k *grab) bool { return k.path == path && k.holds() }) {
				return fmt.Sprintf("multi-lock client %d has all, and does not hold %s", e.g.c.id, path)
			}
		}
	case check.Committed:
		if e.Txn.Type == wire.OpCloseSession {
			return c.ended(e.Txn)
		}
	}
	return ""
}

// beside returns what is wrong if another client holds the same lock.
func (c *several) beside(k *grab) string {
	for _, g := range c.sim.multiLocks() {
		for _, other := range g.grabs {
			if other != k && other.path == k.path && other.holds() {
				return fmt.Sprintf("multi-lock clients %d and %d hold %s at the same time", k.c.id, g.c.id, k.path)
			}
		}
	}
	return ""
}

// ended returns what is wrong if a client still holds a lock after the end of its session.
func (c *several) ended(t *record.Txn) string {
	for _, g := range c.sim.multiLocks() {
		for _, k := range g.grabs {
			if g.c.session == t.Session && k.holds() {
				return fmt.Sprintf("session %v of multi-lock client %d is ended by %v, and it holds %s yet", t.Session, g.c.id, t.Zxid, k.path)
			}
		}
	}
	return ""
}
