package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/wire"
	"bellwether/zk"
)

// watchesSlack is how many records of one-shot watches that have fired a Cache keeps even if it has few znodes.
const watchesSlack = 1024

// readersMax limits the single reads that are under way at once.
const readersMax = 32

// carryOut carries out a request, on a goroutine other than the loop's, and only within
// the session that the request names. The reason: the server of another session may be
// behind the state that the Cache has shown.
func (k *Cache) carryOut(ctx context.Context, req claim.Request) answer {
	ctx = zk.InSession(ctx, req.Session)
	return answer{Reply: claim.Reply{N: req.N, Results: inOrder(req.Ops, func(ops []claim.Op) []claim.Result {
		if n := claim.Count(ops, claim.Op.Joins); n > 0 {
			return k.together(ctx, ops[:n])
		} else if n = claim.Count(ops, isSingle); n > 0 {
			return k.each(ctx, ops[:n])
		}
		return []claim.Result{k.carryTree(ctx, ops[0])}
	})}}
}

// isSingle reports whether an operation is read in a request of its own.
func isSingle(op claim.Op) bool {
	return op.Alone || op.Kind == claim.OpWatch || op.Kind == claim.OpWatchAll
}

// together carries out operations in one request.
func (k *Cache) together(ctx context.Context, ops []claim.Op) []claim.Result {
	res := k.readAll(ctx, ops)
	var large *zk.TooLargeError
	if errors.As(res[0].Err, &large) { // all results carry the same error
		for i := range res {
			res[i].Err = fmt.Errorf("%w: %w", cache.ErrTooLarge, large)
		}
	}
	return res
}

// each reads each znode in a request of its own, up to readersMax at a time. The watches that it sets
// report their events to the stream.
func (k *Cache) each(ctx context.Context, ops []claim.Op) []claim.Result {
	res, watches := make([]claim.Result, len(ops)), make([]*zk.Watch, len(ops))
	next := make(chan int) // unbuffered: each reader takes the next index when it is free
	var readers sync.WaitGroup
	for range min(readersMax, len(ops)) {
		readers.Go(func() {
			for i := range next {
				res[i], watches[i] = k.carryOne(ctx, ops[i])
			}
		})
	}
	for i := range ops {
		next <- i
	}
	close(next)
	readers.Wait()
	for i, w := range watches {
		k.keepWatch(ops[i], w)
	}
	return res
}

// watchAt identifies a one-shot watch by its path and kind.
type watchAt struct {
	path     string
	children bool
}

// keepWatch records a one-shot watch, so that closeStream can remove it. When there are many
// records, keepWatch deletes those of watches that have fired.
func (k *Cache) keepWatch(op claim.Op, w *zk.Watch) {
	if w == nil {
		return
	}
	if len(k.oneShot) > 4*k.Len()+watchesSlack {
		maps.DeleteFunc(k.oneShot, func(_ watchAt, w *zk.Watch) bool { return isDone(w) })
	}
	at := watchAt{op.Path, op.Kind == claim.OpWatchAll}
	if old := k.oneShot[at]; old != nil && !isDone(old) {
		unwatch(context.Background(), k.c, old) // removes it in the client only: on the server the new watch has taken its place
	}
	k.oneShot[at] = w
}

func isDone(w *zk.Watch) bool {
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

// carryTree carries out an operation on the stream, or another operation that is not a plain read.
func (k *Cache) carryTree(ctx context.Context, op claim.Op) (r claim.Result) {
	var err error
	switch op.Kind {
	case claim.OpWatchTree:
		k.stream, err = k.c.AddWatch(ctx, op.Path, wire.WatchPersistentRecursive)
	case claim.OpListen:
		k.stream, err = k.c.Listen(op.Path)
	case claim.OpUnwatch:
		k.closeStream(ctx)
	case claim.OpSince:
		r.Changes, err = k.since(ctx, op)
	default:
		r, w := k.carryOne(ctx, op)
		k.keepWatch(op, w)
		return r
	}
	r.Err = translated(ctx, err)
	return r
}

// since asks the server what has changed. If the stream has ended, the stream reports that to the loop.
func (k *Cache) since(ctx context.Context, op claim.Op) ([]claim.TreeEvent, error) {
	if k.stream == nil {
		return nil, wire.ErrConnectionLoss
	}
	events, err := k.stream.Since(ctx, op.Since.Zxid, op.Since.Paths, op.Since.Parents)
	var full *zk.OverflowError
	if errors.Is(err, zk.ErrUnsupported) || errors.As(err, &full) {
		err = wire.ErrConnectionLoss
	}
	told := make([]claim.TreeEvent, len(events))
	for i, e := range events {
		told[i] = claim.TreeEvent(e)
	}
	return told, err
}

// closeStream removes the persistent watch, and all one-shot watches that replace it on old servers.
func (k *Cache) closeStream(ctx context.Context) {
	ctx, cancel := whileConnected(ctx, k.c, unwatchTime)
	defer cancel()
	if k.stream != nil {
		_ = k.stream.Close(ctx) // if the request fails, the server drops the watch when the connection ends
	}
	k.stream = nil
	_ = zk.RemoveWatches(ctx, slices.Collect(maps.Values(k.oneShot))...)
	clear(k.oneShot)
}
