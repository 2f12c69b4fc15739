package commit

import (
	"bellwether/internal/claim"
)

// refuse ends the part of who may not do what it has to.
func (c *commit) refuse(err error) {
	if c.refusal == nil {
		c.refusal = err
		c.tell("%s is refused: %v", c.who(), err)
	}
}

// quits: the part ends before its time, as it is refused or given up. Others would
// wait for what stands of it in this session, so that goes first: the coordinator's
// znode, whose place a site takes then, and a site's that has not voted, which is
// an abort. A vote is a promise, and stays.
func (c *commit) quits() bool { return c.refusal != nil || c.leaving }

// planRemains looks what stands, as others may have taken the place. A stat needs
// no permission.
func (c *commit) planRemains() {
	c.ask(txRemains,
		claim.Op{Kind: claim.OpSync, Path: c.cfg.Path},
		claim.Op{Kind: claim.OpStat, Path: c.chairPath()},
		claim.Op{Kind: claim.OpStat, Path: c.ballotPath(c.cfg.Site)})
}

// tookRemains takes away what is this session's, once: whoever may not do that
// either leaves it to the end of the session.
func (c *commit) tookRemains(chair, own claim.Result) {
	var ops []claim.Op
	if c.ours(chair) {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.chairPath(), Version: chair.Stat.Version})
	}
	if c.ours(own) {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: c.ballotPath(c.cfg.Site)}) // as it was made: without a vote
	}
	if len(ops) == 0 {
		c.over(c.refusal)
		return
	}
	c.tell("%s withdraws", c.who())
	c.ask(txQuit, ops...)
}

// ours: it is there, and this session's.
func (c *commit) ours(r claim.Result) bool {
	return r.Err == nil && r.Stat.EphemeralOwner == c.session
}
