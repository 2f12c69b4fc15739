package check

import (
	"fmt"
	"path"

	"bellwether/internal/claim"
	"bellwether/internal/record"
	"bellwether/wire"
)

// shares checks parts that members share. No part has two owners at once, and each owner's
// token is larger than the earlier ones. As long as an owner's deadline has not passed, its
// session lives. A task is removed only by its owner, which must have begun it, and nobody
// begins it again after that.
type shares struct {
	present Present
	history *History
	tokens  map[string]wire.Zxid // token of the last owner, by part
	tasks   map[string]bool      // tasks that were submitted; true: not over yet
	begun   map[string]bool      // tasks that a member has begun
}

func newShares(p Present, h *History) *shares {
	return &shares{present: p, history: h, tokens: map[string]wire.Zxid{}, tasks: map[string]bool{}, begun: map[string]bool{}}
}

func (*shares) Name() string { return "Shares" }

func (c *shares) See(o any) string {
	switch e := o.(type) {
	case PartOwned:
		if last := c.tokens[e.Part]; e.Token <= last {
			return fmt.Sprintf("%s is owned with token %v after token %v", e.Part, e.Token, last)
		}
		c.tokens[e.Part] = e.Token
		return c.beside(e.Owner)
	case PartProven:
		return c.beside(e.Owner)
	case TaskBegan:
		if c.begun[e.Task] = true; !c.tasks[e.Task] {
			return fmt.Sprintf("member %s begins task %s, which is over", e.Member, e.Task)
		}
	case TaskDone:
		if c.tasks[e.Task] {
			return fmt.Sprintf("member %s reports task %s as over, which it is not", e.Member, e.Task)
		}
	case Committed:
		return c.committed(e.Txn)
	}
	return ""
}

// beside returns what is wrong if another owner has the same part: another member, or the
// same member with another bid.
func (c *shares) beside(o Owner) string {
	if !o.Proven {
		return ""
	}
	for _, other := range c.present.Owners() {
		if (other.Member != o.Member || other.Attempt != o.Attempt) && other.Part == o.Part && !other.Deleted {
			return fmt.Sprintf("members %s and %s own %s at the same time", o.Member, other.Member, o.Part)
		}
	}
	return ""
}

func (c *shares) committed(t *record.Txn) string {
	if t.Type == wire.OpCloseSession {
		for _, o := range c.present.Owners() {
			if o.Session == t.Session {
				return fmt.Sprintf("session %v of member %s is ended by %v, but the member still owns %s", t.Session, o.Member, t.Zxid, o.Part)
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
		if path.Dir(b.Path) == ShareTasks {
			c.tasks[path.Base(b.Path)] = true
		}
	case *record.DeleteTxn:
		name := path.Base(b.Path)
		if path.Dir(b.Path) != ShareTasks {
			return ""
		}
		owner := c.history.FirstBid(claim.Join(ShareParts, name))
		switch c.tasks[name] = false; {
		case !c.begun[name]:
			return fmt.Sprintf("task %s is removed, but no member has begun it", name)
		case owner != session:
			return fmt.Sprintf("session %v removes task %s, which is owned by session %v", session, name, owner)
		}
	}
	return ""
}
