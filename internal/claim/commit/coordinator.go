package commit

import (
	"errors"
	"path"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Coordinator begins one transaction and makes its decision:
//
//	begin ▸ look ▸ watch the sites' znodes ▸ decide ▸ wait for Carried ▸ record it
//
// The znode "coordinator" exists while the session of the coordinator is alive and has not decided. When
// it disappears without a decision, a site takes over. A Coordinator that lost its session in this way
// learns the decision like a site. If Doubt is set, it does not begin the transaction but finds out its
// outcome.
//
// In a plain transaction the Coordinator only begins the transaction and waits for the decision.
type Coordinator struct{ commit }

// NewCoordinator returns the state machine of a coordinator. It does nothing until Attached is stepped.
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

// begin creates the transaction and the znodes that it needs, all or none.
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

// tookBegin looks at the transaction that this or an earlier request has created.
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
