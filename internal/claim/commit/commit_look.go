package commit

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planLook reads the state of the transaction. The sync comes first because a server that is behind may
// not show the transaction, which would then count as aborted. The watch on the coordinator's znode is set
// before the decision is read. The same multi creates the decision and deletes that znode, so the decision
// cannot be missed. The transaction's znode is read last: if it still exists, none of its children had
// been removed before.
func (c *commit) planLook() {
	c.ask(c.tookLook,
		claim.Sync(c.cfg.Path),
		claim.Op{Kind: claim.OpWatch, Path: c.coordinatorPath()},
		claim.Get(c.decisionPath()),
		claim.Get(c.ballotPath(c.cfg.Site)),
		claim.Get(c.markPath(c.cfg.Site)),
		claim.Get(c.cfg.Path))
}

func (c *commit) tookLook(res []claim.Result) {
	for _, r := range res {
		if !c.expected(r.Err, wire.ErrNoNode) {
			return
		}
	}
	coordinator, decision, own, mark, tx := res[1], res[2], res[3], res[4], res[5]
	c.looked = true
	c.coordinated, c.watched = coordinator.Err == nil, coordinator.Err == nil
	c.coordinates = c.coordinated && coordinator.Stat.EphemeralOwner == c.Current
	c.mayCoordinate = c.coordinates
	c.mayBePresent = own.Err == nil && own.Stat.EphemeralOwner == c.Current && parseDecision(own.Data) == Undecided
	switch {
	case tx.Err != nil:
		c.absent()
		return
	case mark.Err == nil: // recorded before a restart, or by a request whose reply was lost
		c.carried, c.marked, c.phase = true, true, TxDecided
	}
	t, err := ParseTransaction(tx.Data)
	if err != nil {
		c.refuse(&claim.DataError{Path: c.cfg.Path, Err: err})
		return
	}
	if c.cfg.Site != "" && !c.cfg.Doubt && !slices.Contains(t.Sites, c.cfg.Site) {
		c.over(nil)
		return
	}
	c.begun, c.cfg.Transaction = true, t
	if !c.waits && c.cfg.Patience > 0 {
		c.waits, c.patience = true, claim.Timer{From: c.Now, Wait: c.cfg.Patience}
	}
	if own.Err == nil || c.cfg.Site != "" {
		c.ballot(c.cfg.Site).read(own)
	}
	if decision.Err == nil {
		d := parseDecision(decision.Data)
		c.placeholder = d == Abort && len(t.Sites) == 0
		c.decide(d)
	}
}

// decide records the decision.
func (c *commit) decide(d Decision) {
	if c.decision == Undecided && c.phase <= TxDecided {
		c.report("%s: the decision is %v", c.who(), d)
		c.decision, c.phase = d, TxDecided
	}
}

// who returns the name of this party for the log.
func (c *commit) who() string {
	if c.cfg.Site == "" {
		return "coordinator"
	}
	return "site " + c.cfg.Site
}

// absent handles a transaction that does not exist. If it existed or may have existed, it was aborted,
// because a committed transaction is kept until all sites have carried it out.
func (c *commit) absent() {
	switch {
	case c.carried:
		c.over(nil)
	case c.cfg.Site == "" && !c.begun && c.cfg.Doubt:
		// A request from before a restart may still arrive. An aborted transaction in its place makes it
		// fail.
		placeholder := claim.Op{Kind: claim.OpCreate, Path: c.cfg.Path, Data: Transaction{}.Encode(), Persistent: true}
		c.looked = false
		c.AskOne(c.tookBegin, claim.Multi(c.cfg.Path, placeholder, c.record(Abort)))
	case c.cfg.Site == "" && !c.begun:
		c.doubt = false // no part removes a transaction whose coordinator has not finished, so this one was never created
	case c.begun, c.cfg.Doubt:
		c.decide(Abort)
	default:
		c.over(nil) // this site has no part in the transaction
	}
}

// record returns the operation that creates the decision.
func (c *commit) record(d Decision) claim.Op {
	return claim.Op{Kind: claim.OpCreate, Path: c.decisionPath(), Data: []byte(d.String()), Persistent: true}
}

// planDone records that the decision was carried out. It removes the transaction when no part needs it any
// more.
func (c *commit) planDone() {
	switch {
	case !c.looked:
		c.planLook()
	case c.placeholder: // the znode stays, so that a begin request that is still under way fails
		c.over(nil)
	case c.coordinates: // this session took over although the decision had been made
		c.write(claim.Delete(c.coordinatorPath()))
	case !c.marked:
		c.ask(c.tookMark, claim.Op{Kind: claim.OpCreate, Path: c.markPath(c.cfg.Site), Persistent: true})
	default:
		c.ask(c.tookList, claim.Sync(c.cfg.Path), claim.List(c.cfg.Path))
	}
}

func (c *commit) tookMark(res []claim.Result) {
	c.marked = c.expected(res[0].Err, wire.ErrNodeExists, wire.ErrNoNode)
}

// tookList removes the transaction when its coordinator has finished. A committed one must also wait until
// all sites have finished, because a site that does not find the transaction concludes that it was
// aborted.
func (c *commit) tookList(res []claim.Result) {
	list := res[1]
	if list.Err != nil {
		if c.expected(list.Err, wire.ErrNoNode) {
			c.over(nil)
		}
		return
	}
	there := map[string]bool{}
	for _, name := range list.Names {
		there[name] = true
	}
	needed := there["done_"]
	for _, site := range c.cfg.Sites {
		needed = needed && (c.decision == Abort || there["done_"+site])
	}
	names := slices.Sorted(slices.Values(list.Names))
	if !needed || c.stuck && slices.Equal(names, c.swept) {
		c.over(nil)
		return
	}
	c.swept, c.stuck = names, false
	var ops []claim.Op
	for _, name := range list.Names {
		ops = append(ops, claim.Delete(claim.Join(c.cfg.Path, name)))
	}
	ops = append(ops, claim.Delete(c.cfg.Path))
	c.ask(c.tookSweep, claim.Multi(c.cfg.Path, ops...))
}

// tookSweep lists the children again if they changed meanwhile. If they did not change, znodes of other
// programs exist below them, and the transaction stays.
func (c *commit) tookSweep(res []claim.Result) {
	r := res[0]
	c.stuck = errors.Is(r.Err, wire.ErrNotEmpty)
	if r.Err == nil || !errors.Is(r.Err, wire.ErrNoNode) && !errors.Is(r.Err, wire.ErrNotEmpty) {
		c.over(r.Err)
	}
}
