package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/internal/claim/lines"
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

// Context returns a context that ends with the term; its cause is a *LostError. If
// Handle.Proof returns nil and the process is not suspended, the context ends before the server can give
// leadership to another candidate. A process that was suspended, or got no CPU time, finds out
// late. Left reads the clocks when it is called.
func (h *Handle) Context() context.Context { return h.ctx }

// Token returns the fencing token, which is the czxid of the bid. The token of each leader is
// larger than those of all earlier leaders, as long as the ensemble exists.
func (h *Handle) Token() zk.Zxid { return h.token }

// Bid returns the path of the bid.
func (h *Handle) Bid() string { return h.bid }

// Left returns how long the term lasts unless a new ping proves that the session lives for longer. It
// reads the clocks when it is called. Once the term is over it returns 0 or less.
func (h *Handle) Left() time.Duration { return h.t.left() }

// Proof returns nil if it is proven that the term ends before the server can give
// leadership away. Otherwise it returns a *NoProof. The context then ends after two thirds of
// the session timeout without an answered ping, and only token and guard protect against
// an older leader.
func (h *Handle) Proof() error {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.bid.Proof()
}

// Lost returns nil while the term lasts, and afterwards a *LostError.
func (h *Handle) Lost() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	if h.Left() <= 0 {
		return h.t.b.lost(LeaseLapsed, nil)
	}
	return nil
}

// Published reports whether LEADER names this term. If it does not, the error says why, if that
// is known: a [*LeaderTaken] or an error of the server. Leading does not depend on LEADER.
func (h *Handle) Published() (bool, error) {
	s := h.t.state()
	return s.Published, s.PublishErr
}

// Guard returns an operation that makes a Multi fail unless this bid exists. Under PlainNames
// it does not protect, see ErrNoGuard.
func (h *Handle) Guard() zk.Op { return zk.CheckOp(h.bid, zk.AnyVersion) }

// Do carries out all operations or none. It carries out none unless this handle still leads: the
// same transaction checks the bid. If the term is over it returns ErrNotLeader. If the server answers that
// the bid is gone, the term has ended when Do returns: Lost and Context say so. After a
// zk.UnknownOutcomeError the operations may have been carried out. The results are those
// of zk.Client.Multi without the result of the guard.
func (h *Handle) Do(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	if h.t.cfg.Naming == PlainNames {
		return nil, ErrNoGuard
	}
	if lost := h.Lost(); lost != nil {
		return nil, h.t.b.isOver(lost)
	}
	return doGuarded(ctx, []*Handle{h}, ops)
}

// doGuarded carries out ops in one transaction that checks the bids of all handles.
func doGuarded(ctx context.Context, handles []*Handle, ops []zk.Op) ([]zk.Result, error) {
	guards := make([]zk.Op, len(handles))
	for i, h := range handles {
		guards[i] = h.Guard()
	}
	b := handles[0].t.b
	session := handles[0].t.session
	res, err := b.c.Multi(zk.InSession(ctx, session), append(guards, ops...)...)
	if isUnsent(err) {
		return nil, b.isOver(b.lost(SessionExpired, nil))
	}
	for i := range min(len(guards), len(res)) {
		if errors.Is(res[i].Err, zk.ErrNoNode) {
			return nil, handles[i].bidMissing(ctx, session)
		}
	}
	return res[min(len(guards), len(res)):], err
}

// bidMissing ends the term because a server has answered, in this session, that the bid does not exist. It waits until
// the handle's context or ctx has ended, and returns the error of an operation of a handle that is over.
func (h *Handle) bidMissing(ctx context.Context, session zk.SessionID) error {
	select {
	case h.t.events <- input{event: lines.BidMissing{Path: h.bid, Session: session}}:
	case <-h.ctx.Done():
	}
	select {
	case <-h.ctx.Done():
	case <-ctx.Done(): // the loop ends the term nevertheless
	}
	if lost := h.Lost(); lost != nil {
		return h.t.b.isOver(lost)
	}
	return h.t.b.isOver(h.t.b.lost(BidGone, nil))
}

// Resign gives up the term. It also ends the Campaign or Lead that made the handle, even if the
// term is already over. A handle of Campaign ends at once: Resign waits until its
// bid is gone, and its errors are those of [Election.Resign]. For a handle that Lead, or Run of
// a [Partitioner] or [Work], has given to a function, Resign ends the function's context and does not
// wait. The bid is removed when the function has returned, and Lead or Run returns ErrResigned.
func (h *Handle) Resign(ctx context.Context) error {
	if !h.t.candidacy.resign() {
		return nil
	}
	return h.t.awaitGone(ctx)
}

// isUnsent reports whether an operation was certainly not carried out because its session had expired. Everything
// that was claimed in that session is then gone.
func isUnsent(err error) bool {
	var unclear *zk.UnknownOutcomeError
	return errors.Is(err, zk.ErrSessionExpired) && !errors.As(err, &unclear)
}
