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
	Rate     int // changes due each second; 0: a closed loop
}

// Check returns an error if a field is out of range.
func (f Fanout) Check() error {
	for _, err := range []error{between("watchers", f.Watchers, 1, connectionsMax), between("size", f.Size, 0, sizeMax), between("rate", f.Rate, 0, rateMax), f.check()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Run changes the znode until the time is over. In the Report, an operation is a delivered
// event, and its latency is the time from the start of the change until a watcher has the
// event. Without a rate, Elapsed is the time in which events were delivered, without the time in which the
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
		watchers := clients[1:]
		watches := make([]*zk.Watch, len(watchers))
		r, err := f.Deliver(ctx, "fanout", len(watchers), Delivery{
			Rate: f.Rate,
			Prepare: func() error {
				return inFlight(len(watchers), len(watchers), func(i int) (err error) {
					_, _, watches[i], err = watchers[i].GetW(ctx, path)
					return err
				})
			},
			Change: func() error {
				_, err := clients[0].Set(ctx, path, make([]byte, f.Size), zk.AnyVersion)
				if err != nil {
					closeWatches(watches)
				}
				return err
			},
			Await: func(i int) error {
				_, err := watches[i].Wait(ctx)
				return err
			},
		})
		if err != nil {
			return nil, err
		}
		return []*Report{r}, nil
	})
}

// Delivery is what [Setting.Deliver] repeats.
type Delivery struct {
	Rate    int               // changes due each second; 0: a closed loop
	Prepare func() error      // before each change; nil: nothing
	Change  func() error      // causes an event for each receiver
	Await   func(i int) error // waits for the event of receiver i
}

// Deliver measures how changes reach n receivers, until the time is over. In the Report, an operation
// is a delivered event, and its latency is the time from the start of the change, or from the time at which the
// change was due: a change waits until the last one was delivered everywhere. Without a rate, Elapsed is the time in
// which events were delivered, without that of Prepare; the processor time includes Prepare.
func (s Setting) Deliver(ctx context.Context, kind string, n int, d Delivery) (*Report, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Warmup > 0 {
		if _, err := d.rounds(ctx, n, newPace(d.Rate, s.Warmup, time.Now()), newLatencies()); err != nil {
			return nil, err
		}
	}
	m, took := s.begin(), newLatencies()
	pace := newPace(d.Rate, s.Duration, m.began)
	delivering, err := d.rounds(ctx, n, pace, took)
	if err != nil {
		return nil, err
	}
	r := m.report(kind, took)
	if d.Rate == 0 {
		r.Elapsed = delivering
		return r, nil
	}
	r.Rate, r.TimerLate = d.Rate, pace.lateness()
	r.Unsent = (pace.due - min(pace.taken.Load(), pace.due)) * int64(n)
	r.lasted(s.Duration)
	return r, nil
}

// rounds makes changes, at least one, as long as the pace gives any. It returns for how long events were
// delivered.
func (d Delivery) rounds(ctx context.Context, n int, pace *pace, took *latencies) (delivering time.Duration, err error) {
	for rounds := 0; ; rounds++ {
		if d.Prepare != nil {
			if err := d.Prepare(); err != nil {
				return 0, err
			}
		}
		due, ok := pace.take(ctx)
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if !ok && rounds > 0 {
			return delivering, nil
		}
		begin := time.Now()
		if err := d.round(n, due, took); err != nil {
			return 0, err
		}
		delivering += time.Since(begin)
	}
}

// round makes one change, which was due at a time, and waits for all events.
func (d Delivery) round(n int, due time.Time, took *latencies) error {
	var wg sync.WaitGroup
	errs := make([]error, n+1)
	for i := range n {
		wg.Go(func() {
			if errs[i+1] = d.Await(i); errs[i+1] == nil {
				took.record(time.Since(due))
			}
		})
	}
	errs[0] = d.Change()
	wg.Wait()
	return firstOf(errs...)
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
	Changes     int // how many of the znodes are changed; 0: all
	// Filled says that [Fill] has created the root and a znode for each watch. Run then creates and deletes
	// neither.
	Filled bool
	// Between, if it is set, runs when all watches are set, before the first change.
	Between func(context.Context) error
}

// Check returns an error if a field is out of range.
func (w Watches) Check() error {
	for _, err := range []error{
		between("watches", w.Watches, 1, keysMax),
		between("connections", w.Connections, 1, connectionsMax),
		between("size", w.Size, 0, sizeMax),
		between("changes", w.Changes, 0, w.Watches),
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
	if w.Filled {
		return w.connect(ctx, w.Connections, func(clients []*zk.Client) ([]*Report, error) { return w.drive(ctx, clients) })
	}
	return w.use(ctx, w.Connections, func(clients []*zk.Client) ([]*Report, error) {
		if err := makeKeys(ctx, clients[0], w.Root, w.Watches, w.Size); err != nil {
			return nil, err
		}
		return w.drive(ctx, clients)
	})
}

// drive sets the watches and changes znodes that exist.
func (w Watches) drive(ctx context.Context, clients []*zk.Client) ([]*Report, error) {
	watches := make([]*zk.Watch, w.Watches)
	set, err := w.each("watches: set", w.Watches, func(i int) (err error) {
		_, _, watches[i], err = clients[i%len(clients)].GetW(ctx, key(w.Root, i))
		return err
	})
	if err != nil {
		return nil, err
	}
	if w.Between != nil {
		if err := w.Between(ctx); err != nil {
			return nil, err
		}
	}
	data, changes := make([]byte, w.Size), w.Changes
	if changes == 0 {
		changes = w.Watches
	}
	delivered, err := w.each("watches: change and event", changes, func(i int) error {
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
}

// each calls f for each of the first n watches and reports how long the calls took.
func (w Watches) each(kind string, n int, f func(i int) error) (*Report, error) {
	m, took := w.begin(), newLatencies()
	err := inFlight(n, prepareBatch, func(i int) error {
		begin := time.Now()
		err := f(i)
		took.record(time.Since(begin))
		return err
	})
	return m.report(kind, took), err
}
