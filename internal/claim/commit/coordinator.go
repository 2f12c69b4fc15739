package commit

import (
	"errors"
	"path"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Coordinator begins one transaction and brings about its decision:
//
//	begin ▸ look ▸ watch the sites' znodes ▸ decide ▸ be told so ▸ say so
//
// One znode, coordinator, is there while its session lives and it has not
// decided. When it goes a site takes over, and the Coordinator, should it
// live after all, learns the decision as everybody does. With Doubt set it
// does not begin but finds out what became of the transaction.
//
// Plain, it begins the transaction and waits for the decision.
type Coordinator struct{ commit }

// NewCoordinator makes a coordinator's state machine. It waits for Attached.
func NewCoordinator(cfg CommitConfig) *Coordinator {
	c := &Coordinator{newCommit(cfg)}
	c.plan = c.next
	return c
}

// next chooses the next request.
func (c *Coordinator) next() {
	switch {
	case c.phase == TxDecided && !c.carried:
	case c.phase == TxDecided:
		c.planDone()
	case !c.begun && !c.doubt:
		c.begin()
	case !c.looked:
		c.planLook()
	case c.cfg.Plain && c.impatient():
		c.planVotes()
	case c.cfg.Plain && !c.watched:
		c.ask(txAwait, claim.Op{Kind: claim.OpAwait, Path: c.decisionPath()})
	case c.cfg.Plain:
	case c.chair:
		c.planVotes()
	case !c.chaired:
		c.planChair()
	case c.impatient():
		c.planVotes()
	}
}

// begin makes the transaction with all it needs, or nothing.
func (c *Coordinator) begin() {
	ops := []claim.Op{{Kind: claim.OpCreate, Path: c.cfg.Path, Data: c.cfg.Transaction.Encode(), Persistent: true}}
	if !c.cfg.Plain {
		ops = append(ops, claim.Op{Kind: claim.OpCreate, Path: c.chairPath()})
		c.stands = true
	} else {
		for _, site := range c.cfg.Sites {
			ops = append(ops, claim.Op{Kind: claim.OpCreate, Path: c.ballotPath(site), Persistent: true})
		}
	}
	c.ask(txBegin, claim.Op{Kind: claim.OpMulti, Path: c.cfg.Path, Ops: ops})
}

// tookBegin looks at what was made, by this request or by one before it.
func (c *commit) tookBegin(r claim.Result) {
	switch {
	case r.Err == nil, errors.Is(r.Err, wire.ErrNodeExists):
		c.begun, c.looked = true, false
	case errors.Is(r.Err, wire.ErrNoNode):
		c.ask(txParents, claim.Op{Kind: claim.OpParents, Path: path.Dir(c.cfg.Path)})
	default:
		c.refuse(r.Err)
	}
}
