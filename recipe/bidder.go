package recipe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// bidder makes bids below one parent. Elections, locks and semaphores share it. Its
// fields do not change once it is in use.
type bidder struct {
	agent
	cfg  lines.Config // without the nonce, which prepare sets
	gate lines.Config // only for a semaphore: the lock at which clients wait before they wait for a lease
	opt  ElectionOptions
}

// bidMachine is the machine of one bid.
type bidMachine interface {
	machine
	State() lines.State
	Left(claim.Moment) time.Duration
	Deadline(claim.Moment) time.Duration
	Proof() error
}

func newBidder(c *zk.Client, cfg lines.Config, o ElectionOptions, recipe string, over error) bidder {
	cfg.Margin = max(o.Margin, 0)
	b := bidder{agent: newAgent(c, recipe, cfg.Parent, o.ACL, o.Logger, o.Observer), cfg: cfg, opt: o}
	b.id, b.over, b.leaseDelay, b.keepAlive = cfg.ID, over, o.LeaseDelay, o.KeepAlive
	if o.CleanUp > 0 {
		b.cleanUp = o.CleanUp
	}
	return b
}

// validate checks the settings that every election and lock has.
func (b *bidder) validate() error {
	if err := b.agent.validate(); err != nil {
		return err
	}
	switch {
	case b.opt.Naming > GoZKNames:
		return fmt.Errorf("%s %s: naming %v does not exist", b.recipe, b.path, b.opt.Naming)
	case !utf8.ValidString(b.cfg.ID):
		return fmt.Errorf("%s %s: id %q is not UTF-8", b.recipe, b.path, b.cfg.ID)
	}
	return nil
}

// campaign makes bids with start until the term of one begins. It pauses after each bid that ended without
// a term.
func (b *bidder) campaign(ctx context.Context, pause *claim.Backoff, start func(context.Context) *term) (*Handle, error) {
	for {
		if h, end := b.bid(ctx, start); h != nil || !end.Again() {
			return h, end.Err
		}
		if err := b.pause(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// bid makes one bid and waits until its term begins or the bid is gone.
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
		b.observed(b.bidEvent(), b.cfg.Parent, began, err)
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
	case <-t.gone:
		return nil, claim.TermEnd{Err: t.verdict()}
	case <-ctx.Done():
		t.giveUp()
		t.waitAtMost(ctx, b.cleanUp)
		err := ctx.Err()
		if stays := t.removalError(); stays != nil {
			err = errors.Join(err, stays)
		}
		return nil, claim.TermEnd{Err: err}
	}
}

// bidEvent returns the Event that Observations of a bid have: "campaign" or "acquire".
func (b *bidder) bidEvent() string {
	if b.recipe == "election" {
		return "campaign"
	}
	return "acquire"
}

// prepare makes the next bid, with a nonce of its own. It returns the bid and the context with which the caller must run it.
func (b *bidder) prepare(ctx context.Context, try bool) (*term, context.Context) {
	cfg, gate := b.cfg, b.gate
	rand.Read(cfg.Nonce[:])
	rand.Read(gate.Nonce[:])
	cfg.Try, gate.Try = try, try
	if gate.Parent != "" && (!try || cfg.Naming == claim.KazooLease) {
		return newTerm(ctx, b, cfg, lines.NewSemaphore(gate, cfg))
	}
	return newTerm(ctx, b, cfg, lines.NewLine(cfg)) // a bid that only tries does not wait at the gate
}
