package recipe

import (
	"context"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// Coordinator begins transactions below a root and brings about their
// decisions: two-phase commit. Should it vanish, the sites decide without it.
// Its methods may be called from any goroutine.
type Coordinator struct{ committer }

// NewCoordinator prepares a coordinator of transactions below root, which is
// created when it is missing. The client stays the caller's and may be shared.
func NewCoordinator(c *zk.Client, root string, o *CommitOptions) (*Coordinator, error) {
	com, err := newCommitter(c, root, o)
	return &Coordinator{com}, err
}

// Path is a fresh path for a transaction. Write it down before Commit: it is
// what Recover needs after a crash.
func (c *Coordinator) Path() string { return claim.Join(c.root, freshTx()) }

// Decided is told the outcome. When it returns nil the outcome must outlive
// a crash, as it may be forgotten by all others.
type Decided func(ctx context.Context, tx Tx, d Decision) error

// Commit hands a transaction to the sites, at a fresh path of [Coordinator.Path] below
// the root, and returns its decision: Commit
// when each has voted so, Abort when one has voted against it, came and went
// before the decision, or did not vote in time.
//
// It returns an error without a decision when the context ends, decided fails
// or the server refuses; a site takes its place then, and what became of the
// transaction Recover tells.
// It survives lost replies, and sessions that expire.
func (c *Coordinator) Commit(ctx context.Context, path string, sites []string, data []byte, decided Decided) (Decision, error) {
	for i, s := range sites {
		if err := checkSite(s); err != nil {
			return Undecided, err
		}
		if slices.Contains(sites[:i], s) {
			return Undecided, fmt.Errorf("commit: site %s is given twice", s)
		}
	}
	cfg := c.config(path, "")
	cfg.Transaction = claim.Transaction{Sites: sites, Plain: c.opt.Plain, Data: data}
	return c.drive(ctx, cfg, decided)
}

// Recover finds out, or brings about, the decision of a transaction that
// Commit was called for in an earlier life. One that had not begun is
// aborted, and never begins: its znode stays, and holds nothing.
func (c *Coordinator) Recover(ctx context.Context, path string, decided Decided) (Decision, error) {
	cfg := c.config(path, "")
	cfg.Doubt = true
	return c.drive(ctx, cfg, decided)
}

// Forget lets a transaction be removed whose decided returned nil in an
// earlier life, in case that was the end of it.
func (c *Coordinator) Forget(ctx context.Context, path string) error {
	cfg := c.config(path, "")
	cfg.Finished = true
	_, err := c.drive(ctx, cfg, nil)
	return err
}

func (c *Coordinator) drive(ctx context.Context, cfg claim.CommitConfig, decided Decided) (Decision, error) {
	if decided == nil {
		decided = func(context.Context, Tx, Decision) error { return nil }
	}
	if err := c.checkTx(cfg.Path); err != nil {
		return Undecided, err
	}
	return c.b.drive(ctx, cfg.Path, claim.NewCoordinator(cfg), &actor{decided: decided})
}
