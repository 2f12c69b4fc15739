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

// cleanUpDefault is the value of ElectionOptions.CleanUp that 0 stands for.
const cleanUpDefault = 500 * time.Millisecond

// Naming is how a candidate names its bid. It decides with which other libraries' candidates the
// candidate can share a parent. Candidates of this package see the bids of all namings; other
// libraries see only their own pattern. The zero value is OwnNames.
type Naming = claim.Naming

// The namings. Under all of them but PlainNames, no two bids ever have the same path.
const (
	// OwnNames: bids are named <32 hex digits>-n_<seq>. Use it for parents that no other
	// library uses.
	OwnNames Naming = claim.Own
	// PlainNames: bids are named n_<seq>, as in Apache's LeaderElectionSupport. Such bids
	// cannot guard a write, and there is no LEADER unless ElectionOptions.Leader is set.
	PlainNames Naming = claim.Plain
	// CuratorLatchNames: bids are named _c_<uuid>-latch-<seq>, as in Curator's
	// LeaderLatch.
	CuratorLatchNames Naming = claim.CuratorLatch
	// CuratorLockNames: bids are named _c_<uuid>-lock-<seq>, as in Curator's
	// LeaderSelector and InterProcessMutex.
	CuratorLockNames Naming = claim.CuratorLock
	// KazooNames: bids are named <32 hex digits>__lock__<seq>, as in kazoo's Election and
	// Lock.
	KazooNames Naming = claim.KazooLock
	// GoZKNames: bids are named _c_<32 hex digits>-lock-<seq>, as in go-zookeeper's Lock.
	// There is no LEADER unless ElectionOptions.Leader is set.
	GoZKNames Naming = claim.GoZKLock
)

// ElectionOptions are the settings of an Election. A nil pointer means all defaults.
type ElectionOptions struct {
	// Naming is how the candidate names its bid. Default OwnNames.
	Naming Naming
	// Leader is the path of the znode in which the leader publishes itself.
	// The default is LEADER below the parent. With PlainNames and GoZKNames the default is no
	// such znode, because those libraries fail on a child that they cannot parse.
	Leader string
	// ACL is given to each znode that the Election creates. By default everybody may do everything.
	// Candidates must be able to read and create below the parent, and to delete their own znodes.
	ACL zk.ACLs

	// LeaseDelay is the delay D in the computation of the lease: how late the server that
	// expires sessions may learn of an answered ping. It is one tick for a standalone server and
	// (syncLimit + 2) ticks for an ensemble. The default is the delay that the client knows (zk.Lease).
	LeaseDelay time.Duration
	// KeepAlive is the time between two pings while this client leads. The default is a tenth
	// of the session timeout. It is at most a quarter of what one answered ping gives the handle.
	KeepAlive time.Duration
	// Margin is how long before the deadline a handle ends, for work that
	// needs time to stop. The bid stays until the deadline, or until Resign.
	// Default 0.
	Margin time.Duration
	// Overrun is called, at most once in a term, if the function given to Lead
	// still runs when its deadline has passed. It may end the process.
	Overrun func(*Handle)
	// CleanUp limits how long Campaign and Lead wait, once their context has
	// ended, for the removal of the bid. Default 500 ms. Without a connection they return
	// at once. The removal continues in the background until it is done or the session ends.
	CleanUp time.Duration

	// Logger receives log records: terms at Info, problems at Warn, steps and each Observation at
	// Debug. Observer receives each Observation, for metrics. One goroutine calls both in order, one call
	// at a time. A call that blocks delays only later reports. While 1024 reports wait, new ones
	// are dropped. Neither function may panic. By default there are none.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Election is one candidate in the election at a path. It has at most one bid at a
// time. Its methods may be called from any goroutine.
type Election struct {
	bidder

	mu      sync.Mutex
	present *candidacy // the candidacy that began last
	seen    value.Succession
}

// NewElection prepares a candidate of the election at parent, which is created if it is
// missing. The id is the name, in UTF-8, that others see for this candidate. The caller
// still owns the client and may share it.
func NewElection(c *zk.Client, parent, id string, o *ElectionOptions) (*Election, error) {
	opt := optionsOr(o)
	if opt.Leader == "" && !failsOnOthers(opt.Naming) {
		opt.Leader = claim.Join(parent, "LEADER")
	}
	cfg := lines.Config{Parent: parent, ID: id, Naming: opt.Naming, Leader: opt.Leader, Quiet: time.Millisecond}
	e := &Election{bidder: newBidder(c, cfg, opt, "election", ErrNotLeader)}
	return e, e.validate()
}

// failsOnOthers reports whether the other library that uses this naming fails on a child it cannot parse.
func failsOnOthers(n Naming) bool { return n == PlainNames || n == GoZKNames }

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
// connections, and makes a new bid when the session expires. It returns the
// context's error, ErrResigned, ErrCampaigning, zk.ErrClosed, or a
// [*LostError] if the server refuses a request that it needs. Campaign removes the bid
// before it returns an error, or in the background: see ElectionOptions.CleanUp.
//
// The handle ends when its term is lost, or by Resign. Campaign may then be called
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
//   - While the candidate waits in line, Resign removes its bid. Campaign or Lead returns ErrResigned.
//   - While the function given to Lead runs, Resign ends the function's context and waits for the
//     function, even if the term is already lost and the function is ending. Lead returns ErrResigned,
//     or the function's own error. If Resign is called with the function's context, or with a
//     context derived from it, Resign does not wait. A function that calls Resign with any other
//     context would wait for itself; it should call Handle.Resign.
//   - Between two terms Lead returns ErrResigned, and no further bid follows.
//   - Before the first Campaign or Lead, and after the end of the last, Resign does nothing. It does not
//     affect a Campaign or Lead that begins later.
//
// If the context of Resign ends first, Resign returns the context's error; the resignation remains in effect, and the
// rest continues in the background. If a server refuses to remove the bid, Resign returns the server's error, and the
// bid stays until the session ends.
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

// Lead campaigns, and runs fn while it leads. When leadership is lost, Lead waits until fn
// has returned, and campaigns again after a pause. The pauses grow from 50 ms to 2 s
// while terms continue to fail. Lead returns ctx's error when ctx ends, ErrResigned when
// Resign is called, and the error of a campaign that fails. When fn returns,
// its error decides:
//
//   - If fn returns nil while it leads, Lead returns nil.
//   - An error that says only that the term is over, or that a connection or
//     session failed, ends the term but not Lead. Such errors are: the context's error once the
//     context has ended, ErrNotLeader of Handle.Do, and any error that is or wraps a
//     *zk.UnknownOutcomeError, zk.ErrConnectionLoss, zk.ErrSessionExpired, or the error of a
//     server that temporarily cannot serve. So fn may return the error of
//     any call of the client.
//   - Lead returns any other error of fn, and every error marked by [Stop].
//
// The context given to fn ends with the term, with ctx and with Resign; its
// cause says why. fn must then return, because nothing can stop it; see
// ElectionOptions.Overrun. Lead gives up leadership only after fn has returned.
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
		if err := e.pause(ctx, &pause); err != nil {
			return err
		}
	}
}

// supervise runs fn for one term. Unless another bid follows, supervise then waits until
// the bid is gone, for ElectionOptions.CleanUp at most.
func (e *Election) supervise(ctx context.Context, h *Handle, fn func(context.Context, *Handle) error) claim.TermEnd {
	work, stop := e.workWhile(ctx, h.ctx)
	defer stop()
	defer h.t.giveUp() // also when fn panics
	err := h.t.watchOver(h, func() error { return fn(context.WithValue(work, leading{}, h.t.candidacy), h) })
	lost := h.Lost() != nil
	h.t.giveUp()
	end := claim.TermEnd{Returned: true, Err: err}
	var stopped *stopError
	switch own := err != nil && !isTermOver(err, h) && !isContextEnd(err, work) && !isTransient(err); {
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

// isContextEnd reports whether an error says only that the context has ended.
func isContextEnd(err error, ctx context.Context) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// isTermOver reports whether an error says only that the term is over. An operation of the handle
// may find that out before the handle does.
func isTermOver(err error, h *Handle) bool {
	var lost *LostError
	return errors.Is(err, ErrNotLeader) && errors.As(err, &lost) && lost.Parent == h.t.cfg.Parent
}
