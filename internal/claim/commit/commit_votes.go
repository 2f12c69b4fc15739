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
	b.exists = r.Err == nil
	b.existed = b.existed || b.exists
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
		if c.cfg.Plain && !b.readOnce { // first without a watch, because a vote that exists never changes
			ops = append(ops, claim.Get(c.ballotPath(site)))
		} else {
			ops = append(ops, claim.Op{Kind: claim.OpAwait, Path: c.ballotPath(site)})
		}
	}
	if len(ops) > 0 {
		c.ask(c.tookBallots, ops...)
		return
	}
	switch outcome := c.count(); {
	case outcome != Undecided:
		c.planDecision(outcome)
	case c.timedOut() && c.cfg.Plain:
		c.planAborts()
	case c.timedOut():
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
		b.watched = !c.cfg.Plain || b.readOnce
		b.readOnce = true
	}
}

// count returns the decision that the votes determine, or Undecided. A site whose znode disappeared before
// the decision does not count as having voted, whatever it had written.
func (c *commit) count() Decision {
	commits := 0
	for _, site := range c.cfg.Sites {
		switch b := c.ballot(site); {
		case b.vote == Abort, b.existed && !b.exists:
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

// planAborts votes Abort for the sites that have not voted. In a plain transaction a vote can be set only once,
// so a site that votes later finds this vote.
func (c *commit) planAborts() {
	var ops []claim.Op
	for _, site := range c.cfg.Sites {
		if c.ballot(site).vote == Undecided {
			ops = append(ops, claim.Op{Kind: claim.OpSet, Path: c.ballotPath(site), Data: []byte(Abort.String())})
			c.ballot(site).watched = false
		}
	}
	c.report("the time to vote is over: votes abort for %d sites that have not voted", len(ops))
	c.write(ops...)
}

// planDecision creates the decision. The same multi deletes the coordinator's znode, which wakes the
// sites.
func (c *commit) planDecision(d Decision) {
	if c.coordinated {
		c.write(claim.Multi(c.decisionPath(), claim.Delete(c.coordinatorPath()), c.record(d)))
		return
	}
	c.write(c.record(d))
}

// planTakeOver takes over from a coordinator whose znode is gone.
func (c *commit) planTakeOver() {
	c.report("%s takes the coordinator's place", c.who())
	c.mayCoordinate, c.looked = true, false
	c.Ask(func(res []claim.Result) {
		c.mayCoordinate = res[0].Err == nil
		c.wrote(res)
	}, claim.Op{Kind: claim.OpCreate, Path: c.coordinatorPath()})
}
