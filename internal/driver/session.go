package driver

import (
	"bellwether/internal/replica"
	"bellwether/wire"
)

// Sealed is the value of a LastHeard whose session may be about to expire. A goroutine that receives a
// request of the session's client must leave the request to the loop, so that no answer promises a session
// that the present Tick ends.
const Sealed = -1

// LastHeard holds the Mono time in ms at which a session was last heard from, or Sealed. Readers raise it
// to the value of Later; the loop seals and unseals it. *atomic.Int64 implements it.
type LastHeard interface {
	Load() int64
	Store(int64)
	CompareAndSwap(old, now int64) bool
}

// Later returns the value of a LastHeard after its session was heard from at now. old is the present value.
// Later returns false if the session is sealed; the loop must then record the time.
func Later(old, now int64) (int64, bool) {
	return max(old, now), old != Sealed
}

// Heard is the loop's record of when a session was heard from. It belongs to the loop; only LastHeard is
// shared with readers.
type Heard struct {
	LastHeard LastHeard
	// reported is the value of LastHeard that the replica knows. It is never Sealed.
	reported int64
}

// Unreported returns when the session was heard from, if the replica does not know that time yet. The loop
// reports the time as Touched before it drops a connection, because the session may live on.
func (h *Heard) Unreported() (at int64, ok bool) {
	at = h.LastHeard.Load()
	return at, at != Sealed && at != h.reported
}

// sealed is a session that the present Tick has sealed.
type sealed struct {
	heard *Heard
	id    wire.SessionID
}

// Hear adds a session to the Tick. If the timeout of the session is over, Hear seals the session. From then
// until Tick returns, the session's client can extend it only through the loop, which steps the client's
// requests after the Tick.
func (b *Batch) Hear(h *Heard, id wire.SessionID, timeoutMS int32) {
	at := h.LastHeard.Load()
	if at == Sealed {
		if b.core.Ending(id) {
			return
		}
		// The session stayed sealed, but its expiry was taken back.
		at = b.now.Mono
		h.LastHeard.Store(at)
	}
	if b.now.Mono >= at+int64(timeoutMS) && h.LastHeard.CompareAndSwap(at, Sealed) {
		b.sealed = append(b.sealed, sealed{h, id})
	} else {
		at = h.LastHeard.Load()
	}
	if h.reported != at {
		h.reported = at
		b.touches = append(b.touches, replica.Touch{Session: id, Mono: at})
	}
}

// Tick tells the replica which sessions were heard from, and then that time has passed. It unseals the
// sessions that go on. Those that have expired stay sealed.
func (b *Batch) Tick() {
	b.core.Step(b.now, replica.Touched{Sessions: b.touches})
	b.core.Step(b.now, replica.Tick{})
	for _, s := range b.sealed {
		if !b.core.Ending(s.id) {
			s.heard.LastHeard.Store(s.heard.reported)
		}
	}
	clear(b.sealed)
	b.touches, b.sealed = nil, b.sealed[:0] // the replica may keep touches
}

// Access is the state of a connection that decides whether a request may be answered
// by the connection's reader, without the loop.
type Access struct {
	Unanswered bool // an earlier request is still with the loop
	Closing    bool // a closeSession request was passed to the loop
	Sealed     bool // the session of the connection is sealed, or was sealed when the request was read
	ReadOnly   bool // the session was given by a server without a quorum
	Serving    bool // the server serves, according to the value that the loop has published
}

// Waits reports whether a request must go to the loop. These requests must: one that changes something,
// and everything after it until it is answered; every request while the session may be expiring; and,
// while the server does not serve, every request except the reads of a read-only session. A ping that
// does not wait also needs a Lease, unless the session is read-only.
func (a Access) Waits(op wire.OpCode) bool {
	switch {
	case op.IsWrite(), op == wire.OpSync, op == wire.OpCloseSession, a.Closing, a.Unanswered, a.Sealed:
		return true
	case a.ReadOnly:
		return replica.ReadOnlyRefuses(op)
	}
	return !a.Serving
}

// Lease is the time until which pings may be answered without the loop, because until then a quorum keeps
// this server's sessions alive. Both clocks must confirm it, because the monotonic clock stands still
// while the machine is suspended.
type Lease struct{ Mono, Wall int64 }

// LeaseOf returns the lease that a replica's method Lease gives in a batch at now.
func LeaseOf(mono int64, now replica.Time) Lease {
	return Lease{mono, now.Wall + mono - now.Mono}
}

// Holds reports whether the lease holds at a time.
func (l Lease) Holds(now replica.Time) bool {
	return l.Mono == replica.Never || now.Mono <= l.Mono && now.Wall <= l.Wall
}
