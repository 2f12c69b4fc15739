package zk

import (
	"context"
	"iter"
	"time"
)

// State is what a client can do now.
type State int

// The states. Closed is final: Close or Detach was called. Nothing but Closed follows AuthFailed and, with
// Options.OneSession, Expired; otherwise Connecting follows Expired.
const (
	Connecting State = iota // no connection; the session, if there is one, may live on
	Connected
	ReadOnly // connected to a server without quorum: reads alone
	Expired  // a server said that the session is over
	AuthFailed
	Closed
)

var stateNames = [...]string{"connecting", "connected", "read-only", "expired", "auth failed", "closed"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Status is the state from one transition to the next. Each Status knows its
// successor, so whoever holds one cannot miss a transition, however late. The
// zero Status belongs to no client and has no successor.
type Status struct {
	State   State
	Session SessionID     // 0 before the first one
	Timeout time.Duration // as negotiated; 0 before
	Server  string        // IP:port, while connected
	Since   time.Time
	// Err is why the state before ended, nil where it was by plan.
	Err error

	link *transition
}

// transition leads from one status to the next; next is set before changed
// is closed.
type transition struct {
	changed chan struct{}
	next    Status
}

// Changed is closed when another status has followed this one. Never for a final state.
func (s Status) Changed() <-chan struct{} {
	if s.link == nil {
		return nil
	}
	return s.link.changed
}

// Next waits for the status that follows this one. Its error is the context's.
func (s Status) Next(ctx context.Context) (Status, error) {
	select {
	case <-s.Changed():
		return s.link.next, nil
	case <-ctx.Done():
		return s, ctx.Err()
	}
}

// Final reports whether no other state can follow.
func (s Status) Final() bool { return s.State == Closed }

// State is the present status.
func (c *Client) State() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// States yields the present status and then every later one, in order, until
// the context ends or a status is final. A slow consumer misses nothing.
func (c *Client) States(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for s := c.State(); yield(s) && !s.Final(); {
			var err error
			if s, err = s.Next(ctx); err != nil {
				return
			}
		}
	}
}
