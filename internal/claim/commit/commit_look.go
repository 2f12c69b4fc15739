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
	c.ask(txLook,
		claim.Op{Kind: claim.OpSync, Path: c.cfg.Path},
		claim.Op{Kind: claim.OpWatch, Path: c.chairPath()},
		claim.Op{Kind: claim.OpGet, Path: c.decisionPath()},
		claim.Op{Kind: claim.OpGet, Path: c.ballotPath(c.cfg.Site)},
		claim.Op{Kind: claim.OpGet, Path: c.markPath(c.cfg.Site)},
		claim.Op{Kind: claim.OpGet, Path: c.cfg.Path})
}

func (c *commit) tookLook(res []claim.Result) {
	for _, r := range res {
		if !c.expected(r.Err, wire.ErrNoNode) {
			return
		}
	}
	chair, decision, own, mark, tx := res[1], res[2], res[3], res[4], res[5]
	c.looked = true
	c.chaired, c.watched = chair.Err == nil, chair.Err == nil
	c.chair = c.chaired && chair.Stat.EphemeralOwner == c.session
	c.stands = c.chair
	c.present = own.Err == nil && own.Stat.EphemeralOwner == c.session && parseDecision(own.Data) == Undecided
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
		c.waits, c.patience = true, claim.Timer{From: c.now, Wait: c.cfg.Patience}
	}
	if own.Err == nil || c.cfg.Site != "" {
		c.ballot(c.cfg.Site).read(own)
	}
	if decision.Err == nil {
		d := parseDecision(decision.Data)
		c.tomb = d == Abort && len(t.Sites) == 0
		c.decide(d)
	}
}

// decide records the decision.
func (c *commit) decide(d Decision) {
	if c.decision == Undecided && c.phase <= TxDecided {
		c.tell("%s: the decision is %v", c.who(), d)
		c.decision, c.phase = d, TxDecided
	}
}

// who returns the name of this part for the log.
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
		tomb := claim.Op{Kind: claim.OpCreate, Path: c.cfg.Path, Data: Transaction{}.Encode(), Persistent: true}
		c.ask(txFence, claim.Op{Kind: claim.OpMulti, Path: c.cfg.Path, Ops: []claim.Op{tomb, c.record(Abort)}})
	case c.cfg.Site == "" && !c.begun:
		c.doubt = false // only a finished coordinator lets it be removed, so it was never created
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
	case c.tomb: // the znode stays, so that a begin request that is still under way fails
		c.over(nil)
	case c.chair: // this session took over although the decision had been made
		c.ask(txRise, claim.Op{Kind: claim.OpDelete, Path: c.chairPath(), Version: claim.AnyVersion})
	case !c.marked:
		c.ask(txMark, claim.Op{Kind: claim.OpCreate, Path: c.markPath(c.cfg.Site), Persistent: true})
	default:
		c.ask(txList, claim.Op{Kind: claim.OpSync, Path: c.cfg.Path}, claim.Op{Kind: claim.OpList, Path: c.cfg.Path})
	}
}

// tookList removes the transaction when its coordinator has finished. A committed one must also wait until
// all sites have finished, because a site that does not find the transaction concludes that it was
// aborted.
func (c *commit) tookList(list claim.Result) {
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
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: claim.Join(c.cfg.Path, name), Version: claim.AnyVersion})
	}
	ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.cfg.Path, Version: claim.AnyVersion})
	c.ask(txSweep, claim.Op{Kind: claim.OpMulti, Path: c.cfg.Path, Ops: ops})
}

// tookSweep lists the children again if they changed meanwhile. If they did not change, znodes of other
// programs exist below them, and the transaction stays.
func (c *commit) tookSweep(r claim.Result) {
	c.stuck = errors.Is(r.Err, wire.ErrNotEmpty)
	if r.Err == nil || !errors.Is(r.Err, wire.ErrNoNode) && !errors.Is(r.Err, wire.ErrNotEmpty) {
		c.over(r.Err)
	}
}
