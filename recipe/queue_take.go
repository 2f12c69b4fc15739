package recipe

import (
	"context"
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// Queue gives each item to one consumer, the most urgent first and of those the oldest.
// An item that was taken is removed: if its consumer fails, the item is lost. See
// WorkQueue for items that come back.
type Queue struct{ queue }

// NewQueue prepares a queue whose items are the children of path. Producers and
// consumers both use it, in any number. Consumers wait in a queue of their own at
// path.line.
func NewQueue(c *zk.Client, path string, o *QueueOptions) (*Queue, error) {
	q, err := newQueue(c, path, path, o)
	return &Queue{q}, err
}

// Take waits for an item and takes it. It survives lost replies, and sessions that
// expire while it waits. An error that is a zk.UnknownOutcomeError says that an item may
// have been taken, which is then lost.
func (q *Queue) Take(ctx context.Context) ([]byte, error) {
	m, err := q.take(ctx)
	if err != nil {
		return nil, err
	}
	_, data, _ := m.Taken()
	return data, nil
}

// TakeTo takes an item as Take does and calls deliver with its data. If
// deliver fails, TakeTo puts the item back at its old place in the queue, with
// its old ACL, and returns deliver's error. If the item could not be put back,
// or that is not known, the error says so as well. The end of ctx does not keep
// an item from being put back. An item is lost when this process ends while
// deliver runs.
func (q *Queue) TakeTo(ctx context.Context, deliver func(data []byte) error) error {
	var acl zk.ACLs
	took := *q
	took.b.itemACL = &acl
	m, err := took.take(ctx)
	if err != nil {
		return err
	}
	item, data, _ := m.Taken()
	if err = deliver(data); err == nil {
		return nil
	}
	took.b.acl = acl
	if lost := took.putBack(context.WithoutCancel(ctx), item, data); lost != nil {
		return fmt.Errorf("%w; the item may be lost, putting it back failed: %w", err, lost)
	}
	return err
}

// putBackTime is how long TakeTo tries to put an item back.
const putBackTime = 2 * time.Second

// putBack makes the znode of a taken item again. No other item can have its
// name: the sequence numbers of a parent only grow.
func (q *queue) putBack(ctx context.Context, item string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putBackTime)
	defer cancel()
	return q.b.plain(ctx, claim.Op{Kind: claim.OpCreate, Path: item, Data: data, Persistent: true}).Err
}
