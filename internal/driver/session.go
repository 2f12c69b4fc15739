package driver

import (
	"bellwether/internal/replica"
	"bellwether/wire"
)

// Sealed in a Cell: the session may be about to expire. Whoever hears from its
// client must leave the request to the loop, so that no answer promises a session
// that the Tick under way ends.
const Sealed = -1

// Cell holds the Mono time in ms at which a session was heard from last, or Sealed.
// Readers raise it with Later, the loop seals and unseals it. *atomic.Int64 is one.
type Cell interface {
	Load() int64
	Store(int64)
	CompareAndSwap(old, now int64) bool
}

// Later is the value of a Cell with the value old after its session was heard from
// at now. False: the cell is sealed, and the loop has to note what was heard.
func Later(old, now int64) (int64, bool) {
	return max(old, now), old != Sealed
}

// Heard is what the loop knows about when a session was heard from. It belongs to
// the loop; only the Cell is shared.
type Heard struct {
	Cell Cell
	// reported is the value of Cell that the replica knows. It is never Sealed.
	reported int64
}

// Unreported is when the session was heard from, if the replica does not know it yet.
// The loop steps it as Touched before it drops a connection: the session may live on.
func (h *Heard) Unreported() (at int64, ok bool) {
	at = h.Cell.Load()
	return at, at != Sealed && at != h.reported
}

// sealed is a session that this Tick has sealed.
type sealed struct {
	heard *Heard
	id    wire.SessionID
}

// Hear adds a session to the Tick. Its cell is sealed if its timeout is over: from
// then on until Tick returns its client can extend it only through the loop, which
// steps that after the Tick.
func (b *Batch) Hear(h *Heard, id wire.SessionID, timeoutMS int32) {
	at := h.Cell.Load()
	if at == Sealed {
		if b.core.Ending(id) {
			return
		}
		// Its end could not be logged and was taken back.
		at = b.now.Mono
		h.Cell.Store(at)
	}
	if b.now.Mono >= at+int64(timeoutMS) && h.Cell.CompareAndSwap(at, Sealed) {
		b.sealed = append(b.sealed, sealed{h, id})
	} else {
		at = h.Cell.Load()
	}
	if h.reported != at {
		h.reported = at
		b.touches = append(b.touches, replica.Touch{Session: id, Mono: at})
	}
}

// Tick tells the replica which sessions were heard from, then that time has passed.
// The sessions that go on are unsealed; those that end stay sealed.
func (b *Batch) Tick() {
	b.core.Step(b.now, replica.Touched{Sessions: b.touches})
	b.core.Step(b.now, replica.Tick{})
	for _, s := range b.sealed {
		if !b.core.Ending(s.id) {
			s.heard.Cell.Store(s.heard.reported)
		}
	}
	clear(b.sealed)
	b.touches, b.sealed = nil, b.sealed[:0] // the replica may keep touches
}

// Access is the state of a connection that decides whether a request may be answered
// by the connection's reader, without the loop.
type Access struct {
	Unanswered bool // an earlier request is with the loop
	Closing    bool // closeSession was handed to the loop
	Sealed     bool // its Cell is sealed, or was when the request was read
	ReadOnly   bool // its session is one of a server without a quorum
	Serving    bool // the server serves, as the loop has published it
}

// Waits reports whether a request goes to the loop: what changes something, everything
// behind that as long as it is unanswered, everything while the session may be
// expiring, and, while the server does not serve, everything but what a read-only
// session reads. A ping that does not wait needs a Lease besides, unless the session
// is read-only.
func (a Access) Waits(op wire.OpCode) bool {
	switch {
	case op.IsWrite(), op == wire.OpSync, op == wire.OpCloseSession, a.Closing, a.Unanswered, a.Sealed:
		return true
	case a.ReadOnly:
		return replica.ReadOnlyRefuses(op)
	}
	return !a.Serving
}

// Lease is the time until which pings may be answered without the loop: until then a
// quorum keeps this server's sessions alive. Both clocks must confirm it, because the
// monotonic clock stands still while the machine is suspended.
type Lease struct{ Mono, Wall int64 }

// LeaseOf is the lease that a replica gives with Lease, in a batch at now.
func LeaseOf(mono int64, now replica.Time) Lease {
	return Lease{mono, now.Wall + mono - now.Mono}
}

// Holds reports whether the lease holds at a time.
func (l Lease) Holds(now replica.Time) bool {
	return l.Mono == replica.Never || now.Mono <= l.Mono && now.Wall <= l.Wall
}
