package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"bellwether/zk"
)

// Failure is a way in which a leader fails.
type Failure string

// The failures.
const (
	Kill  Failure = "kill"  // SIGKILL
	Stop  Failure = "stop"  // SIGTERM, as when an operator stops the server
	Pause Failure = "pause" // SIGSTOP: the process exists but does nothing
)

// Failures lists all failures.
func Failures() []Failure { return []Failure{Kill, Stop, Pause} }

func (f Failure) signal() syscall.Signal {
	switch f {
	case Kill:
		return syscall.SIGKILL
	case Stop:
		return syscall.SIGTERM
	}
	return syscall.SIGSTOP
}

// Failover measures how long no write succeeds when the leader of an ensemble fails, for a
// client of the failed server and for a client of another server.
type Failover struct {
	Owned
	Servers  int
	Znodes   int // znodes in the tree
	Size     int // bytes of data per znode
	Rounds   int // failures of each kind
	Failures []Failure
}

// Check returns an error if a field is out of range.
func (f Failover) Check() error {
	return firstOf(between("servers", f.Servers, 3, 9), between("znodes", f.Znodes, 1, keysMax), between("size", f.Size, 0, sizeMax),
		between("rounds", f.Rounds, 1, roundsMax), f.checkFailures())
}

// checkFailures returns an error unless there are failures, each of them once.
func (f Failover) checkFailures() error {
	if len(f.Failures) == 0 {
		return errors.New("failures: none, want kill, stop, pause, or several of them")
	}
	for i, name := range f.Failures {
		switch {
		case !slices.Contains(Failures(), name):
			return fmt.Errorf("failures: %q, want kill, stop or pause", name)
		case slices.Contains(f.Failures[:i], name):
			return fmt.Errorf("failures: %s is there twice, want each at most once; --rounds repeats it", name)
		}
	}
	return nil
}

// Run makes leaders fail. In the reports an operation is a failure, and its latency is the
// longest time from one acknowledged write to the next.
func (f Failover) Run(ctx context.Context) ([]*Report, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f.run(ctx, f.Servers, func(e *ensemble) (all []*Report, err error) {
		if err := e.fill(ctx, f.Znodes, f.Size); err != nil {
			return nil, err
		}
		for _, failure := range f.Failures {
			dead, surviving := newLatencies(), newLatencies()
			for range f.Rounds {
				if err := e.fails(ctx, failure, dead, surviving); err != nil {
					return nil, fmt.Errorf("%s of the leader: %w", failure, err)
				}
			}
			all = append(all, reportOf("failover, "+string(failure)+": client of the failed server", 0, dead),
				reportOf("failover, "+string(failure)+": client of another server", 0, surviving))
		}
		return all, nil
	})
}

// fails makes the leader fail once, and brings it back.
func (e *ensemble) fails(ctx context.Context, failure Failure, dead, surviving *latencies) error {
	if err := e.awaitWhole(ctx); err != nil {
		return err
	}
	leader, err := e.leader(ctx)
	if err != nil {
		return err
	}
	var writers []*zk.Client
	for _, id := range []int{leader, leader%e.servers.Servers() + 1} {
		c, err := e.writer(ctx, id)
		if err != nil {
			return err
		}
		defer c.Detach()
		writers = append(writers, c)
	}
	ended, pid := e.servers.Ended(leader), e.servers.PID(leader)
	failed := time.Now()
	if err := syscall.Kill(pid, failure.signal()); err != nil {
		return err
	}
	gaps, err := e.gaps(ctx, writers, failed, leader)
	if failure == Pause {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
	} else if err == nil {
		<-ended
		err = e.start(leader)
	}
	if err != nil {
		return e.fail(err)
	}
	dead.record(gaps[0])
	surviving.record(gaps[1])
	return nil
}

// writer connects to one server. The client may use any server afterwards.
func (e *ensemble) writer(ctx context.Context, id int) (*zk.Client, error) {
	c, err := e.owned.Connect(ctx, e.servers.Client(id))
	if err != nil {
		return nil, err
	}
	if _, err := c.Set(ctx, key(ownedRoot, 0), nil, zk.AnyVersion); err != nil {
		c.Detach()
		return nil, err
	}
	return c, c.SetServers(e.servers.Clients())
}

// gaps returns for each client the longest time from one write to the next. It returns when a
// server other than the old leader leads and every client has written after that.
func (e *ensemble) gaps(ctx context.Context, clients []*zk.Client, failed time.Time, old int) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serveTimeout, errors.New("writes did not succeed again"))
	defer cancel()
	over := make(chan struct{})
	gaps := make([]time.Duration, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() { gaps[i] = longestGap(ctx, c, failed, over) })
	}
	for !e.ledByAnother(ctx, old) && ctx.Err() == nil {
		wait(ctx, pollPause)
	}
	close(over)
	wg.Wait()
	return gaps, context.Cause(ctx)
}

func (e *ensemble) ledByAnother(ctx context.Context, old int) bool {
	for id := 1; id <= e.servers.Servers(); id++ {
		if id != old && e.role(ctx, id) == "leader" {
			return true
		}
	}
	return false
}

// longestGap writes until a write has succeeded after over is closed, and returns the longest
// time without a success since the failure.
func longestGap(ctx context.Context, c *zk.Client, failed time.Time, over <-chan struct{}) (longest time.Duration) {
	for last := failed; ctx.Err() == nil; {
		after := false
		select {
		case <-over:
			after = true
		default:
		}
		if _, err := c.Set(ctx, key(ownedRoot, 0), nil, zk.AnyVersion); err != nil {
			continue
		}
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
		if after {
			return longest
		}
	}
	return longest
}
