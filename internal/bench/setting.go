package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/zk"
)

// Connect opens one session with the servers that are measured. It gives up after a while.
type Connect func(context.Context) (*zk.Client, error)

// Setting holds what every measurement of running servers needs.
type Setting struct {
	Connect  Connect
	Raw      *Raw          // lets loads send their requests without package zk; nil: they use package zk
	Root     string        // a znode that must not exist; Run creates it and deletes it at the end
	Warmup   time.Duration // time before the measurement starts
	Duration time.Duration // time of the measurement
	// Servers are the process ids of the servers if they run on this machine. The reports
	// then show their processor time.
	Servers []int
	// Hurry, once closed, ends the clean-up at once. If it is nil, the clean-up ends when
	// everything is deleted, or when nothing was deleted for cleanUpStall.
	Hurry <-chan struct{}
}

func (s Setting) check() error {
	switch {
	case s.Duration <= 0:
		return fmt.Errorf("duration: %v, want more than 0", s.Duration)
	case s.Warmup < 0:
		return fmt.Errorf("warmup: %v, want 0 or more", s.Warmup)
	}
	return nil
}

// LeftError says that a run could not delete its znodes. Nothing else deletes them.
type LeftError struct {
	Root string // the znode that is left, with znodes below it
	Err  error  // why it could not be deleted
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("%s and the znodes below it may be left: %v", e.Root, e.Err)
}

// Unwrap returns Err.
func (e *LeftError) Unwrap() error { return e.Err }

// use opens n sessions and creates the root, runs f, and then removes both in any case.
func (s Setting) use(ctx context.Context, n int, f func([]*zk.Client) ([]*Report, error)) (r []*Report, err error) {
	return s.connect(ctx, n, func(clients []*zk.Client) ([]*Report, error) { return s.rooted(ctx, clients, f) })
}

// connect opens n sessions, runs f, and then closes them in any case.
func (s Setting) connect(ctx context.Context, n int, f func([]*zk.Client) ([]*Report, error)) ([]*Report, error) {
	if err := checkFiles(n); err != nil {
		return nil, err
	}
	clients, err := connectAll(ctx, s.Connect, n)
	defer func() { s.closeAll(clients) }()
	if err != nil {
		return nil, err
	}
	return f(clients)
}

// rooted creates the root, runs f, and then deletes the root in any case.
func (s Setting) rooted(ctx context.Context, clients []*zk.Client, f func([]*zk.Client) ([]*Report, error)) (r []*Report, err error) {
	if _, _, err := clients[0].Create(ctx, s.Root, nil); isRefused(err) {
		return nil, err
	} else if err != nil { // the znode may exist
		return nil, errors.Join(err, s.cleanUp(clients, err))
	}
	defer func() { err = errors.Join(err, s.cleanUp(clients, err)) }()
	return f(clients)
}

// isRefused reports whether a server has refused to create a znode, so that there is nothing
// to delete.
func isRefused(err error) bool {
	for _, refusal := range []error{zk.ErrNodeExists, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrNotReadOnly, zk.ErrQuotaExceeded, zk.ErrNoChildrenForEphemerals} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// cleanUpStall is how long the clean-up waits while nothing is deleted.
const cleanUpStall = 20 * time.Second

// cleanUp deletes the root after a run that has ended with an error or nil. It does so even if
// the run's context has ended or its sessions are lost.
func (s Setting) cleanUp(clients []*zk.Client, run error) error {
	ctx, cancel := s.unhurried()
	defer cancel(nil)
	c, err := s.connected(ctx, clients, run)
	if err == nil {
		stall := time.AfterFunc(cleanUpStall, func() { cancel(fmt.Errorf("nothing was deleted for %v", cleanUpStall)) })
		defer stall.Stop()
		err = c.DeleteRecursive(ctx, s.Root, zk.DeleteProgress(func(int, int) { stall.Reset(cleanUpStall) }))
	}
	if err == nil {
		return nil
	}
	if why := context.Cause(ctx); why != nil {
		err = why
	}
	return &LeftError{s.Root, err}
}

// unhurried returns a context that ends when Hurry is closed.
func (s Setting) unhurried() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if s.Hurry != nil {
		go func() {
			select {
			case <-s.Hurry:
				cancel(errors.New("interrupted again"))
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// connected returns a client that is connected. If the run has lost a connection, the others may
// be lost without knowing it yet, so it opens another session. That session replaces the first
// one and is closed with the others.
func (s Setting) connected(ctx context.Context, clients []*zk.Client, run error) (*zk.Client, error) {
	if !errors.Is(run, zk.ErrConnectionLoss) {
		for _, c := range clients {
			if c.State().State == zk.Connected {
				return c, nil
			}
		}
	}
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	clients[0].Detach()
	clients[0] = c
	return c, nil
}

// inFlight calls f for 0 … n-1, with at most width calls at the same time. After an error
// it starts no further call. If several calls fail, it returns one of the errors.
func inFlight(n, width int, f func(i int) error) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		next  int
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, first == nil && next <= n
	}
	for range min(n, width) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := f(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// dialWidth is how many connections are opened or closed at the same time.
const dialWidth = 32

// connectAll opens n sessions. The caller must close the result even after an error.
func connectAll(ctx context.Context, connect Connect, n int) ([]*zk.Client, error) {
	clients := make([]*zk.Client, n)
	var opened atomic.Int64
	err := inFlight(n, dialWidth, func(i int) (err error) {
		if clients[i], err = connect(ctx); err == nil {
			opened.Add(1)
		}
		return err
	})
	return clients, explainOpened(ctx, err, int(opened.Load()), n)
}

// explainOpened adds to an error how many of n sessions were opened before it.
func explainOpened(ctx context.Context, err error, opened, n int) error {
	if err == nil || opened == 0 || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%d of %d sessions were opened; a server may limit the connections from one address (maxClientCnxns): %w", opened, n, err)
}

// closeTimeout bounds the time to close all sessions. Sessions that are not closed expire.
const closeTimeout = 10 * time.Second

func (s Setting) closeAll(clients []*zk.Client) {
	ctx, cancel := s.unhurried()
	defer cancel(nil)
	ctx, stop := context.WithTimeout(ctx, closeTimeout)
	defer stop()
	_ = inFlight(len(clients), dialWidth, func(i int) error {
		switch c := clients[i]; {
		case c == nil:
		case c.State().State == zk.Connected:
			c.Close(ctx) // if the close fails, the session expires
		default:
			c.Detach() // the session expires
		}
		return nil
	})
}
