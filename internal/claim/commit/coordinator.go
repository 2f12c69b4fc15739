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
// The znode "coordinator" exists while the coordinator's session is alive and no decision is made. When
// it disappears without a decision, a site takes over. A Coordinator that lost its session in this way
// learns the decision like a site. If Doubt is set, it does not begin the transaction but finds out its
// outcome.
//
// In a plain transaction the Coordinator only begins the transaction and waits for the decision.
type Coordinator struct{ *commit }

// NewCoordinator returns the state machine of a coordinator. It does nothing until Attached is stepped.
func NewCoordinator(cfg Config) *Coordinator {
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
	case c.cfg.Plain && c.timedOut():
		c.planVotes()
	case c.cfg.Plain && !c.watched:
		c.ask(c.tookAwait, claim.Op{Kind: claim.OpAwait, Path: c.decisionPath()})
	case c.cfg.Plain:
	case c.coordinates:
		c.planVotes()
	case !c.coordinated:
		c.planTakeOver()
	case c.timedOut():
		c.planVotes()
	}
}

// begin creates the transaction and the znodes that it needs, all or none.
func (c *Coordinator) begin() {
	ops := []claim.Op{{Kind: claim.OpCreate, Path: c.cfg.Path, Data: c.cfg.Transaction.Encode(), Persistent: true}}
	if !c.cfg.Plain {
		ops = append(ops, claim.Op{Kind: claim.OpCreate, Path: c.coordinatorPath()})
		c.mayCoordinate = true
	} else {
		for _, site := range c.cfg.Sites {
			ops = append(ops, claim.Op{Kind: claim.OpCreate, Path: c.ballotPath(site), Persistent: true})
		}
	}
	c.looked = false
	c.AskOne(c.tookBegin, claim.Multi(c.cfg.Path, ops...))
	c.OnLoss(func() { c.doubt = true })
}

// tookAwait processes the read of the decision of a plain transaction. If there is one, a look follows.
func (c *Coordinator) tookAwait(res []claim.Result) {
	c.watched, c.looked = true, res[0].Err != nil
	c.expected(res[0].Err, wire.ErrNoNode)
}

// tookBegin looks at the transaction that this or an earlier request has created.
func (c *commit) tookBegin(r claim.Result) {
	switch {
	case r.Err == nil, errors.Is(r.Err, wire.ErrNodeExists):
		c.begun = true
	case errors.Is(r.Err, wire.ErrNoNode):
		c.AskOne(func(r claim.Result) { c.expected(r.Err) }, claim.MakeParents(path.Dir(c.cfg.Path)))
	default:
		c.refuse(r.Err)
	}
}
