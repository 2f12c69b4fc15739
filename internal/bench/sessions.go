package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bellwether/zk"
)

// Sessions measures many sessions: how fast they are opened, what they cost while they are
// idle for Duration, and how long it takes until all of them have expired after their clients
// have ended without closing them.
type Sessions struct {
	Setting
	Sessions int
	Rate     int // sessions whose opening is due each second; 0: a closed loop
}

// Check returns an error if a field is out of range.
func (s Sessions) Check() error {
	return firstOf(between("sessions", s.Sessions, 1, connectionsMax), between("rate", s.Rate, 0, rateMax), s.check())
}

// Run measures the three phases. The latencies of the last report are times from the end of
// the clients until a session's ephemeral znode is gone; the servers wait for the session
// timeout first.
func (s Sessions) Run(ctx context.Context) ([]*Report, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := checkFiles(s.Sessions + 1); err != nil {
		return nil, err
	}
	s.Warmup = 0
	return s.use(ctx, 1, func(observer []*zk.Client) (_ []*Report, err error) {
		if err := makeShards(ctx, observer[0], s.Root, s.Sessions); err != nil {
			return nil, err
		}
		opened, clients, err := s.open(ctx)
		defer func() { s.closeAll(clients) }()
		if err != nil {
			return nil, err
		}
		idle, err := s.idle(ctx)
		if err != nil {
			return nil, err
		}
		expired, err := s.expire(ctx, observer[0], clients)
		if err != nil {
			return nil, err
		}
		return []*Report{opened, idle, expired}, nil
	})
}

// open opens the sessions. A latency is the time until one is open, with its connection. With a rate it
// counts from the time at which the opening was due, also if too many others were in progress then.
func (s Sessions) open(ctx context.Context) (*Report, []*zk.Client, error) {
	m, took := s.begin(), newLatencies()
	pace := newPace(s.Rate, time.Hour, m.began).limit(s.Sessions)
	clients, err := connectAll(ctx, func(ctx context.Context) (*zk.Client, error) {
		due, _ := pace.take(ctx) // there is one for each session
		c, err := s.Connect(ctx)
		took.record(time.Since(due))
		return c, err
	}, s.Sessions)
	r := m.report("sessions: open", took)
	r.Rate, r.TimerLate = s.Rate, pace.lateness()
	r.lasted(time.Duration(s.Sessions) * pace.gap)
	return r, clients, err
}

// idle measures the processor time while the sessions only send pings.
func (s Sessions) idle(ctx context.Context) (*Report, error) {
	m := s.begin()
	wait(ctx, s.Duration)
	elapsed := time.Since(m.began)
	r := &Report{Kind: "sessions: idle", Elapsed: elapsed}
	m.charge(r)
	r.Figures = []Figure{{"sessions", float64(s.Sessions)}, {"cores used by the client", cores(r.ClientCPU, elapsed)}}
	if r.ServerKnown {
		r.Figures = append(r.Figures, Figure{"cores used by the servers", cores(r.ServerCPU, elapsed)})
	}
	r.ClientCPU, r.ServerKnown = 0, false // there is no operation to which they belong
	return r, ctx.Err()
}

// cores returns a processor time as a number of cores, with four digits after the point.
func cores(used, elapsed time.Duration) float64 {
	return float64(used*10_000/max(elapsed, 1)) / 10_000
}

// expire gives each session an ephemeral znode, ends all clients, and waits until the
// observer knows that all these znodes are gone.
func (s Sessions) expire(ctx context.Context, observer *zk.Client, clients []*zk.Client) (*Report, error) {
	watches := make([]*zk.Watch, len(clients))
	err := inFlight(len(clients), prepareBatch, func(i int) (err error) {
		if _, _, err = clients[i].Create(ctx, key(s.Root, i), nil, zk.Ephemeral); err != nil {
			return err
		}
		var found bool
		if _, found, watches[i], err = observer.ExistsW(ctx, key(s.Root, i)); err == nil && !found {
			return errors.New("a session expired before the measurement: use a longer --session-timeout")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	timeout := clients[0].State().Timeout
	m, took := s.begin(), newLatencies()
	for i, c := range clients {
		c.Detach()
		clients[i] = nil
	}
	detached := time.Now()
	if err := s.awaitExpiry(ctx, watches, timeout, took, detached); err != nil {
		return nil, err
	}
	r := m.report("sessions: expiry", took)
	r.Elapsed = time.Since(detached)
	r.Figures = []Figure{{"ms of session timeout", float64(timeout.Milliseconds())}, {"ms from the end of the timeout to the last event", float64((r.Elapsed - timeout).Milliseconds())}}
	return r, nil
}

// expiryFactor and expiryReserve bound how long the expiry of all sessions may take.
const (
	expiryFactor  = 5 // session timeouts
	expiryReserve = time.Minute
)

func (s Sessions) awaitExpiry(ctx context.Context, watches []*zk.Watch, timeout time.Duration, took *latencies, detached time.Time) error {
	limit := expiryFactor*timeout + expiryReserve
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not all sessions with a timeout of %v have expired after %v", timeout, limit))
	defer cancel()
	errs := make([]error, len(watches))
	var wg sync.WaitGroup
	for i, w := range watches {
		wg.Go(func() {
			if _, errs[i] = w.Wait(ctx); errs[i] == nil {
				took.record(time.Since(detached))
			} else if ctx.Err() != nil {
				errs[i] = context.Cause(ctx)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
