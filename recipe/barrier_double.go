package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"bellwether/internal/claim"
	"bellwether/wire"
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

	turn turn          // of Enter and Leave, which one does at a time; guards m
	m    *claim.Member // nil while this member is out
	in   atomic.Int64  // the session in which it is in, 0 while it is out
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
	return nil
}

// Session is the session in which the member is in, 0 while it is out.
func (d *DoubleBarrier) Session() wire.SessionID { return wire.SessionID(d.in.Load()) }

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
	return err
}
