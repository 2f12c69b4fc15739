package recipe

import (
	"context"
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
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
	var data []byte
	err := q.serve(ctx, func(ctx context.Context, t *spot) error {
		for {
			it, err := q.next(ctx)
			if err != nil {
				return err
			}
			path := claim.Join(q.items, it.name)
			if data, _, err = q.b.c.Get(ctx, path); err == nil {
				err = t.finish(ctx, zk.DeleteOp(path, zk.AnyVersion))
			}
			if !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			if err := q.b.c.Sync(ctx, q.items); err != nil { // somebody else was faster
				return err
			}
		}
	})
	return data, err
}

// errNoPlace: somebody deleted the consumer's place in the line.
var errNoPlace = errors.New("the place in the line is gone")

// serve runs take once this consumer is first, and again should its place, or
// the session, have gone before anything was taken.
func (q *queue) serve(ctx context.Context, take func(context.Context, *spot) error) error {
	for {
		t, err := q.takeSpot(ctx)
		if err == nil {
			if err = take(zk.InSession(ctx, t.session), t); err != nil {
				t.end(ctx)
			}
		}
		var lost *zk.LostError
		again := errors.Is(err, errNoPlace) || isPassing(q.b.c, err) && !errors.As(err, &lost)
		if !again || ctx.Err() != nil {
			return err
		}
	}
}

// finish carries out the operations and gives up the place in one transaction. A
// place that is gone after a lost reply tells that it was carried out.
func (t *spot) finish(ctx context.Context, ops ...zk.Op) error {
	for {
		res, err := t.q.b.c.Multi(ctx, append(ops, zk.DeleteOp(t.bid, zk.AnyVersion))...)
		if last := len(ops); len(res) > last && errors.Is(res[last].Err, zk.ErrNoNode) {
			return errNoPlace
		}
		if !errors.Is(err, zk.ErrConnectionLoss) {
			return err
		}
		there, serr := t.q.there(ctx, t.bid)
		if serr != nil {
			return err // lost, and it stays unknown
		}
		if !there {
			return nil
		}
	}
}

// next waits for an item.
func (q *Queue) next(ctx context.Context) (item, error) {
	for watch := false; ; watch = !watch {
		var names []string
		var w *zk.Watch
		var err error
		if watch {
			names, _, w, err = q.b.c.ChildrenW(ctx, q.items)
		} else {
			names, _, err = q.b.c.Children(ctx, q.items)
		}
		if errors.Is(err, wire.ErrNoNode) {
			if err = q.make(ctx, q.items); err != nil {
				return item{}, err
			}
			continue
		}
		if err != nil {
			return item{}, err
		}
		if all := ordered(names); len(all) > 0 {
			if w != nil {
				unwatch(ctx, w)
			}
			return all[0], nil
		}
		if w != nil {
			if err := waitAny(ctx, w); err != nil {
				return item{}, err
			}
		}
	}
}
