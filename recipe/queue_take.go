package recipe

import (
	"context"
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// Queue gives each item to one consumer: the most urgent item first, and among equally urgent ones the oldest.
// An item that is taken is removed at once, so it is lost if its consumer fails. The items of a
// WorkQueue are delivered again instead.
type Queue struct{ queue }

// NewQueue prepares a queue whose items are the children of path. Any number of producers and
// consumers may use it. Consumers wait in a line of their own, below
// path.line.
func NewQueue(c *zk.Client, path string, o *QueueOptions) (*Queue, error) {
	q, err := newQueue(c, path, path, o)
	return &Queue{q}, err
}

// Take waits for an item and takes it. It survives lost replies, and sessions that
// expire while it waits. If the error is a zk.UnknownOutcomeError, an item may
// have been taken; it is then lost.
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
// its old ACL, and returns deliver's error. If putting the item back failed, or its
// outcome is unknown, the error says so as well. TakeTo puts the item back even if
// ctx has ended. The item is lost if this process ends while
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

// putBack creates the znode of a taken item again, with its old name. No other item can have that
// name, because the sequence numbers of a parent only grow.
func (q *queue) putBack(ctx context.Context, item string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putBackTime)
	defer cancel()
	return q.b.plain(ctx, claim.Op{Kind: claim.OpCreate, Path: item, Data: data, Persistent: true}).Err
}
