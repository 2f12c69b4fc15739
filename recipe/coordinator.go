package recipe

import (
	"context"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/zk"
)

// Coordinator begins transactions below a root by two-phase commit: the sites vote on each
// transaction, and all carry out the same decision. If the coordinator fails, the sites decide
// without it. Its methods may be called from any goroutine.
type Coordinator struct{ committer }

// NewCoordinator prepares a coordinator of transactions below root, which is created if
// it is missing. The caller still owns the client and may share it.
func NewCoordinator(c *zk.Client, root string, o *CommitOptions) (*Coordinator, error) {
	com, err := newCommitter(c, root, o)
	return &Coordinator{com}, err
}

// Path returns a new path for a transaction. The caller must store the path before Commit,
// because Recover needs it after a crash.
func (c *Coordinator) Path() string { return claim.Join(c.root, claim.TxPrefix+nonce()) }

// Decided is a function that receives the decision of a transaction. Once it returns nil,
// all others may forget the decision. So it must first make the decision durable.
type Decided func(ctx context.Context, tx Tx, d Decision) error

// Commit gives a transaction to the sites and returns its decision. The path must be a new one
// from Coordinator.Path. The decision is Commit if each site has voted for the transaction. It is
// Abort if a site has voted against it, has failed before the decision, or has not voted in time.
//
// Commit returns an error without a decision if the context ends, decided fails or the
// server refuses a request. The sites then decide without the coordinator, and Recover returns the
// decision. Commit survives lost replies and sessions that expire.
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
	cfg.Transaction = commit.Transaction{Sites: sites, Plain: c.opt.Plain, Data: data}
	return c.drive(ctx, cfg, decided)
}

// Recover returns the decision of a transaction for which an earlier process called Commit. If there
// is no decision yet, Recover makes one. A transaction that had not begun is aborted and can never
// begin: Recover creates an empty znode at its path, which stays.
func (c *Coordinator) Recover(ctx context.Context, path string, decided Decided) (Decision, error) {
	cfg := c.config(path, "")
	cfg.Doubt = true
	return c.drive(ctx, cfg, decided)
}

// Forget removes a transaction whose decided function returned nil in an earlier process.
// It is needed if that process ended before it could remove the transaction.
func (c *Coordinator) Forget(ctx context.Context, path string) error {
	cfg := c.config(path, "")
	cfg.Finished = true
	_, err := c.drive(ctx, cfg, nil)
	return err
}

func (c *Coordinator) drive(ctx context.Context, cfg commit.Config, decided Decided) (Decision, error) {
	if decided == nil {
		decided = func(context.Context, Tx, Decision) error { return nil }
	}
	if err := c.checkTx(cfg.Path); err != nil {
		return Undecided, err
	}
	return c.b.commit(ctx, cfg.Path, commit.NewCoordinator(cfg), &application{decided: decided})
}
