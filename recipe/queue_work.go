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
// fails, the items that it has taken come back at their old place. Its znodes are those
// of kazoo's LockingQueue: path/entries, and for each item that is being worked on an
// ephemeral in path/taken.
type WorkQueue struct{ queue }

// NewWorkQueue prepares a queue with acknowledgement at path.
func NewWorkQueue(c *zk.Client, path string, o *QueueOptions) (*WorkQueue, error) {
	q, err := newQueue(c, path, claim.Join(path, "entries"), o)
	q.root, q.claims, q.later = path, claim.Join(path, "taken"), claim.Join(path, "delayed")
	return &WorkQueue{q}, err
}

// PutAt is PutPriority for an item that is not delivered before a time, by the clock of the
// ensemble's leader: that of the consumers does not matter. Until then it stands in path/delayed, where consumers of other
// libraries do not see it; a consumer of this package that waits, or comes, moves it to the items. From then on it is
// as old as if it had been put at that moment.
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
	names, _, err := q.b.c.Children(ctx, q.later)
	for _, name := range names {
		if queues.IsLater(name) {
			n++
		}
	}
	return n, absent(err)
}

// Item is an item of a WorkQueue that a consumer has taken. It belongs to the consumer
// while the session lives in which it was taken: until Context ends, which it also does
// with Release, and with Ack when the item is removed. If somebody deletes its claim,
// only Ack notices.
type Item struct {
	Data []byte
	// Deliveries is how often the item was delivered by this package, this time included, whatever
	// became of it: the version of its znode, to which the same data is written each time. 0 means that it is not
	// known: the consumer may not write the item, or it is larger than 256 KiB.
	Deliveries int
	*stay
	q     *WorkQueue
	item  string // path
	claim string // path of the ephemeral
}

// ErrTaken says that the item does not belong to this consumer any more: its session has
// expired or somebody deleted its claim, and another consumer may have taken the item.
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

// Ack removes the item, and carries out ops in the same transaction: all of
// it, or nothing because the item is not this consumer's any more (ErrTaken)
// or one of ops failed. Where somebody has deleted the item it is zk.ErrNoNode, and
// the claim is given up. A zk.UnknownOutcomeError leaves open which; Ack may be called again, as
// it may after the error of a context that ended.
func (w *Item) Ack(ctx context.Context, ops ...zk.Op) error {
	err := w.handIn(ctx, "ack", false, ops)
	if err == nil || errors.Is(err, ErrTaken) || errors.Is(err, zk.ErrNoNode) {
		w.leave()
	}
	return err
}

// Release gives the item back, so that any consumer can take it; the work on it must
// have ended. The error may be the context's, which may have ended before the call:
// Release then continues in the background until the item is given back or the session
// ends.
func (w *Item) Release(ctx context.Context) error {
	w.leave()
	done := make(chan error, 1) // room, for nobody may wait
	go func() { done <- w.handIn(context.WithoutCancel(ctx), "release", true, nil) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Guard returns an operation that fails a Multi of this client's session unless the item
// is still claimed.
func (w *Item) Guard() zk.Op { return zk.CheckOp(w.claim, zk.AnyVersion) }

// handIn ends the claim. Who does not hold it cannot do so: the claim ends with
// its session, and no other session's request is sent here.
func (w *Item) handIn(ctx context.Context, op string, release bool, more []zk.Op) error {
	b := w.q.b
	b.more = more
	m := queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: w.item, Claim: w.claim, Session: w.d.session, Release: release, More: len(more) > 0})
	return b.perform(ctx, op, w.item, m)
}
