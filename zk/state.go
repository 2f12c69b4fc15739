package zk

import (
	"context"
	"iter"
	"time"
)

// State says what a client can do now. Closed is final. After AuthFailed, and with
// Options.OneSession after Expired, only Closed follows; otherwise Connecting follows
// Expired.
type State int

// The states of a client.
const (
	// Connecting: there is no connection. If there is a session, it may still live.
	Connecting State = iota
	// Connected: the client has a session and a connection to a server that serves reads
	// and writes.
	Connected
	// ReadOnly: the client is connected to a server without a quorum, which accepts only
	// reads.
	ReadOnly
	// Expired: a server has said that the session is over.
	Expired
	// AuthFailed: a server has refused the client's credentials.
	AuthFailed
	// Closed: Close or Detach was called.
	Closed
)

var stateNames = [...]string{"connecting", "connected", "read-only", "expired", "auth failed", "closed"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Status is the state of a client from one transition to the next. Each Status knows the
// one that follows it, so a program that holds one does not miss a transition, however
// late it looks. The zero Status belongs to no client, and none follows it.
type Status struct {
	State   State
	Session SessionID     // the client's session; 0 before the first session
	Timeout time.Duration // the negotiated timeout; 0 before the first session
	Server  string        // IP:port, while connected
	Since   time.Time
	// Err is the reason why the previous state ended; nil if that end was planned.
	Err error

	link *transition
}

// transition leads from one status to the next; next is set before changed
// is closed.
type transition struct {
	changed chan struct{}
	next    Status
}

// Changed returns a channel that is closed when another status has followed this one;
// for a final state it is never closed.
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

// State returns the present status.
func (c *Client) State() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// States yields the present status and then every later one, in order, until the context
// ends or a status is final. A slow consumer misses nothing.
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
