package recipe

import (
	"context"

	"bellwether/zk"
)

// Queue hands each item to one consumer, the most urgent first and of those
// the oldest. What a consumer has taken is gone: one that dies with it takes
// it along. See [WorkQueue] for items that come back.
type Queue struct{ queue }

// NewQueue prepares a queue whose items are the children of path. Both kinds
// of ends are made by it, in any number. Consumers wait in a line of their
// own, beside it: path.line.
func NewQueue(c *zk.Client, path string, o *QueueOptions) (*Queue, error) {
	q, err := newQueue(c, path, path, o)
	return &Queue{q}, err
}

// Take waits for an item and takes it. It survives lost replies, and sessions
// that expire while it waits. An error that is a zk.LostError leaves open
// whether an item was taken, which is then gone.
func (q *Queue) Take(ctx context.Context) ([]byte, error) {
	m, err := q.take(ctx, "")
	if err != nil {
		return nil, err
	}
	_, data, _ := m.Taken()
	return data, nil
}
