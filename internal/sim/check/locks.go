package check

import (
	"fmt"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// multiLocks checks locks that clients take together. No lock has two holders at once, and
// each holder's token is larger than the earlier ones. As long as a holder's deadline has
// not passed, its session lives. A client that reports to have all its locks holds each of
// them.
type multiLocks struct {
	present Present
	tokens  map[string]wire.Zxid // token of the last holder, by path
}

func newMultiLocks(p Present) *multiLocks { return &multiLocks{p, map[string]wire.Zxid{}} }

func (*multiLocks) Name() string { return "MultiLocks" }

func (c *multiLocks) See(o any) string {
	switch e := o.(type) {
	case LockTaken:
		if last := c.tokens[e.Path]; e.Token <= last {
			return fmt.Sprintf("%s is held with token %v after token %v", e.Path, e.Token, last)
		}
		c.tokens[e.Path] = e.Token
		return c.beside(e.Lock)
	case LockProven:
		return c.beside(e.Lock)
	case AllTaken:
		for _, path := range e.Paths {
			if !slices.Contains(e.Held, path) {
				return fmt.Sprintf("multi-lock client %d reports to have all its locks, but does not hold %s", e.Client, path)
			}
		}
	case Committed:
		if e.Txn.Type == wire.OpCloseSession {
			return c.ended(e.Txn)
		}
	}
	return ""
}

// beside returns what is wrong if the same lock is held by another client, or by the same
// client with another bid.
func (c *multiLocks) beside(k Lock) string {
	if !k.Proven {
		return ""
	}
	for _, other := range c.present.Locks() {
		if (other.Client != k.Client || other.Attempt != k.Attempt) && other.Path == k.Path {
			return fmt.Sprintf("multi-lock clients %d and %d hold %s at the same time", k.Client, other.Client, k.Path)
		}
	}
	return ""
}

// ended returns what is wrong if a client still holds a lock after the end of its session.
func (c *multiLocks) ended(t *record.Txn) string {
	for _, k := range c.present.Locks() {
		if k.Session == t.Session {
			return fmt.Sprintf("session %v of multi-lock client %d is ended by %v, but the client still holds %s", t.Session, k.Client, t.Zxid, k.Path)
		}
	}
	return ""
}
