package commit

import (
	"bellwether/wire"

	"bellwether/internal/claim"
)

// ballot returns what is known of a site's vote.
func (c *commit) ballot(site string) *ballot {
	b := c.ballots[site]
	if b == nil {
		b = &ballot{}
		c.ballots[site] = b
	}
	return b
}

// read records the content of the site's znode.
func (b *ballot) read(r claim.Result) {
	b.there = r.Err == nil
	b.seen = b.seen || b.there
	b.owner, b.version, b.vote = r.Stat.EphemeralOwner, r.Stat.Version, parseDecision(r.Data)
}

// planVotes reads and watches the votes that are not known. It makes the decision as soon as the votes
// determine it.
func (c *commit) planVotes() {
	var ops []claim.Op
	c.reading = c.reading[:0]
	for _, site := range c.cfg.Sites {
		b := c.ballot(site)
		if b.watched || c.cfg.Plain && b.vote != Undecided {
			continue
		}
		c.reading = append(c.reading, site)
		if c.cfg.Plain && !b.peeked { // first without a watch, because a vote that exists never changes
			ops = append(ops, claim.Op{Kind: claim.OpGet, Path: c.ballotPath(site)})
		} else {
			ops = append(ops, claim.Op{Kind: claim.OpAwait, Path: c.ballotPath(site)})
		}
	}
	if len(ops) > 0 {
		c.ask(txBallots, ops...)
		return
	}
	switch outcome := c.count(); {
	case outcome != Undecided:
		c.planDecision(outcome)
	case c.impatient() && c.cfg.Plain:
		c.fill()
	case c.impatient():
		c.planDecision(Abort)
	}
}

func (c *commit) tookBallots(res []claim.Result) {
	for i, site := range c.reading {
		if !c.expected(res[i].Err, wire.ErrNoNode) {
			return
		}
		b := c.ballot(site)
		b.read(res[i])
		b.watched = !c.cfg.Plain || b.peeked
		b.peeked = true
	}
}

// count returns the decision that the votes determine, or Undecided. A site whose znode disappeared before
// the decision does not count as having voted, whatever it had written.
func (c *commit) count() Decision {
	commits := 0
	for _, site := range c.cfg.Sites {
		switch b := c.ballot(site); {
		case b.vote == Abort, b.seen && !b.there:
			return Abort
		case b.vote == Commit:
			commits++
		}
	}
	if commits == len(c.cfg.Sites) {
		return Commit
	}
	return Undecided
}

// fill votes Abort for the sites that have not voted. In a plain transaction a vote can be set only once,
// so a site that votes later finds this vote.
func (c *commit) fill() {
	var ops []claim.Op
	for _, site := range c.cfg.Sites {
		if c.ballot(site).vote == Undecided {
			ops = append(ops, claim.Op{Kind: claim.OpSet, Path: c.ballotPath(site), Data: []byte(Abort.String())})
			c.ballot(site).watched = false
		}
	}
	c.tell("patience is over: abort for %d that have not voted", len(ops))
	c.ask(txFill, ops...)
}

// planDecision creates the decision. The same multi deletes the coordinator's znode, which wakes the
// sites.
func (c *commit) planDecision(d Decision) {
	if c.chaired {
		c.ask(txDecide, claim.Op{Kind: claim.OpMulti, Path: c.decisionPath(), Ops: []claim.Op{
			{Kind: claim.OpDelete, Path: c.chairPath(), Version: claim.AnyVersion}, c.record(d)}})
		return
	}
	c.ask(txDecide, c.record(d))
}

// planChair takes over from a coordinator whose znode is gone.
func (c *commit) planChair() {
	c.tell("%s takes the coordinator's place", c.who())
	c.stands = true
	c.ask(txChair, claim.Op{Kind: claim.OpCreate, Path: c.chairPath()})
}
