package recipe

import (
	"context"
	"errors"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// Barrier holds back all who wait while one znode, its path, exists. It is
// the barrier of Curator's DistributedBarrier and kazoo's Barrier too.
type Barrier struct {
	b    bidder
	path string
}

// BarrierOptions are the settings of a Barrier or a DoubleBarrier; nil is all
// defaults.
type BarrierOptions struct {
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs
	// Kazoo, for a DoubleBarrier, is set where members use kazoo's. Its members
	// wait for the znode "ready" to go while they leave, so it is removed first
	// instead of last.
	Kazoo bool
}

// NewBarrier prepares a barrier. It is closed while Close has made its znode.
func NewBarrier(c *zk.Client, path string, o *BarrierOptions) (*Barrier, error) {
	b := barrierBidder(c, path, o)
	return &Barrier{b, path}, b.validate()
}

func barrierBidder(c *zk.Client, path string, o *BarrierOptions) bidder {
	var acl zk.ACLs
	if o != nil {
		acl = o.ACL
	}
	return newBidder(c, claim.Config{Parent: path}, ElectionOptions{ACL: acl}, "barrier", nil)
}

// Close closes the barrier. One that is closed stays so.
func (b *Barrier) Close(ctx context.Context) error {
	return persist(ctx, func() error { return b.b.makeParents(ctx, b.path) })
}

// Open lets everybody pass. One that is open stays so.
func (b *Barrier) Open(ctx context.Context) error {
	return persist(ctx, func() error { return absent(b.b.c.Delete(ctx, b.path, zk.AnyVersion)) })
}

// Wait returns nil when the barrier was open at some moment since the call.
// An event is a reason to look again, no more.
func (b *Barrier) Wait(ctx context.Context) error {
	for {
		err := b.look(ctx)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case err != nil && (ctx.Err() != nil || !isPassing(b.b.c, err)):
			return err
		}
	}
}

// look waits until something happens to the barrier that is closed. The sync
// keeps who waits from passing on old news, in each session.
func (b *Barrier) look(ctx context.Context) error {
	if err := b.b.c.Sync(ctx, b.path); err != nil {
		return err
	}
	_, _, w, err := b.b.c.GetW(ctx, b.path)
	if err != nil {
		return err
	}
	if _, err = w.Wait(ctx); err != nil {
		unwatch(ctx, w)
	}
	return err
}
