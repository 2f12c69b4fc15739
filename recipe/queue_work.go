package recipe

import (
	"context"
	"errors"
	"slices"

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
var ErrTaken = errors.New("the item is not this consumer's any more")

// Take waits for an item and claims it. It survives lost replies, and
// sessions that expire before it returns.
func (q *WorkQueue) Take(ctx context.Context) (*Item, error) {
	var work *Item
	err := q.serve(ctx, func(ctx context.Context, p *spot) error {
		for {
			name, err := q.next(ctx)
			if err != nil {
				return err
			}
			work = &Item{q: q, session: p.session, item: claim.Join(q.items, name), claim: claim.Join(q.taken, name)}
			if work.Data, _, err = q.b.c.Get(ctx, work.item); err == nil {
				err = p.finish(ctx, zk.CheckOp(work.item, zk.AnyVersion), zk.CreateOp(work.claim, []byte(p.bid), q.options(zk.Ephemeral)...))
			}
			if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
			if err := q.b.c.Sync(ctx, q.items); err != nil { // somebody else was faster
				return err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return work, nil
}

// next waits for an item that nobody works on, and returns its name.
func (q *WorkQueue) next(ctx context.Context) (string, error) {
	for {
		if name, err := q.free(ctx); name != "" || err != nil {
			return name, err
		}
		names, _, w, err := q.b.c.ChildrenW(ctx, q.items)
		if err != nil {
			return "", err
		}
		watches := []*zk.Watch{w}
		if len(ordered(names)) > 0 { // one of them may come back
			_, _, back, err := q.b.c.ChildrenW(ctx, q.taken)
			if err != nil {
				unwatch(ctx, w)
				return "", err
			}
			watches = append(watches, back)
		}
		name, err := q.free(ctx) // since then, unseen
		if name != "" || err != nil {
			for _, w := range watches {
				unwatch(ctx, w)
			}
			return name, err
		}
		if err := waitAny(ctx, watches...); err != nil {
			return "", err
		}
	}
}

// free is the next item that nobody works on, if there is one. The claims are
// read first: of an item that is done with both are gone at once.
func (q *WorkQueue) free(ctx context.Context) (string, error) {
	taken, _, err := q.b.c.Children(ctx, q.taken)
	var items []string
	if err == nil {
		items, _, err = q.b.c.Children(ctx, q.items)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return "", q.make(ctx, q.items, q.taken)
	}
	for _, it := range ordered(items) {
		if !slices.Contains(taken, it.name) {
			return it.name, err
		}
	}
	return "", err
}

// Session is the session in which the item was taken.
func (w *Item) Session() wire.SessionID { return w.session }

// Path is where the item stands. Under OwnItems no other ever has the same.
func (w *Item) Path() string { return w.item }

// Ack removes the item, and carries out ops in the same transaction: all of
// it, or nothing because the item is not this consumer's any more (ErrTaken)
// or one of ops failed. A zk.LostError leaves open which; Ack may be called again.
func (w *Item) Ack(ctx context.Context, ops ...zk.Op) error {
	return w.end(ctx, append([]zk.Op{zk.DeleteOp(w.claim, zk.AnyVersion), zk.DeleteOp(w.item, zk.AnyVersion)}, ops...))
}

// Release gives the item back, to be taken by anybody.
func (w *Item) Release(ctx context.Context) error {
	return w.end(ctx, []zk.Op{zk.DeleteOp(w.claim, zk.AnyVersion)})
}

// Guard is an operation that fails a Multi of this client's session unless
// the item is claimed.
func (w *Item) Guard() zk.Op { return zk.CheckOp(w.claim, zk.AnyVersion) }

// end carries out a transaction that begins with the deletion of the claim.
// Who does not hold it cannot do so: the claim ends with its session, and no
// other session's request is sent here.
func (w *Item) end(ctx context.Context, ops []zk.Op) error {
	in := zk.InSession(ctx, w.session)
	for lost := error(nil); ; {
		mine, err := w.mine(in)
		switch {
		case err != nil && lost != nil:
			return lost // and it stays unknown
		case errors.Is(err, zk.ErrSessionExpired):
			return errors.Join(ErrTaken, err)
		case err != nil:
			return err
		case !mine && lost != nil:
			return nil // it was carried out
		case !mine:
			return ErrTaken
		}
		res, err := w.q.b.c.Multi(in, ops...)
		switch {
		case errors.Is(err, zk.ErrConnectionLoss) && ctx.Err() == nil:
			lost = err
			continue
		case errors.Is(err, zk.ErrSessionExpired) && lost != nil:
			return lost
		case errors.Is(err, zk.ErrSessionExpired), len(res) > 0 && errors.Is(res[0].Err, zk.ErrNoNode):
			return errors.Join(ErrTaken, err)
		}
		return err
	}
}

// mine reports whether the claim stands and is this session's.
func (w *Item) mine(ctx context.Context) (mine bool, err error) {
	err = persist(ctx, func() error {
		if err := w.q.b.c.Sync(ctx, w.claim); err != nil {
			return err
		}
		stat, ok, err := w.q.b.c.Exists(ctx, w.claim)
		mine = ok && stat.EphemeralOwner == w.session
		return err
	})
	return mine, err
}
