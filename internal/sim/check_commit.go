package sim

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/claim/commit"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
)

// commits checks that every transaction has one decision, which never changes. The decision
// is to commit only if every site has promised to. A decision to commit stays in the tree
// until the coordinator and all sites have carried it out. A decision to abort stays until
// the coordinator has carried it out, because a site that does not find the transaction
// takes it as aborted.
type commits struct {
	outcome map[string]commit.Decision // the decision, by the path of the transaction
	written map[string]bool            // the znode of the decision was written
	voted   map[string][]string
	carried map[string][]string
	deals   map[string]*deal
}

func newCommits() *commits {
	return &commits{map[string]commit.Decision{}, map[string]bool{}, map[string][]string{}, map[string][]string{}, map[string]*deal{}}
}

func (*commits) Name() string { return "Commits" }

func (c *commits) See(o any) string {
	switch e := o.(type) {
	case txVoted:
		c.deals[e.deal.path] = e.deal
		c.voted[e.deal.path] = append(c.voted[e.deal.path], e.p.name)
	case txLearned:
		if e.decision == commit.Commit && !c.written[e.deal.path] {
			return fmt.Sprintf("%s commits %s, which nobody has decided", e.p.who(), e.deal.path)
		}
		return c.decided(e.deal.path, e.decision, e.p.who())
	case txCarried:
		c.deals[e.deal.path] = e.deal
		c.carried[e.deal.path] = append(c.carried[e.deal.path], e.p.name)
		return c.decided(e.deal.path, e.decision, e.p.who())
	case check.Committed:
		return c.wrote(e.Txn.Body)
	}
	return ""
}

// decided records a decision and says what is wrong if there was another one before.
func (c *commits) decided(tx string, d commit.Decision, who string) string {
	before := c.outcome[tx]
	c.outcome[tx] = d
	if before != commit.Undecided && before != d {
		return fmt.Sprintf("%s is decided to %v, and to %v by %s", tx, before, d, who)
	}
	return ""
}

// wrote examines what a change of the tree does to decisions.
func (c *commits) wrote(body record.TxnBody) string {
	switch b := body.(type) {
	case *record.CreateTxn:
		if tx, ok := decisionOf(b.Path); ok {
			return c.made(tx, string(b.Data))
		}
	case *record.SetDataTxn:
		if tx, ok := decisionOf(b.Path); ok {
			return fmt.Sprintf("the decision of %s is changed to %s", tx, b.Data)
		}
	case *record.DeleteTxn:
		if tx, ok := decisionOf(b.Path); ok {
			return c.gone(tx)
		}
	case *record.MultiTxn:
		if b.Failed() {
			break
		}
		for _, part := range b.Ops {
			if wrong := c.wrote(part.Body); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// decisionOf returns the path of the transaction whose decision is stored at a path.
func decisionOf(path string) (tx string, ok bool) {
	tx, ok = strings.CutSuffix(path, "/decision")
	return tx, ok && strings.HasPrefix(tx, txRoot+"/")
}

// made checks a decision that was written.
func (c *commits) made(tx, as string) string {
	d := commit.Abort
	if as == commit.Commit.String() {
		d = commit.Commit
		if c.deals[tx] == nil {
			return fmt.Sprintf("%s is to be committed and nobody has voted", tx)
		}
		for _, site := range c.deals[tx].sites {
			if !slices.Contains(c.voted[tx], site) {
				return fmt.Sprintf("%s is to be committed and site %s has not promised to", tx, site)
			}
		}
	}
	c.written[tx] = true
	return c.decided(tx, d, "whoever wrote it")
}

// gone checks the removal of a decision.
func (c *commits) gone(tx string) string {
	d := c.deals[tx]
	if !slices.Contains(c.carried[tx], "") {
		return fmt.Sprintf("the decision of %s is removed before the coordinator has carried it out", tx)
	}
	if c.outcome[tx] == commit.Abort {
		return ""
	}
	for _, site := range d.sites {
		if !slices.Contains(c.carried[tx], site) {
			return fmt.Sprintf("%s was committed and is removed before site %s has done so", tx, site)
		}
	}
	return ""
}
