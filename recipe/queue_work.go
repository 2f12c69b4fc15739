package recipe

import (
	"context"
	"path"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// WorkQueue is a queue whose items stay until they are acknowledged: one that
// a consumer has taken and died with comes back, in its old place. Its znodes
// are those of kazoo's LockingQueue: path/entries, and for each item that is
// being worked on an ephemeral in path/taken.
type WorkQueue struct {
	queue
	taken string
}

// NewWorkQueue prepares a queue with acknowledgement at path.
func NewWorkQueue(c *zk.Client, path string, o *QueueOptions) (*WorkQueue, error) {
	q, err := newQueue(c, path, claim.Join(path, "entries"), o)
	return &WorkQueue{q, claim.Join(path, "taken")}, err
}

// Item is an item that a consumer has taken. It is the consumer's while the
// session lives in which it was taken.
type Item struct {
	Data    []byte
	q       *WorkQueue
	session wire.SessionID
	item    string // path
	claim   string // path of the ephemeral
}

// ErrTaken: the item is not this consumer's any more: its session has expired
// or somebody deleted its claim, and another may have taken it.
var ErrTaken = claim.ErrTaken

// Take waits for an item and claims it. It survives lost replies, and
// sessions that expire before it returns.
func (q *WorkQueue) Take(ctx context.Context) (*Item, error) {
	m, err := q.take(ctx, q.taken)
	if err != nil {
		return nil, err
	}
	item, data, session := m.Taken()
	return &Item{Data: data, q: q, session: session, item: item, claim: claim.Join(q.taken, path.Base(item))}, nil
}

// Session is the session in which the item was taken.
func (w *Item) Session() wire.SessionID { return w.session }

// Path is where the item stands. Under OwnItems no other ever has the same.
func (w *Item) Path() string { return w.item }

// Ack removes the item, and carries out ops in the same transaction: all of
// it, or nothing because the item is not this consumer's any more (ErrTaken)
// or one of ops failed. Where somebody has deleted the item it is zk.ErrNoNode, and
// the claim is given up. A zk.LostError leaves open which; Ack may be called again, as
// it may after the error of a context that ended.
func (w *Item) Ack(ctx context.Context, ops ...zk.Op) error { return w.handIn(ctx, "ack", false, ops) }

// Release gives the item back, to be taken by anybody. The error may be the
// context's, which may have ended before: Release then goes on in the background, until the
// item is given back or the session ends.
func (w *Item) Release(ctx context.Context) error {
	done := make(chan error, 1) // room, for nobody may wait
	go func() { done <- w.handIn(context.WithoutCancel(ctx), "release", true, nil) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Guard is an operation that fails a Multi of this client's session unless
// the item is claimed.
func (w *Item) Guard() zk.Op { return zk.CheckOp(w.claim, zk.AnyVersion) }

// handIn ends the claim. Who does not hold it cannot do so: the claim ends with
// its session, and no other session's request is sent here.
func (w *Item) handIn(ctx context.Context, op string, release bool, more []zk.Op) error {
	b := w.q.b
	b.more = more
	m := claim.NewHandIn(claim.HandInConfig{Item: w.item, Claim: w.claim, Session: w.session, Release: release, More: len(more) > 0})
	return b.perform(ctx, op, w.item, m)
}
