package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"bellwether/internal/claim/barrier"
	"bellwether/zk"
)

// DoubleBarrier lets its members begin together and end together. Enter returns when n
// members have entered, Leave when all members that had entered have left. Its znodes are
// those of Curator's DistributedDoubleBarrier and kazoo's DoubleBarrier: an ephemeral
// znode for each member, and the znode "ready".
//
// A DoubleBarrier value is one member. It calls Enter and Leave in turn.
//
// Invariant while turn is free: in is 0 if m is nil, and the session of m otherwise.
type DoubleBarrier struct {
	b     agent
	path  string
	n     int
	kazoo bool

	turn turn                 // makes Enter and Leave run one at a time; guards m
	m    *barrier.Member      // nil while this member is out
	in   atomic.Int64         // the session in which this member entered, 0 while it is out
	stay atomic.Pointer[stay] // follows the session from Enter to Leave; nil before the first Enter
}

// NewDoubleBarrier prepares one member of the double barrier at path, which has n members.
func NewDoubleBarrier(c *zk.Client, path string, n int, o *BarrierOptions) (*DoubleBarrier, error) {
	d := &DoubleBarrier{b: barrierAgent(c, path, o), path: path, n: n, kazoo: o != nil && o.Kazoo, turn: newTurn()}
	if n < 1 {
		return d, fmt.Errorf("barrier %s: %d members, want 1 or more", path, n)
	}
	return d, d.b.validate()
}

// Errors of a DoubleBarrier that is used in the wrong order.
var (
	// ErrEntered says that this member of the DoubleBarrier has entered already.
	ErrEntered = errors.New("this member of the barrier has entered already")
	// ErrNotEntered says that this member of the DoubleBarrier has not entered.
	ErrNotEntered = errors.New("this member of the barrier has not entered")
)

// Enter waits until n members have entered. After an error this member is out. If the context
// ends just when the last member enters, the other members may begin without this one. If the
// session expires, the error is zk.ErrSessionExpired.
func (d *DoubleBarrier) Enter(ctx context.Context) error {
	if err := d.turn.take(ctx); err != nil {
		return err
	}
	defer d.turn.give()
	if d.m != nil {
		return ErrEntered
	}
	m := barrier.NewMember(barrier.MemberConfig{Path: d.path, Name: nonce(), N: d.n, Kazoo: d.kazoo})
	if err := d.b.performUntil(ctx, "enter", d.path, m, m.Settled); err != nil {
		return err
	}
	d.m = m
	d.in.Store(int64(m.Session()))
	d.stay.Store(d.b.newStay(ctx, m.Session()))
	return nil
}

// Session returns the session in which the member entered, or 0 while the member is out.
func (d *DoubleBarrier) Session() zk.SessionID { return zk.SessionID(d.in.Load()) }

// Context returns the context for the work of this member between Enter and Leave. The
// context ends when Leave is called. It also ends when the client is closed, before a
// server learns of that. If DoubleBarrier.Proof returns nil and the process is not
// suspended, the context also ends before the other members can treat this one as gone.
// Its cause is a *LostError. Before the first Enter, Context returns a context that has ended,
// with the cause ErrNotEntered.
func (d *DoubleBarrier) Context() context.Context {
	if in := d.stay.Load(); in != nil {
		return in.Context()
	}
	ctx, end := context.WithCancelCause(context.Background())
	end(ErrNotEntered)
	return ctx
}

// Left returns for how long the member is known to be in, unless a new ping proves that its
// session lives for longer. It reads the clocks when it is called. Once the member is out it returns 0 or less.
func (d *DoubleBarrier) Left() time.Duration {
	if in := d.stay.Load(); in != nil {
		return in.Left()
	}
	return 0
}

// Proof returns nil if it is proven that Context ends before the session can expire.
// Otherwise it returns a *NoProof, and the context ends after two thirds of the session
// timeout without an answered ping. Before Enter it returns ErrNotEntered.
func (d *DoubleBarrier) Proof() error {
	if in := d.stay.Load(); in != nil {
		return in.Proof()
	}
	return ErrNotEntered
}

// Lost returns nil while the member is in, and afterwards a *LostError. Before Enter it
// returns ErrNotEntered.
func (d *DoubleBarrier) Lost() error {
	if in := d.stay.Load(); in != nil {
		return in.Lost()
	}
	return ErrNotEntered
}

// Leave waits until all members have left. After an error it may be called again. If the
// session has expired, the member is out and the error is zk.ErrSessionExpired.
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
	drive := d.b.newDriver(d.m)
	drive.first = barrier.Depart{}
	err := drive.conclude(ctx, "leave", d.path, d.m)
	if err == nil || errors.Is(err, zk.ErrSessionExpired) {
		d.m = nil
		d.in.Store(0)
	}
	d.b.observed("leave", d.path, start, err)
	return err
}
