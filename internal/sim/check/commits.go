package check

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/claim/commit"
	"bellwether/internal/record"
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
	sites   map[string][]string
}

func newCommits() *commits {
	return &commits{map[string]commit.Decision{}, map[string]bool{}, map[string][]string{}, map[string][]string{}, map[string][]string{}}
}

func (*commits) Name() string { return "Commits" }

func (c *commits) See(o any) string {
	switch e := o.(type) {
	case Voted:
		c.sites[e.Path] = e.Sites
		c.voted[e.Path] = append(c.voted[e.Path], e.Site)
	case Learned:
		if e.Decision == commit.Commit && !c.written[e.Path] {
			return fmt.Sprintf("%s commits %s, but no decision is in the tree", Party(e.Site), e.Path)
		}
		return c.decided(e.Path, e.Decision, Party(e.Site))
	case CarriedOut:
		c.sites[e.Path] = e.Sites
		c.carried[e.Path] = append(c.carried[e.Path], e.Site)
		return c.decided(e.Path, e.Decision, Party(e.Site))
	case Committed:
		return c.wrote(e.Txn.Body)
	}
	return ""
}

// Party returns the name of a party of transactions for messages. The name of the
// coordinator is empty.
func Party(name string) string {
	if name == "" {
		return "the coordinator"
	}
	return "site " + name
}

// decided records a decision and says what is wrong if there was another one before.
func (c *commits) decided(tx string, d commit.Decision, who string) string {
	before := c.outcome[tx]
	c.outcome[tx] = d
	if before != commit.Undecided && before != d {
		return fmt.Sprintf("the decision of %s is %v, and now %v by %s", tx, before, d, who)
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
	return tx, ok && strings.HasPrefix(tx, TxRoot+"/")
}

// made checks a decision that was written.
func (c *commits) made(tx, as string) string {
	d := commit.Abort
	if as == commit.Commit.String() {
		d = commit.Commit
		if c.sites[tx] == nil {
			return fmt.Sprintf("the decision to commit %s is written, but no site has voted", tx)
		}
		for _, site := range c.sites[tx] {
			if !slices.Contains(c.voted[tx], site) {
				return fmt.Sprintf("the decision to commit %s is written, but site %s has not promised to commit", tx, site)
			}
		}
	}
	c.written[tx] = true
	return c.decided(tx, d, "its writer")
}

// gone checks the removal of a decision.
func (c *commits) gone(tx string) string {
	if !slices.Contains(c.carried[tx], "") {
		return fmt.Sprintf("the decision of %s is removed before the coordinator has carried it out", tx)
	}
	if c.outcome[tx] == commit.Abort {
		return ""
	}
	for _, site := range c.sites[tx] {
		if !slices.Contains(c.carried[tx], site) {
			return fmt.Sprintf("%s is removed before site %s has carried out the commit", tx, site)
		}
	}
	return ""
}
