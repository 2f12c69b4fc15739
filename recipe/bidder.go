package recipe

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// bidder makes bids below one parent: it is what the recipes have in common
// that stand in a line. Its fields do not change once it is in use.
type bidder struct {
	c      *zk.Client
	cfg    claim.Config // but for the nonce
	gate   claim.Config // of a semaphore: the line before that for its leases
	opt    ElectionOptions
	clock  clock
	recipe string  // its name in errors
	over   error   // of an operation whose handle is over
	more   []zk.Op // what a claim.OpMore stands for
	// itemACL, unless it is nil, receives the ACL of the item that Queue.TakeTo read last.
	itemACL *zk.ACLs
}

// machine is the state machine of one bid.
type machine interface {
	Step(claim.Moment, claim.Event)
	Ready() claim.Ready
	State() claim.State
	Left(claim.Moment) time.Duration
	Deadline(claim.Moment) time.Duration
	Proof() error
}

func newBidder(c *zk.Client, cfg claim.Config, o ElectionOptions, recipe string, over error) bidder {
	if o.CleanUp <= 0 {
		o.CleanUp = cleanUpDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Margin = max(o.Margin, 0)
	return bidder{c: c, cfg: cfg, opt: o, clock: newClock(), recipe: recipe, over: over}
}

// validate looks at what every recipe is given.
func (b *bidder) validate() error {
	if err := checkPath(b.recipe, b.cfg.Parent); err != nil {
		return err
	}
	switch {
	case b.opt.Naming > GoZKNames:
		return fmt.Errorf("%s %s: no naming %v", b.recipe, b.cfg.Parent, b.opt.Naming)
	case !utf8.ValidString(b.cfg.ID):
		return fmt.Errorf("%s %s: id %q is not UTF-8", b.recipe, b.cfg.Parent, b.cfg.ID)
	}
	return nil
}

// checkPath looks at the path that a recipe is given.
func checkPath(recipe, path string) error {
	if !wire.ValidPath(path) {
		return fmt.Errorf("%s: %q is not the path of a znode, as /app/x is, without an empty, . or .. part: %w", recipe, path, zk.ErrBadArguments)
	}
	return nil
}

// checkName looks at what is to be the name of a znode, or a part of it.
func checkName(recipe, name string) error {
	if name == "" || strings.Contains(name, "/") || !wire.ValidPath("/"+name) {
		return fmt.Errorf("%s: %q cannot be the name of a znode: %w", recipe, name, zk.ErrBadArguments)
	}
	return nil
}

// campaign makes bids until one has its term. Each is started by start.
func (b *bidder) campaign(ctx context.Context, start func(context.Context) *term) (*Handle, error) {
	for {
		if h, end := b.bid(ctx, start); h != nil || !end.Again() {
			return h, end.Err
		}
	}
}

// bid makes one bid and waits until it has its term, or is over.
func (b *bidder) bid(ctx context.Context, start func(context.Context) *term) (*Handle, claim.TermEnd) {
	if err := ctx.Err(); err != nil {
		return nil, claim.TermEnd{Err: err}
	}
	t := start(ctx)
	select {
	case <-t.led:
		return t.handle, claim.TermEnd{}
	case <-t.done:
		return nil, claim.TermEnd{Err: t.verdict()}
	case <-ctx.Done():
		t.giveUp()
		t.waitAtMost(b.opt.CleanUp)
		return nil, claim.TermEnd{Err: ctx.Err()}
	}
}

// prepare is the next bid, with a nonce of its own. Its run is to follow.
func (b *bidder) prepare(try bool) *term {
	cfg, gate := b.cfg, b.gate
	rand.Read(cfg.Nonce[:])
	rand.Read(gate.Nonce[:])
	cfg.Try, gate.Try = try, try
	if gate.Parent != "" && (!try || cfg.Naming == claim.KazooLease) {
		return newTerm(b, cfg, claim.NewSemaphore(gate, cfg))
	}
	return newTerm(b, cfg, claim.NewLine(cfg)) // who only tries does not stand at the gate
}

// lost is the end of a term or a campaign.
func (b *bidder) lost(r Reason, err error) *LostError {
	return &LostError{Parent: b.cfg.Parent, Reason: r, Err: err, recipe: b.recipe}
}

// isOver is the error of an operation that was not carried out.
func (b *bidder) isOver(lost error) error { return fmt.Errorf("%w: %w", b.over, lost) }

// never is a moment so long ago that nothing sent then proves anything.
var never = claim.Moment{Mono: -1 << 62, Wall: -1 << 62}

// lease is the client's lease if it is that session's.
func (b *bidder) lease(id wire.SessionID) (claim.Lease, bool) {
	l := b.c.Lease()
	if l.Session != id || id == 0 {
		return claim.Lease{}, false
	}
	if b.opt.LeaseDelay > 0 {
		l.Delay = b.opt.LeaseDelay
	}
	return claim.Lease{Sent: b.clock.moment(l.Confirmed), Timeout: l.Timeout, Delay: l.Delay}, true
}

// tell logs a happening.
func (b *bidder) tell(h claim.Happening) {
	level := slog.LevelDebug
	switch h := h.(type) {
	case claim.Leads:
		level = slog.LevelInfo
	case claim.Ended:
		if h.Led {
			level = slog.LevelInfo
		}
	case claim.Unpublished, claim.Passed:
		level = slog.LevelWarn
	case claim.Left:
		if h.Err != nil {
			level = slog.LevelWarn
		}
	}
	b.opt.Logger.Log(context.Background(), level, h.String(), "path", b.cfg.Parent, "id", b.cfg.ID)
}
