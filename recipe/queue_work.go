package recipe

import (
	"context"
	"errors"
	"path"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/queues"
	"bellwether/zk"
)

// WorkQueue is a queue whose items stay until they are acknowledged. If a consumer
// fails, the items that it has taken are delivered again, from their old place in the queue. Its znodes are
// those of kazoo's LockingQueue: the items are below path/entries, and for each item that a consumer works on
// there is an ephemeral below path/taken.
type WorkQueue struct{ queue }

// NewWorkQueue prepares a work queue at path.
func NewWorkQueue(c *zk.Client, path string, o *QueueOptions) (*WorkQueue, error) {
	q, err := newQueue(c, path, claim.Join(path, "entries"), o)
	q.root, q.claims, q.delayed = path, claim.Join(path, "taken"), claim.Join(path, "delayed")
	return &WorkQueue{q}, err
}

// PutAt is PutPriority for an item that is not delivered before the time due. The clock of the ensemble's leader
// decides when that is; the clocks of the consumers do not matter. Until then the item is below path/delayed, where
// consumers of other libraries do not see it. When it is due, a waiting or arriving consumer of this package moves it
// to the items. Its age then counts from that moment.
func (q *WorkQueue) PutAt(ctx context.Context, data []byte, priority int, due time.Time) error {
	return q.put(ctx, data, priority, due)
}

// Len returns the number of items, including those that are being worked on or are not
// due yet.
func (q *WorkQueue) Len(ctx context.Context) (int, error) {
	n, err := q.queue.Len(ctx)
	if err != nil {
		return n, err
	}
	names, _, err := q.b.c.Children(ctx, q.delayed)
	for _, name := range names {
		if queues.IsDelayed(name) {
			n++
		}
	}
	return n, ignoreNoNode(err)
}

// Item is an item of a WorkQueue that a consumer has taken. It belongs to the consumer
// until Context ends. Context ends when the session in which the item was taken ends,
// with Release, and when Ack has removed the item. If somebody deletes the claim of the item,
// only Ack notices that.
type Item struct {
	Data []byte
	// Deliveries is how often this package has delivered the item, including this delivery. It is the version
	// of the item's znode: each delivery writes the same data to the znode again. 0 means that the number is not
	// known, because the consumer is not permitted to write the item or the item is larger than 256 KiB.
	Deliveries int
	*stay
	q     *WorkQueue
	item  string // path
	claim string // path of the ephemeral that claims the item
}

// ErrTaken says that the item no longer belongs to this consumer: its session has
// expired or somebody has deleted its claim. Another consumer may have taken the item.
var ErrTaken = queues.ErrTaken

// Take waits for an item and claims it. It survives lost replies, and sessions that
// expire before it returns.
func (q *WorkQueue) Take(ctx context.Context) (*Item, error) {
	m, err := q.take(ctx)
	if err != nil {
		return nil, err
	}
	item, data, session := m.Taken()
	return &Item{Data: data, Deliveries: m.Deliveries(), stay: q.b.newStay(ctx, session), q: q, item: item, claim: claim.Join(q.claims, path.Base(item))}, nil
}

// Session returns the session in which the item was taken.
func (w *Item) Session() zk.SessionID { return w.d.session }

// Path returns the path of the item. Under OwnItems no other item ever has the same
// path.
func (w *Item) Path() string { return w.item }

// Ack removes the item, and carries out ops in the same transaction. If the item no longer belongs to this
// consumer, or one of ops fails, nothing is carried out; in the first case the error is ErrTaken. If somebody has
// deleted the item, the error is zk.ErrNoNode, and Ack gives up the claim. After a zk.UnknownOutcomeError the
// transaction may have been carried out. After that error, and after the error of a context that ended, Ack may
// be called again.
func (w *Item) Ack(ctx context.Context, ops ...zk.Op) error {
	err := w.endClaim(ctx, "ack", false, ops)
	if err == nil || errors.Is(err, ErrTaken) || errors.Is(err, zk.ErrNoNode) {
		w.leave()
	}
	return err
}

// Release gives the item back, so that any consumer can take it. The work on the item must
// have ended before the call. If the context has ended, even before the call, Release returns its error
// and continues in the background until the item is given back or the session
// ends.
func (w *Item) Release(ctx context.Context) error {
	w.leave()
	done := make(chan error, 1) // buffered, because the caller may have stopped waiting
	go func() { done <- w.endClaim(context.WithoutCancel(ctx), "release", true, nil) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Guard returns an operation that makes a Multi fail unless the item is still claimed. The Multi must be
// sent in the session in which the item was taken.
func (w *Item) Guard() zk.Op { return zk.CheckOp(w.claim, zk.AnyVersion) }

// endClaim ends the claim by Ack or Release. It cannot end the claim of another consumer: the claim ends with
// its session, and endClaim sends its requests only in that session.
func (w *Item) endClaim(ctx context.Context, op string, release bool, more []zk.Op) error {
	b := w.q.b
	b.more = more
	m := queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: w.item, Claim: w.claim, Session: w.d.session, Release: release, More: len(more) > 0})
	return b.perform(ctx, op, w.item, m)
}
