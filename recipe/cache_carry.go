package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// readersMax is how many single reads are under way at once.
const readersMax = 32

// carryOut carries out a request and steps its answer, behind whatever the
// client has got to know before it.
func (k *Cache) carryOut(ctx context.Context, req claim.Request) {
	res := k.results(ctx, req)
	if isLost(res) {
		k.nextStatus() // which says so too
	}
	for k.hear(false) {
	}
	k.step(claim.Reply{N: req.N, Results: res})
}

func isLost(res []claim.Result) bool {
	return slices.ContainsFunc(res, func(r claim.Result) bool { return errors.Is(r.Err, wire.ErrConnectionLoss) })
}

// results carries out operations within their session, as what another's server
// shows may be older than what is held.
func (k *Cache) results(ctx context.Context, req claim.Request) (res []claim.Result) {
	ctx = zk.InSession(ctx, req.Session)
	b, ops := bidder{c: k.c}, req.Ops
	if counts(ops, isPlain) == len(ops) {
		return together(ctx, &b, ops)
	}
	for n := 0; len(ops) > 0 && !isLost(res); ops = ops[n:] {
		if n = counts(ops, isPlain); n > 0 {
			res = slices.Concat(res, together(ctx, &b, ops[:n]))
		} else if n = counts(ops, isSingle); n > 0 {
			res = append(res, each(ctx, &b, ops[:n])...)
		} else {
			n = 1
			res = append(res, k.carryOne(ctx, &b, ops[0]))
		}
	}
	for range ops {
		res = append(res, claim.Result{Err: wire.ErrConnectionLoss})
	}
	return res
}

// counts is how many operations of a kind come first.
func counts(ops []claim.Op, is func(claim.Op) bool) int {
	for i, op := range ops {
		if !is(op) {
			return i
		}
	}
	return len(ops)
}

// isPlain: it can be read in one request with others.
func isPlain(op claim.Op) bool {
	return !op.Alone && (op.Kind == claim.OpGet || op.Kind == claim.OpList)
}

// isSingle: it is read in a request of its own.
func isSingle(op claim.Op) bool {
	return op.Alone || op.Kind == claim.OpWatch || op.Kind == claim.OpWatchAll
}

// together is one request.
func together(ctx context.Context, b *bidder, ops []claim.Op) []claim.Result {
	res := b.readAll(ctx, ops)
	var large *zk.TooLargeError
	if errors.As(res[0].Err, &large) { // the others have it too
		for i := range res {
			res[i].Err = fmt.Errorf("%w: %w", claim.ErrTooLarge, large)
		}
	}
	return res
}

// each reads each znode by itself, some at a time. The stream hears the watches
// that are set.
func each(ctx context.Context, b *bidder, ops []claim.Op) []claim.Result {
	res := make([]claim.Result, len(ops))
	next := make(chan int) // unbuffered: readers take what they can do
	var readers sync.WaitGroup
	for range min(readersMax, len(ops)) {
		readers.Go(func() {
			for i := range next {
				res[i], _ = b.carryOne(ctx, ops[i])
			}
		})
	}
	for i := range ops {
		next <- i
	}
	close(next)
	readers.Wait()
	return res
}

// carryOne carries out what is no read.
func (k *Cache) carryOne(ctx context.Context, b *bidder, op claim.Op) (r claim.Result) {
	var err error
	switch op.Kind {
	case claim.OpWatchTree:
		k.stream, err = k.c.AddWatch(ctx, op.Path, wire.WatchPersistentRecursive)
	case claim.OpListen:
		k.stream, err = k.c.Listen(op.Path)
	case claim.OpUnwatch:
		err = k.closeStream(ctx)
	case claim.OpSince:
		r.Told, err = k.since(ctx, op)
	default:
		r, _ = b.carryOne(ctx, op)
		return r
	}
	r.Err = sorted(ctx, err)
	return r
}

// since asks what has changed. Where the stream is over, it will tell that.
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

// closeStream gives the watch up.
func (k *Cache) closeStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
	defer cancel()
	if k.stream != nil {
		_ = k.stream.Close(ctx) // the server forgets it with the connection at the latest
	}
	k.stream = nil
	return nil
}
