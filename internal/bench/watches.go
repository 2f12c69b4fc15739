package bench

import (
	"context"
	"sync"
	"time"

	"bellwether/zk"
)

// Fanout measures how one change reaches many watchers: all of them watch one znode, which
// is changed again and again.
type Fanout struct {
	Setting
	Watchers int // each has its own session
	Size     int // bytes of data of the znode
}

// Check returns an error if a field is out of range.
func (f Fanout) Check() error {
	for _, err := range []error{between("watchers", f.Watchers, 1, connectionsMax), between("size", f.Size, 0, sizeMax), f.check()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Run changes the znode until the time is over. In the Report, an operation is a delivered
// event, and its latency is the time from the start of the change until a watcher has the
// event. Elapsed is the time in which events were delivered, without the time in which the
// watchers set their watches again; the processor time includes that.
func (f Fanout) Run(ctx context.Context) ([]*Report, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f.use(ctx, f.Watchers+1, func(clients []*zk.Client) ([]*Report, error) {
		path := f.Root + "/watched"
		if _, _, err := clients[0].Create(ctx, path, nil); err != nil {
			return nil, err
		}
		for warm := time.Now(); time.Since(warm) < f.Warmup; {
			if _, err := f.round(ctx, clients, path, newLatencies()); err != nil {
				return nil, err
			}
		}
		m, took, delivering := f.begin(), newLatencies(), time.Duration(0)
		for rounds := 0; rounds == 0 || time.Since(m.began) < f.Duration; rounds++ {
			d, err := f.round(ctx, clients, path, took)
			if err != nil {
				return nil, err
			}
			delivering += d
		}
		r := m.report("fanout", took)
		r.Elapsed = delivering
		return []*Report{r}, nil
	})
}

// round sets a watch for each watcher, changes the znode, and waits for all events. It
// returns how long it took from the change to the last event.
func (f Fanout) round(ctx context.Context, clients []*zk.Client, path string, took *latencies) (time.Duration, error) {
	watchers := clients[1:]
	watches := make([]*zk.Watch, len(watchers))
	err := inFlight(len(watchers), len(watchers), func(i int) (err error) {
		_, _, watches[i], err = watchers[i].GetW(ctx, path)
		return err
	})
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(watches)+1)
	begin := time.Now()
	for i, w := range watches {
		wg.Go(func() {
			if _, errs[i] = w.Wait(ctx); errs[i] == nil {
				took.record(time.Since(begin))
			}
		})
	}
	_, errs[len(watches)] = clients[0].Set(ctx, path, make([]byte, f.Size), zk.AnyVersion)
	if err := errs[len(watches)]; err != nil {
		closeWatches(watches)
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// closeWatches ends watches that will have no event.
func closeWatches(watches []*zk.Watch) {
	gone, cancel := context.WithCancel(context.Background())
	cancel() // the client ends the watches at once; the server's end with the session
	_ = zk.RemoveWatches(gone, watches...)
}

// Watches measures many watches on as many znodes: how fast they are set, and how fast the
// events arrive when every znode is changed once.
type Watches struct {
	Setting
	Watches     int // watches, each on its own znode
	Connections int // sessions that share the watches
	Size        int // bytes of data per znode
}

// Check returns an error if a field is out of range.
func (w Watches) Check() error {
	for _, err := range []error{
		between("watches", w.Watches, 1, keysMax),
		between("connections", w.Connections, 1, connectionsMax),
		between("size", w.Size, 0, sizeMax),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Run sets the watches and changes the znodes. It uses neither Warmup nor Duration. The second
// report's latencies are times from the start of a change until the event has arrived.
func (w Watches) Run(ctx context.Context) ([]*Report, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	w.Warmup = 0
	return w.use(ctx, w.Connections, func(clients []*zk.Client) ([]*Report, error) {
		if err := makeKeys(ctx, clients[0], w.Root, w.Watches, w.Size); err != nil {
			return nil, err
		}
		watches := make([]*zk.Watch, w.Watches)
		set, err := w.each("watches: set", func(i int) (err error) {
			_, _, watches[i], err = clients[i%len(clients)].GetW(ctx, key(w.Root, i))
			return err
		})
		if err != nil {
			return nil, err
		}
		data := make([]byte, w.Size)
		delivered, err := w.each("watches: change and event", func(i int) error {
			// The next session makes the change, so that it is not the watcher itself if there are several.
			if _, err := clients[(i+1)%len(clients)].Set(ctx, key(w.Root, i), data, zk.AnyVersion); err != nil {
				return err
			}
			_, err := watches[i].Wait(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		return []*Report{set, delivered}, nil
	})
}

// each calls f for each watch and reports how long the calls took.
func (w Watches) each(kind string, f func(i int) error) (*Report, error) {
	m, took := w.begin(), newLatencies()
	err := inFlight(w.Watches, prepareBatch, func(i int) error {
		begin := time.Now()
		err := f(i)
		took.record(time.Since(begin))
		return err
	})
	return m.report(kind, took), err
}
