package recipe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/value"
	"bellwether/wire"
	"bellwether/zk"
)

// cleanUpDefault is ElectionOptions.CleanUp where it is 0.
const cleanUpDefault = 500 * time.Millisecond

// Naming is how a candidate names its bid, which decides with whose candidates it can
// share a parent. Candidates of this package see the bids of all namings; other
// libraries see only their own pattern. The zero value is OwnNames.
type Naming = claim.Naming

// The namings. All but PlainNames make a path that never comes again.
const (
	// OwnNames are <32 hex digits>-n_<seq>, for parents that no other library uses.
	OwnNames Naming = claim.Own
	// PlainNames are n_<seq>, as Apache's LeaderElectionSupport has them: no guard, and
	// no LEADER unless ElectionOptions.Leader is set.
	PlainNames Naming = claim.Plain
	// CuratorLatchNames are _c_<uuid>-latch-<seq>, as Curator's LeaderLatch has them.
	CuratorLatchNames Naming = claim.CuratorLatch
	// CuratorLockNames are _c_<uuid>-lock-<seq>, as Curator's LeaderSelector and
	// InterProcessMutex have them.
	CuratorLockNames Naming = claim.CuratorLock
	// KazooNames are <32 hex digits>__lock__<seq>, as kazoo's Election and Lock have
	// them.
	KazooNames Naming = claim.KazooLock
	// GoZKNames are _c_<32 hex digits>-lock-<seq>, as go-zookeeper's Lock has them: no
	// LEADER unless ElectionOptions.Leader is set.
	GoZKNames Naming = claim.GoZKLock
)

// ElectionOptions are the settings of an Election; nil is all defaults.
type ElectionOptions struct {
	// Naming of the bid. Default OwnNames.
	Naming Naming
	// Leader is the path of the znode by which the leader makes itself known.
	// Default is LEADER below the parent; with PlainNames and GoZKNames none, as
	// those libraries fail on a child that they cannot parse.
	Leader string
	// ACL of the znodes made, open to everybody by default. Candidates must be
	// able to read and create below the parent, and to delete their own.
	ACL zk.ACLs

	// LeaseDelay is D of the lease: how long whoever expires sessions may not
	// know of an answered ping. Default is what the client knows (zk.Lease).
	// One tick for a standalone server, (syncLimit + 2) ticks for an ensemble.
	LeaseDelay time.Duration
	// KeepAlive is the time between two pings of a leader. Default is a tenth
	// of the session timeout.
	KeepAlive time.Duration
	// Margin is how long before the deadline a handle ends, for work that
	// needs time to stop. Its bid stays until the deadline, or until Resign.
	// Default 0.
	Margin time.Duration
	// Overrun is called, once a term, when the function given to Lead still
	// runs although its deadline has passed. It may end the process.
	Overrun func(*Handle)
	// CleanUp is how long Campaign and Lead wait at most, once their context has
	// ended, for the bid's removal. Default 500 ms. Without a connection they return
	// at once. The removal goes on in the background until it is done or the session ends.
	CleanUp time.Duration

	// Logger is told what happens: terms at Info, trouble at Warn, steps and each Observation at
	// Debug. Observer is told each Observation, for metrics. Both are called in order, one call
	// at a time, beside the recipe: one that blocks delays nothing but later reports, of
	// which those that find 1024 waiting are left out. Neither may panic. Default none.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Election is one candidate in the election at a path. It campaigns for one term at a
// time. Its methods may be called from any goroutine.
type Election struct {
	bidder

	mu      sync.Mutex
	present *candidacy // the last one begun
	seen    value.Succession
}

// NewElection prepares a candidate of the election at parent, which is created if it is
// missing. The id is the name, in UTF-8, by which others see this candidate. The caller
// still owns the client and may share it.
func NewElection(c *zk.Client, parent, id string, o *ElectionOptions) (*Election, error) {
	var opt ElectionOptions
	if o != nil {
		opt = *o
	}
	if opt.Leader == "" && !strict(opt.Naming) {
		opt.Leader = claim.Join(parent, "LEADER")
	}
	cfg := lines.Config{Parent: parent, ID: id, Naming: opt.Naming, Leader: opt.Leader, Quiet: time.Millisecond}
	e := &Election{bidder: newBidder(c, cfg, opt, "election", ErrNotLeader)}
	return e, e.validate()
}

// strict: the other library of this naming fails on a child it cannot parse.
func strict(n Naming) bool { return n == PlainNames || n == GoZKNames }

func (e *Election) validate() error {
	if err := e.bidder.validate(); err != nil {
		return err
	}
	if l := e.cfg.Leader; l == "/" || l != "" && !wire.ValidPath(l) {
		return fmt.Errorf("election %s: %q is not a path for LEADER: %w", e.cfg.Parent, l, zk.ErrBadArguments)
	}
	return nil
}

// Campaign makes a bid and waits until it leads. It survives lost
// connections, and starts again when the session expires. It returns the
// context's error, ErrResigned, ErrCampaigning, zk.ErrClosed, or a
// [*LostError] when the server refuses what it needs. The bid is removed
// before an error is returned, or in the background: see ElectionOptions.CleanUp.
//
// The handle ends by itself or by Resign; afterwards Campaign may be called
// again, for a new bid at the end of the line.
func (e *Election) Campaign(ctx context.Context) (*Handle, error) {
	k, ctx, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	h, err := e.campaign(ctx, k, &claim.Backoff{})
	if err = k.end(ctx, err); err != nil {
		return nil, err
	}
	return h, nil
}

// Resign ends the Campaign or Lead that is under way, or gives up the handle of
// the last Campaign. It waits until the bid is gone.
//
//   - A candidate that waits in line gives up its bid; Campaign or Lead returns ErrResigned.
//   - A leading function of Lead is told by its context, and is waited for: also where the term
//     is lost already and the function winds down. Lead returns ErrResigned, or the
//     function's own error. With the context that the function got, or one derived from
//     it, Resign does not wait for the function; with another one the function would wait
//     for itself: it calls Handle.Resign.
//   - Between two terms Lead returns ErrResigned, and no other bid follows.
//   - Before the first Campaign or Lead, and after the end of the last, nothing happens. One
//     that begins later is not concerned.
//
// The error is the context's: the resignation stands, and the rest goes on in the background. Or it is
// that of a server that refuses to remove the bid, which then stands until the session ends.
func (e *Election) Resign(ctx context.Context) error {
	k := e.candidate()
	if k == nil {
		return nil
	}
	k.resign()
	if ctx.Value(leading{}) == k {
		return nil
	}
	select {
	case <-k.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if t := k.bid(); t != nil {
		return t.awaitGone(ctx)
	}
	return nil
}

// Lead campaigns and, while it leads, runs fn; when leadership is lost it
// waits for fn, and campaigns again after a pause that grows from 50 ms to 2 s
// while it goes on losing. It returns when ctx ends, with ctx's error; when Resign is called,
// with ErrResigned; when Campaign fails; and when fn is done:
//
//   - nil from fn ends Lead with nil.
//   - An error that says no more than that the term is over, or that a connection or
//     session failed, ends the term and not Lead: the context's error once it
//     has ended, that of Handle.Do (ErrNotLeader), and any that is or wraps a
//     *zk.UnknownOutcomeError, zk.ErrConnectionLoss, zk.ErrSessionExpired, or what a
//     server answers that cannot serve at the moment. So fn may return the error of
//     any call of the client.
//   - Any other error of fn ends Lead with it, and so does every error marked by [Stop].
//
// The context given to fn ends with the term, with ctx and with Resign; its
// cause says why. fn must return then: nobody can stop it, see
// ElectionOptions.Overrun. Leadership is resigned after fn has returned, not before.
func (e *Election) Lead(ctx context.Context, fn func(ctx context.Context, h *Handle) error) (err error) {
	k, ctx, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = k.end(ctx, err) }() // also when fn panics
	return e.lead(ctx, k, fn)
}

func (e *Election) lead(ctx context.Context, k *candidacy, fn func(context.Context, *Handle) error) error {
	var pause claim.Backoff
	for {
		h, err := e.campaign(ctx, k, &pause)
		if err != nil {
			return err
		}
		if end := e.supervise(ctx, h, fn); !end.Again() {
			return end.Err
		}
		if err := e.rest(ctx, &pause); err != nil {
			return err
		}
	}
}

// supervise runs fn for one term. Unless another bid is to follow it waits a while
// until the bid is gone.
func (e *Election) supervise(ctx context.Context, h *Handle, fn func(context.Context, *Handle) error) claim.TermEnd {
	work, stop := e.workWhile(ctx, h.ctx)
	defer stop()
	defer h.t.giveUp() // also when fn panics
	err := h.t.watchOver(h, func() error { return fn(context.WithValue(work, leading{}, h.t.candidacy), h) })
	lost := h.Lost() != nil
	h.t.giveUp()
	end := claim.TermEnd{Returned: true, Err: err}
	var stopped *stopError
	switch own := err != nil && !saysOver(err, h) && !isEnd(err, work) && !passes(err); {
	case errors.As(err, &stopped):
		if err == error(stopped) {
			end.Err = stopped.err
		}
	case own:
	case ctx.Err() != nil:
		end.Err = ctx.Err()
	case lost || err != nil:
		return claim.TermEnd{}
	}
	h.t.waitAtMost(ctx, e.cleanUp)
	return end
}

// isEnd reports whether an error says no more than that the context ended.
func isEnd(err error, ctx context.Context) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// saysOver reports whether an error says no more than that the term is over, which
// an operation of its handle may find out first.
func saysOver(err error, h *Handle) bool {
	var lost *LostError
	return errors.Is(err, ErrNotLeader) && errors.As(err, &lost) && lost.Parent == h.t.cfg.Parent
}
