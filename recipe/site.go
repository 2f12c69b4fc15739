package recipe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/zk"
)

// Participant is the work of a site in a transaction. After a crash each method may be called
// again for the same transaction; it must then have no further effect.
type Participant interface {
	// Prepare returns nil to vote for the commit. That vote is a promise that a
	// crash of the site must not break. So before Prepare returns nil, it stores on disk everything that is
	// needed to commit and to abort, and the fact that tx is in doubt. An error is a vote to abort: Join returns
	// it in a *PrepareError; Serve logs it and continues.
	Prepare(ctx context.Context, tx Tx) error
	// Commit and Abort carry out the decision durably. An
	// error ends Join; the decision must then be carried out later.
	Commit(ctx context.Context, tx Tx) error
	Abort(ctx context.Context, tx Tx) error
}

// PrepareError says why a site voted to abort: Participant.Prepare returned Err.
type PrepareError struct {
	Path string // path of the transaction
	Err  error
}

func (e *PrepareError) Error() string {
	return fmt.Sprintf("commit %s: the site cannot prepare: %v", e.Path, e.Err)
}

// Unwrap returns the error of Participant.Prepare.
func (e *PrepareError) Unwrap() error { return e.Err }

// Site is one site of the transactions below a root. At most one client at a time may use
// its name. Its methods may be called from any goroutine.
type Site struct {
	committer
	name string
	p    Participant
}

// NewSite prepares the site with this name, which takes part with p. The caller still owns the client and may share it.
func NewSite(c *zk.Client, root, name string, p Participant, o *CommitOptions) (*Site, error) {
	com, err := newCommitter(c, root, o)
	if err == nil {
		err = checkSite(name)
	}
	if err == nil && p == nil {
		err = errNil("commit", root, "Participant")
	}
	return &Site{com, name, p}, err
}

// Join takes part in one transaction until its decision is carried out. If the
// transaction does not exist, or does not include this site, Join returns Undecided. If the
// context ends before the site has voted, the transaction is aborted. If Prepare fails,
// Join returns Abort and a *PrepareError.
func (s *Site) Join(ctx context.Context, path string) (Decision, error) {
	return s.join(ctx, s.config(path, s.name))
}

// Recover is Join for a transaction that the site has prepared in an earlier process and
// whose decision it does not know. If the transaction no longer exists, it was
// aborted.
func (s *Site) Recover(ctx context.Context, path string) (Decision, error) {
	cfg := s.config(path, s.name)
	cfg.Doubt = true
	return s.join(ctx, cfg)
}

func (s *Site) join(ctx context.Context, cfg commit.Config) (Decision, error) {
	if err := s.checkTx(cfg.Path); err != nil {
		return Undecided, err
	}
	decided := func(ctx context.Context, tx Tx, d Decision) error {
		if d == Commit {
			return s.p.Commit(ctx, tx)
		}
		return s.p.Abort(ctx, tx)
	}
	return s.b.commit(ctx, cfg.Path, commit.NewSite(cfg), &application{prepare: s.p.Prepare, decided: decided})
}

// serveMax limits the transactions in which Serve takes part at a time.
const serveMax = 256

// Serve takes part in all transactions below the root until the context ends or one of
// them fails. An error of Prepare is a vote, not a failure: Serve logs it. Serve ignores
// other znodes, and znodes that have the name of a transaction but do not hold one. After a crash, call
// Recover for each transaction in doubt before Serve.
func (s *Site) Serve(ctx context.Context) error {
	parts, cancel := context.WithCancel(ctx)
	var threads sync.WaitGroup
	defer threads.Wait()
	defer cancel()
	m := commit.NewServing(commit.ServingConfig{Root: s.root, Most: serveMax})
	d := s.b.newDriver(m)
	d.tidy = true
	d.start = func(ctx context.Context, op claim.Op) { // OpJoin is the only operation
		threads.Go(func() { d.tell(ctx, commit.SiteOver{Path: op.Path, Err: s.part(parts, op.Path)}) })
	}
	if err := d.run(ctx); err == nil && ctx.Err() == nil {
		return s.b.verdict(ctx, "commit", s.root, m)
	}
	return context.Cause(ctx)
}

// part calls Join and adds the site's name to the error. It logs the errors that Serve does not return: why the
// site voted to abort, and what failed while Serve was ending.
func (s *Site) part(ctx context.Context, path string) error {
	_, err := s.Join(ctx, path)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("site %s: %w", s.name, err)
	_, voted := errors.Unwrap(err).(*PrepareError)
	if voted || ctx.Err() != nil && !errors.Is(errors.Unwrap(err), ctx.Err()) {
		s.b.report.log(slog.LevelWarn, err.Error(), "path", path)
	}
	if voted {
		return nil
	}
	return err
}
