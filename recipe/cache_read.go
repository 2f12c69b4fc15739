package recipe

import (
	"context"
	"errors"
	"sync"

	"bellwether/wire"
	"bellwether/zk"
)

// readersMax is how many single reads are under way at once.
const readersMax = 32

// ask is one znode to read, and what was read.
type ask struct {
	path  string
	chore chore

	gone  bool // or not to be read by this client
	data  []byte
	stat  wire.Stat
	names []string
}

// cacheReader reads znodes: many in one request where a persistent watch
// tells of their changes, else each with one-shot watches.
type cacheReader struct {
	c       *zk.Client
	root    string
	oneShot bool
}

func (r cacheReader) read(ctx context.Context, asks []ask) error {
	if r.oneShot {
		return r.readEach(ctx, asks, r.readWatched)
	}
	err := r.readTogether(ctx, asks)
	var large *zk.TooLargeError
	if errors.As(err, &large) {
		return r.readEach(ctx, asks, r.readPlain)
	}
	return err
}

// readTogether is one request.
func (r cacheReader) readTogether(ctx context.Context, asks []ask) error {
	var ops []zk.Op
	for _, a := range asks {
		if a.chore&readData != 0 {
			ops = append(ops, zk.GetOp(a.path))
		}
		if a.chore&readChildren != 0 {
			ops = append(ops, zk.ChildrenOp(a.path))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	res, err := r.c.MultiRead(ctx, ops...)
	if err != nil {
		return err
	}
	for i := range asks {
		a := &asks[i]
		if a.chore&readData != 0 {
			a.data, a.stat = res[0].Data, res[0].Stat
			err = a.outcome(res[0].Err)
			res = res[1:]
		}
		if a.chore&readChildren != 0 {
			a.names = res[0].Children
			err = errors.Join(err, a.outcome(res[0].Err))
			res = res[1:]
		}
		if err != nil {
			return &zk.OpError{Op: "multiRead", Path: a.path, Err: err}
		}
	}
	return nil
}

// outcome is nil where the znode is merely gone, or hidden from this client.
func (a *ask) outcome(err error) error {
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		a.gone = true
		return nil
	}
	return err
}

// readEach reads each znode by itself, some at a time.
func (r cacheReader) readEach(ctx context.Context, asks []ask, one func(context.Context, *ask) error) error {
	errs := make([]error, len(asks))
	next := make(chan int) // unbuffered: readers take what they can do
	var readers sync.WaitGroup
	for range min(readersMax, len(asks)) {
		readers.Go(func() {
			for i := range next {
				errs[i] = one(ctx, &asks[i])
			}
		})
	}
	for i := range asks {
		next <- i
	}
	close(next)
	readers.Wait()
	return errors.Join(errs...)
}

func (r cacheReader) readPlain(ctx context.Context, a *ask) (err error) {
	if a.chore&readData != 0 {
		a.data, a.stat, err = r.c.Get(ctx, a.path)
	}
	if err == nil && a.chore&readChildren != 0 {
		a.names, _, err = r.c.Children(ctx, a.path)
	}
	return a.outcome(err)
}

// readWatched leaves watches behind, also for the return of a root that is gone.
func (r cacheReader) readWatched(ctx context.Context, a *ask) (err error) {
	if a.chore&readData != 0 {
		a.data, a.stat, _, err = r.c.GetW(ctx, a.path)
	}
	if err == nil && a.chore&readChildren != 0 {
		a.names, _, _, err = r.c.ChildrenW(ctx, a.path)
	}
	if a.path == r.root && errors.Is(err, zk.ErrNoNode) {
		var back bool
		if _, back, _, err = r.c.ExistsW(ctx, a.path); err == nil && back {
			return r.readWatched(ctx, a)
		}
		a.gone = true
	}
	return a.outcome(err)
}
