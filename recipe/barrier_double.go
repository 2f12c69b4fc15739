package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// DoubleBarrier lets its members begin together and end together: Enter
// returns when enough are in, Leave when all who were in are out. Its znodes are
// those of Curator's DistributedDoubleBarrier and kazoo's DoubleBarrier: an
// ephemeral one for each member, and "ready".
//
// One DoubleBarrier is one member, which enters and leaves in turn.
type DoubleBarrier struct {
	b     bidder
	path  string
	n     int
	kazoo bool

	turn turn                 // of Enter and Leave, which one does at a time; guards m
	m    *claim.Member        // nil while this member is out
	in   atomic.Int64         // the session in which it is in, 0 while it is out
	stay atomic.Pointer[stay] // from Enter to Leave; nil before the first Enter
}

// NewDoubleBarrier prepares a member of a barrier for n.
func NewDoubleBarrier(c *zk.Client, path string, n int, o *BarrierOptions) (*DoubleBarrier, error) {
	d := &DoubleBarrier{b: barrierBidder(c, path, o), path: path, n: n, kazoo: o != nil && o.Kazoo, turn: newTurn()}
	if n < 1 {
		return d, fmt.Errorf("barrier %s: for %d members, want 1 or more", path, n)
	}
	return d, d.b.validate()
}

// Errors of a DoubleBarrier that is used in the wrong order.
var (
	ErrEntered    = errors.New("this member of the barrier is in already")
	ErrNotEntered = errors.New("this member of the barrier is not in")
)

// Enter waits until n members are in. With an error this member is out; where
// the context ended at the last moment, the others may have begun without it.
// When the session expires the member is out: ErrSessionExpired.
func (d *DoubleBarrier) Enter(ctx context.Context) error {
	if err := d.turn.take(ctx); err != nil {
		return err
	}
	defer d.turn.give()
	if d.m != nil {
		return ErrEntered
	}
	m := claim.NewMember(claim.MemberConfig{Path: d.path, Name: nonce(), N: d.n, Kazoo: d.kazoo})
	if err := d.b.performUntil(ctx, "enter", d.path, m, func() bool { return m.Over() || m.Settled() }); err != nil {
		return err
	}
	d.m = m
	d.in.Store(int64(m.Session()))
	d.stay.Store(d.b.newStay(ctx, m.Session()))
	return nil
}

// Session is the session in which the member is in, 0 while it is out.
func (d *DoubleBarrier) Session() zk.SessionID { return zk.SessionID(d.in.Load()) }

// Context is for what this member does between Enter and Leave. It ends when Leave is called, and
// before the others can take this member for gone, where [DoubleBarrier.Proof] is nil and the
// process runs; when the client is closed, before a server hears of it. Its cause is a
// [*LostError]. Before Enter it has ended, because of ErrNotEntered.
func (d *DoubleBarrier) Context() context.Context {
	if in := d.stay.Load(); in != nil {
		return in.Context()
	}
	ctx, end := context.WithCancelCause(context.Background())
	end(ErrNotEntered)
	return ctx
}

// Left is how long the member is in without another proof that its session lives, by the clocks as
// they are now; at most 0 when it is out.
func (d *DoubleBarrier) Left() time.Duration {
	if in := d.stay.Load(); in != nil {
		return in.Left()
	}
	return 0
}

// Proof is nil while the end of Context is proven to come before the session can expire. Otherwise
// it is a [*NoProof], and the context ends after two thirds of the session timeout without an
// answered ping; before Enter it is ErrNotEntered.
func (d *DoubleBarrier) Proof() error {
	if in := d.stay.Load(); in != nil {
		return in.Proof()
	}
	return ErrNotEntered
}

// Lost is nil while the member is in, then a [*LostError], and before Enter ErrNotEntered.
func (d *DoubleBarrier) Lost() error {
	if in := d.stay.Load(); in != nil {
		return in.Lost()
	}
	return ErrNotEntered
}

// Leave waits until all members are out. After an error it may be called
// again; a session that expired has taken this member out: ErrSessionExpired.
func (d *DoubleBarrier) Leave(ctx context.Context) error {
	if err := d.turn.take(ctx); err != nil {
		return err
	}
	defer d.turn.give()
	if d.m == nil {
		return ErrNotEntered
	}
	d.stay.Load().leave()
	start := time.Now()
	drive := d.b.newDrive(d.m, d.m.Over)
	drive.first = claim.Depart{}
	err := drive.run(ctx)
	if err == nil {
		err = d.b.verdict(ctx, "leave", d.path, d.m)
	}
	if err == nil || errors.Is(err, zk.ErrSessionExpired) {
		d.m = nil
		d.in.Store(0)
	}
	d.b.observed("leave", d.path, start, err)
	return err
}
