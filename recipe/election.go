package recipe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// cleanUpDefault is ElectionOptions.CleanUp where it is 0.
const cleanUpDefault = 2 * time.Second

// Naming is how a candidate names its bid, and so with whose candidates it
// can share a parent. All see the bids of all others; but other libraries see
// only their own pattern. The zero value is [OwnNames], which stands with the others.
type Naming = claim.Naming

// The namings. All but PlainNames make a path that never comes again.
const (
	OwnNames          Naming = claim.Own          // <32 hex digits>-n_<seq>, where no other library takes part
	PlainNames        Naming = claim.Plain        // n_<seq>, of Apache's LeaderElectionSupport: no guard, no LEADER by itself
	CuratorLatchNames Naming = claim.CuratorLatch // _c_<uuid>-latch-<seq>, of Curator's LeaderLatch
	CuratorLockNames  Naming = claim.CuratorLock  // _c_<uuid>-lock-<seq>, of Curator's LeaderSelector and InterProcessMutex
	KazooNames        Naming = claim.KazooLock    // <32 hex digits>__lock__<seq>, of kazoo's Election and Lock
	GoZKNames         Naming = claim.GoZKLock     // _c_<32 hex digits>-lock-<seq>, of go-zookeeper's Lock: no LEADER by itself
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
	// CleanUp is how long Campaign and Lead wait, once their context has
	// ended, for the bid's removal. Default 2 s. What is left goes on in the
	// background until it is done or the session ends.
	CleanUp time.Duration

	// Logger is told what happens: terms at Info, trouble at Warn, steps at
	// Debug. Default none.
	Logger *slog.Logger
}

// Election is one candidate in the election of a path. It campaigns for one
// term at a time. Its methods may be called from any goroutine.
type Election struct {
	bidder

	mu      sync.Mutex
	busy    bool  // a Campaign is under way
	present *term // the last one started
	seen    claim.Succession
}

// NewElection prepares a candidate of the election at parent, which is
// created when it is missing. The id is how others see this candidate, UTF-8.
// The client stays the caller's and may be shared.
func NewElection(c *zk.Client, parent, id string, o *ElectionOptions) (*Election, error) {
	var opt ElectionOptions
	if o != nil {
		opt = *o
	}
	if opt.Leader == "" && !strict(opt.Naming) {
		opt.Leader = claim.Join(parent, "LEADER")
	}
	cfg := claim.Config{Parent: parent, ID: id, Naming: opt.Naming, Leader: opt.Leader, Quiet: time.Millisecond}
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
// before an error is returned, within ElectionOptions.CleanUp.
//
// The handle ends by itself or by Resign; afterwards Campaign may be called
// again, for a new bid at the end of the line.
func (e *Election) Campaign(ctx context.Context) (*Handle, error) {
	last, err := e.begin()
	if err != nil {
		return nil, err
	}
	defer e.campaigned()
	if last != nil {
		select { // one bid at a time
		case <-last.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.bidder.campaign(ctx, e.start)
}

// begin claims the Election for one Campaign and returns the term before.
func (e *Election) begin() (*term, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy || e.present != nil && e.present.claims() {
		return nil, ErrCampaigning
	}
	e.busy = true
	return e.present, nil
}

func (e *Election) campaigned() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy = false
}

// start makes the next bid.
func (e *Election) start(ctx context.Context) *term {
	t := e.prepare(false)
	e.mu.Lock()
	e.present = t
	e.mu.Unlock()
	go t.run(context.WithoutCancel(ctx))
	return t
}

// Resign gives up the bid or leadership and waits until the bid is gone. A
// leading function of Lead is told by its context and is waited for first.
// The error is the context's, and the removal then goes on in the background; or it is
// that of a server that refuses to remove the bid, which then stands until the session ends.
// Without a bid nothing happens.
func (e *Election) Resign(ctx context.Context) error {
	e.mu.Lock()
	t := e.present
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	t.stepDown()
	select {
	case <-t.done:
		return t.stays()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lead campaigns and, while it leads, runs fn; when leadership is lost it
// waits for fn and campaigns again. It returns when fn returns by itself, with
// its error; when ctx ends, with ctx's error; and when Campaign fails or Resign is called.
//
// The context given to fn ends with the term, with ctx and with Resign; its
// cause says why. fn must return then: nobody can stop it, see
// ElectionOptions.Overrun. An error of fn ends Lead, unless it is that of the
// context, or that of an operation of h that found leadership lost (ErrNotLeader).
// Leadership is resigned after fn has returned, not before.
func (e *Election) Lead(ctx context.Context, fn func(ctx context.Context, h *Handle) error) error {
	for {
		h, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		if end := e.supervise(ctx, h, fn); !end.Again() {
			return end.Err
		}
	}
}

// supervise runs fn for one term. Unless another bid is to follow it waits a while
// until the bid is gone.
func (e *Election) supervise(ctx context.Context, h *Handle, fn func(context.Context, *Handle) error) claim.TermEnd {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	defer stop()
	h.t.superviseBy(func() { cancel(ErrResigned) })
	defer h.t.giveUp() // also when fn panics
	err := h.t.watchOver(h, func() error { return fn(work, h) })
	over := saysOver(err, h)
	resigned := errors.Is(context.Cause(work), ErrResigned) || over && errors.Is(err, ErrResigned)
	lost := over || h.Lost() != nil
	h.t.giveUp()
	mine := err != nil && !over && !isEnd(err, work)
	end := claim.TermEnd{Returned: true, Err: err}
	switch {
	case mine:
	case ctx.Err() != nil:
		end = claim.TermEnd{Err: ctx.Err()}
	case resigned:
		end = claim.TermEnd{Err: ErrResigned}
	case lost:
		return claim.TermEnd{}
	}
	h.t.waitAtMost(e.opt.CleanUp)
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
