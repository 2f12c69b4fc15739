package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/zk"
)

// Handle is one term of leadership. Its methods may be called from any goroutine.
type Handle struct {
	t     *term
	ctx   context.Context
	end   context.CancelCauseFunc
	bid   string // path
	token zk.Zxid
}

// Context ends with the term; its cause is a [*LostError]. It ends before
// the server can give leadership to another, where [Handle.Proof] is nil and
// the process runs. A process that is stopped, or starved, finds out late:
// Left looks at the clocks when it is called.
func (h *Handle) Context() context.Context { return h.ctx }

// Token is the fencing token, the czxid of the bid: each leader's is larger
// than those of all leaders before, in the life of the ensemble.
func (h *Handle) Token() zk.Zxid { return h.token }

// Bid is the path of the bid.
func (h *Handle) Bid() string { return h.bid }

// Left is how long the term lasts without another proof that the session
// lives, by the clocks as they are now; at most 0 when it is over.
func (h *Handle) Left() time.Duration { return h.t.left() }

// Proof is nil while the end of the term is proven to come before the server
// can give leadership away. Otherwise it is a [*NoProof], the context ends
// after two thirds of the session timeout without an answered ping, and token
// and guard alone hold.
func (h *Handle) Proof() error {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.m.Proof()
}

// Lost is nil while the term lasts, then a [*LostError].
func (h *Handle) Lost() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	if h.Left() <= 0 {
		return h.t.b.lost(LeaseLapsed, nil)
	}
	return nil
}

// Published reports whether LEADER names this term, and if not, why, as far
// as it is known: a [*LeaderTaken] or an error of the server. Leading does not depend on it.
func (h *Handle) Published() (bool, error) {
	s := h.t.state()
	return s.Published, s.PublishErr
}

// Guard is an operation that fails a Multi unless this bid stands. Under
// PlainNames it is of little use, see ErrNoGuard.
func (h *Handle) Guard() zk.Op { return zk.CheckOp(h.bid, zk.AnyVersion) }

// Do carries out all operations or none, and none unless this handle still
// leads: the bid is checked in the same transaction. A term that is over
// gives ErrNotLeader; a zk.UnknownOutcomeError leaves open what happened. The results
// are those of zk.Client.Multi without the guard's.
func (h *Handle) Do(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	if h.t.cfg.Naming == PlainNames {
		return nil, ErrNoGuard
	}
	if lost := h.Lost(); lost != nil {
		return nil, h.t.b.isOver(lost)
	}
	res, err := h.t.b.c.Multi(ctx, append([]zk.Op{h.Guard()}, ops...)...)
	switch {
	case isUnsent(err):
		return nil, h.t.b.isOver(h.t.b.lost(SessionExpired, nil))
	case len(res) == 0:
		return nil, err
	case errors.Is(res[0].Err, zk.ErrNoNode):
		return nil, h.t.b.isOver(h.t.b.lost(BidGone, nil))
	}
	return res[1:], err
}

// Resign gives up the term, and ends the Campaign or Lead that it comes from, also where the
// term is over already. A handle of Campaign is over at once: Resign waits until its
// bid is gone, and its errors are those of [Election.Resign]. The function to which Lead, or Run of
// a [Partitioner] or [Work], has given the handle is told by its context; Resign does not wait
// for it. The bid goes when the function has returned, and Lead or Run returns ErrResigned.
func (h *Handle) Resign(ctx context.Context) error {
	if !h.t.candidacy.resign() {
		return nil
	}
	return h.t.awaitGone(ctx)
}

// isUnsent: the session had expired, so that an operation of it was not carried
// out, and what was claimed in it is gone.
func isUnsent(err error) bool {
	var unclear *zk.UnknownOutcomeError
	return errors.Is(err, zk.ErrSessionExpired) && !errors.As(err, &unclear)
}
