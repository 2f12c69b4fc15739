package recipe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	recipe string // its name in errors
	report *reporter
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
	cfg.Margin = max(o.Margin, 0)
	return bidder{c: c, cfg: cfg, opt: o, clock: newClock(), recipe: recipe, over: over, report: newReporter(o.Logger, o.Observer)}
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

// campaign makes bids until one has its term, with a pause after each that ended
// without one. Each is started by start.
func (b *bidder) campaign(ctx context.Context, pause *claim.Backoff, start func(context.Context) *term) (*Handle, error) {
	for {
		if h, end := b.bid(ctx, start); h != nil || !end.Again() {
			return h, end.Err
		}
		if err := b.rest(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// bid makes one bid and waits until it has its term, or is over.
func (b *bidder) bid(ctx context.Context, start func(context.Context) *term) (h *Handle, end claim.TermEnd) {
	if err := ctx.Err(); err != nil {
		return nil, claim.TermEnd{Err: err}
	}
	var t *term
	began := time.Now()
	defer func() {
		err := end.Err
		if h == nil && err == nil { // another bid follows
			err = b.lost(t.state().Reason, nil)
		}
		b.observed(b.wish(), b.cfg.Parent, began, err)
	}()
	for _, parent := range []string{b.cfg.Parent, b.gate.Parent} {
		if err := b.removeLeftovers(ctx, parent); err != nil && ctx.Err() == nil {
			return nil, claim.TermEnd{Err: b.lost(Refused, err)}
		}
	}
	t = start(ctx)
	select {
	case <-t.led:
		return t.handle, claim.TermEnd{}
	case <-t.done:
		return nil, claim.TermEnd{Err: t.verdict()}
	case <-ctx.Done():
		t.giveUp()
		t.waitAtMost(ctx, b.opt.CleanUp)
		err := ctx.Err()
		if stays := t.stays(); stays != nil {
			err = errors.Join(err, stays)
		}
		return nil, claim.TermEnd{Err: err}
	}
}

// wish is what a bid is for, as an event.
func (b *bidder) wish() string {
	if b.recipe == "election" {
		return "campaign"
	}
	return "acquire"
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

// workWhile is the context of a function that runs while something is held: it ends with ctx and with held,
// and when the client is closed or detached, before a server hears of it. stop ends it, and waits for nobody.
func (b *bidder) workWhile(ctx, held context.Context) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	// AfterFunc takes a goroutine, for which Close of the client does not wait.
	unhook := b.c.OnClose(func() { cancel(b.lost(SessionClosed, nil)) })
	return work, func() {
		unhook()
		unlink()
		cancel(nil)
	}
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
func (b *bidder) lease(id zk.SessionID) (claim.Lease, bool) {
	l := b.c.Lease()
	if l.Session != id || id == 0 {
		return claim.Lease{}, false
	}
	if b.opt.LeaseDelay > 0 {
		l.Delay = b.opt.LeaseDelay
	}
	return claim.Lease{Sent: b.clock.moment(l.Confirmed), Timeout: l.Timeout, Delay: l.Delay}, true
}
