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

// watchesSlack is how many one-shot watches that have fired are kept even if the Cache has few znodes.
const watchesSlack = 1024

// readersMax limits the single reads that are under way at once.
const readersMax = 32

// carryOut carries out a request, on a goroutine other than the loop's.
func (k *Cache) carryOut(ctx context.Context, req claim.Request) answer {
	return answer{Reply: claim.Reply{N: req.N, Results: k.results(ctx, req)}}
}

func isLost(res []claim.Result) bool {
	return slices.ContainsFunc(res, func(r claim.Result) bool { return errors.Is(r.Err, wire.ErrConnectionLoss) })
}

// results carries out operations within the session of the request, because the server of another
// session may be behind the state that the Cache has shown.
func (k *Cache) results(ctx context.Context, req claim.Request) (res []claim.Result) {
	ctx = zk.InSession(ctx, req.Session)
	ops := req.Ops
	if counts(ops, isPlain) == len(ops) {
		return k.together(ctx, ops)
	}
	for n := 0; len(ops) > 0 && !isLost(res); ops = ops[n:] {
		if n = counts(ops, isPlain); n > 0 {
			res = slices.Concat(res, k.together(ctx, ops[:n]))
		} else if n = counts(ops, isSingle); n > 0 {
			res = append(res, k.each(ctx, ops[:n])...)
		} else {
			n = 1
			res = append(res, k.carryTree(ctx, ops[0]))
		}
	}
	for range ops {
		res = append(res, claim.Result{Err: wire.ErrConnectionLoss})
	}
	return res
}

// counts returns how many operations at the start of ops satisfy is.
func counts(ops []claim.Op, is func(claim.Op) bool) int {
	for i, op := range ops {
		if !is(op) {
			return i
		}
	}
	return len(ops)
}

// isPlain reports whether an operation can be read in one request with others.
func isPlain(op claim.Op) bool {
	return !op.Alone && (op.Kind == claim.OpGet || op.Kind == claim.OpList)
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
		k.keep(ops[i], w)
	}
	return res
}

// watchAt identifies a one-shot watch by its path and kind.
type watchAt struct {
	path     string
	children bool
}

// keep records a one-shot watch, so that closeStream can remove it. When there are many, keep
// deletes the records of watches that have fired.
func (k *Cache) keep(op claim.Op, w *zk.Watch) {
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
		r.Told, err = k.since(ctx, op)
	default:
		r, w := k.carryOne(ctx, op)
		k.keep(op, w)
		return r
	}
	r.Err = sorted(ctx, err)
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
	ctx, cancel := whileAnswered(ctx, k.c, unwatchTime)
	defer cancel()
	if k.stream != nil {
		_ = k.stream.Close(ctx) // if the request fails, the server drops the watch when the connection ends
	}
	k.stream = nil
	_ = zk.RemoveWatches(ctx, slices.Collect(maps.Values(k.oneShot))...)
	clear(k.oneShot)
}
