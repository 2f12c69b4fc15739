package commit

import (
	"bellwether/internal/claim"
)

// refuse ends this party's work because the server refused a request that it needs.
func (c *commit) refuse(err error) {
	if c.refusal == nil {
		c.refusal = err
		c.report("%s is refused: %v", c.who(), err)
	}
}

// leavesEarly reports whether this party ends early, after a refusal or Resign. The party first removes the
// ephemeral znodes that others would wait for. If the coordinator's znode goes, a site takes over. If the znode
// of a site that has not voted goes, the transaction is aborted. A vote is a promise, and stays.
func (c *commit) leavesEarly() bool { return c.refusal != nil || c.Leaving }

// planLeave finds out which znodes this session still owns, because another part may have taken over.
// Reading a stat needs no permission. If this session can own no znode, Step ends this party's work.
func (c *commit) planLeave() {
	if c.mayCoordinate || c.mayBePresent {
		c.ask(c.tookOwned,
			claim.Sync(c.cfg.Path),
			claim.Op{Kind: claim.OpStat, Path: c.coordinatorPath()},
			claim.Op{Kind: claim.OpStat, Path: c.ballotPath(c.cfg.Site)})
	}
}

// tookOwned tries once to delete the znodes that this session owns. If the server refuses, they
// disappear when the session ends.
func (c *commit) tookOwned(res []claim.Result) {
	coordinator, own := res[1], res[2]
	var ops []claim.Op
	if c.ours(coordinator) {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.coordinatorPath(), Version: coordinator.Stat.Version})
	}
	if c.ours(own) {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.ballotPath(c.cfg.Site)}) // version 0: the znode holds no vote
	}
	if len(ops) == 0 {
		c.over(c.refusal)
		return
	}
	c.report("%s withdraws", c.who())
	c.ask(func([]claim.Result) { c.over(c.refusal) }, ops...) // this party is done even if the deletion fails
}

// ours reports whether the znode exists and this session owns it.
func (c *commit) ours(r claim.Result) bool {
	return r.Err == nil && r.Stat.EphemeralOwner == c.Current
}
