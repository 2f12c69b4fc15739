package recipe

import (
	"context"
	"log/slog"

	"bellwether/internal/claim/barrier"
	"bellwether/zk"
)

// Barrier keeps clients waiting while one znode, at its path, exists. It is compatible
// with Curator's DistributedBarrier and kazoo's Barrier.
type Barrier struct {
	b    agent
	path string
}

// BarrierOptions are the settings of a Barrier or a DoubleBarrier. A nil pointer means all
// defaults.
type BarrierOptions struct {
	// ACL is given to each znode that the barrier creates. By default everybody may do everything.
	ACL zk.ACLs
	// Kazoo must be set for a DoubleBarrier that members using kazoo share. Members of
	// kazoo wait until the znode "ready" is gone while they leave, so with Kazoo it is
	// removed first instead of last.
	Kazoo bool

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// NewBarrier prepares a barrier at path. The barrier is closed once Close has created
// its znode.
func NewBarrier(c *zk.Client, path string, o *BarrierOptions) (*Barrier, error) {
	b := barrierAgent(c, path, o)
	b.cleanUp = unwatchTime // for the removal of a watch after Wait was cancelled
	return &Barrier{b, path}, b.validate()
}

func barrierAgent(c *zk.Client, path string, o *BarrierOptions) agent {
	opt := optionsOr(o)
	return newAgent(c, "barrier", path, opt.ACL, opt.Logger, opt.Observer)
}

// Close closes the barrier. Closing a closed barrier changes nothing.
func (b *Barrier) Close(ctx context.Context) error { return b.do(ctx, "close", barrier.CloseBarrier) }

// Open opens the barrier, so that all waiting clients pass. Opening an open barrier changes nothing.
func (b *Barrier) Open(ctx context.Context) error { return b.do(ctx, "open", barrier.OpenBarrier) }

// Wait waits until the barrier is open. If it returns nil, the barrier was open at some moment during the call.
func (b *Barrier) Wait(ctx context.Context) error { return b.do(ctx, "wait", barrier.PassBarrier) }

func (b *Barrier) do(ctx context.Context, op string, act barrier.Act) error {
	return b.b.perform(ctx, op, b.path, barrier.NewBarrier(b.path, act))
}
