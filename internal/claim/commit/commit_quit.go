package commit

import (
	"bellwether/internal/claim"
)

// refuse ends the part because the server refused a request that it needs.
func (c *commit) refuse(err error) {
	if c.refusal == nil {
		c.refusal = err
		c.tell("%s is refused: %v", c.who(), err)
	}
}

// quits reports whether the part ends early, after a refusal or Resign. It first removes the ephemeral
// znodes that others would wait for. If the coordinator's znode goes, a site takes over. If the znode of a
// site that has not voted goes, the transaction is aborted. A vote is a promise, and stays.
func (c *commit) quits() bool { return c.refusal != nil || c.leaving }

// planRemains finds out which znodes this session still owns, because another part may have taken over.
// Reading a stat needs no permission.
func (c *commit) planRemains() {
	c.ask(txRemains,
		claim.Op{Kind: claim.OpSync, Path: c.cfg.Path},
		claim.Op{Kind: claim.OpStat, Path: c.chairPath()},
		claim.Op{Kind: claim.OpStat, Path: c.ballotPath(c.cfg.Site)})
}

// tookRemains tries once to delete the znodes that this session owns. If the server refuses, they
// disappear when the session ends.
func (c *commit) tookRemains(chair, own claim.Result) {
	var ops []claim.Op
	if c.ours(chair) {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.chairPath(), Version: chair.Stat.Version})
	}
	if c.ours(own) {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.ballotPath(c.cfg.Site)}) // version 0: the znode holds no vote
	}
	if len(ops) == 0 {
		c.over(c.refusal)
		return
	}
	c.tell("%s withdraws", c.who())
	c.ask(txQuit, ops...)
}

// ours reports whether the znode exists and this session owns it.
func (c *commit) ours(r claim.Result) bool {
	return r.Err == nil && r.Stat.EphemeralOwner == c.session
}
