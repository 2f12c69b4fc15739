package tree

import (
	"cmp"
	"slices"

	"bellwether/wire"
)

// Expiry finds the sessions from which nothing was heard for their timeout. As in
// ZooKeeper, a deadline is rounded up to the end of a bucket of one tick. So a session
// expires between its timeout and one tick later, together with the others of its bucket.
// Times are milliseconds of a clock that never goes back. One goroutine at a time may use
// an Expiry.
//
// Invariants: each session is in exactly one bucket, the one of its deadline; no bucket
// is earlier than next.
type Expiry struct {
	tick     int64
	sessions map[wire.SessionID]*deadline
	buckets  map[int64]map[wire.SessionID]struct{} // by deadline
	next     int64                                 // no bucket is earlier
}

type deadline struct {
	timeout int64
	at      int64
	assumed bool // timeout comes from Assume
}

// NewExpiry returns an empty table with buckets of tickMS, at least 1.
func NewExpiry(tickMS int64) *Expiry {
	return &Expiry{
		tick:     max(tickMS, 1),
		sessions: map[wire.SessionID]*deadline{},
		buckets:  map[int64]map[wire.SessionID]struct{}{},
	}
}

func (e *Expiry) bucket(now, timeout int64) int64 { return ((now+timeout)/e.tick + 1) * e.tick }

// Add adds a session that was heard from at now. If the session is known, its timeout
// changes, and counts from now.
func (e *Expiry) Add(id wire.SessionID, timeoutMS int32, now int64) {
	e.add(id, timeoutMS, now).assumed = false
}

// Assume is Add with a timeout that the newest connection of the session may have changed.
func (e *Expiry) Assume(id wire.SessionID, timeoutMS int32, now int64) {
	e.add(id, timeoutMS, now).assumed = true
}

// Timeout returns the timeout of a session in ms, 0 if the session is not known, and whether it
// comes from Assume.
func (e *Expiry) Timeout(id wire.SessionID) (timeoutMS int32, assumed bool) {
	if d := e.sessions[id]; d != nil {
		return int32(d.timeout), d.assumed
	}
	return 0, false
}

func (e *Expiry) add(id wire.SessionID, timeoutMS int32, now int64) *deadline {
	d := e.sessions[id]
	if d == nil {
		d = new(deadline)
		e.sessions[id] = d
	} else {
		e.leave(id, d)
	}
	d.timeout = int64(timeoutMS)
	e.enter(id, d, e.bucket(now, d.timeout))
	return d
}

// Touch notes that a session was heard from at now, which may be before an earlier touch.
// It returns false if the session is not known.
func (e *Expiry) Touch(id wire.SessionID, now int64) bool {
	d := e.sessions[id]
	if d == nil {
		return false
	}
	if at := e.bucket(now, d.timeout); at > d.at {
		e.leave(id, d)
		e.enter(id, d, at)
	}
	return true
}

// Remove removes a session.
func (e *Expiry) Remove(id wire.SessionID) {
	if d := e.sessions[id]; d != nil {
		e.leave(id, d)
		delete(e.sessions, id)
	}
}

// Overdue is a session whose deadline has passed, with its timeout. Assumed says that the timeout
// comes from Assume.
type Overdue struct {
	Session   wire.SessionID
	TimeoutMS int32
	Assumed   bool
}

// Due removes the sessions whose deadline has passed and returns them, the earliest
// deadline first, sessions of the same deadline by id.
func (e *Expiry) Due(now int64) []Overdue {
	var due []Overdue
	for {
		at, ok := e.Next()
		if !ok || at > now {
			return due
		}
		first := len(due)
		for id := range e.buckets[at] {
			d := e.sessions[id]
			due = append(due, Overdue{id, int32(d.timeout), d.assumed})
			delete(e.sessions, id)
		}
		delete(e.buckets, at)
		slices.SortFunc(due[first:], func(a, b Overdue) int { return cmp.Compare(a.Session, b.Session) })
	}
}

// Next returns the earliest deadline; false if there is no session.
func (e *Expiry) Next() (int64, bool) {
	if len(e.buckets) == 0 {
		return 0, false
	}
	if e.buckets[e.next] == nil {
		first := true
		for at := range e.buckets {
			if first || at < e.next {
				e.next, first = at, false
			}
		}
	}
	return e.next, true
}

func (e *Expiry) enter(id wire.SessionID, d *deadline, at int64) {
	d.at = at
	b := e.buckets[at]
	if b == nil {
		b = map[wire.SessionID]struct{}{}
		e.buckets[at] = b
	}
	b[id] = struct{}{}
	if len(e.buckets) == 1 || at < e.next {
		e.next = at
	}
}

func (e *Expiry) leave(id wire.SessionID, d *deadline) {
	b := e.buckets[d.at]
	if delete(b, id); len(b) == 0 {
		delete(e.buckets, d.at)
	}
}

// ExpiryBucket holds the sessions that share a deadline, by id.
type ExpiryBucket struct {
	Deadline int64
	Sessions []wire.SessionID
}

// Buckets lists the sessions by deadline, the earliest first.
func (e *Expiry) Buckets() []ExpiryBucket {
	var out []ExpiryBucket
	for at, b := range e.buckets {
		list := make([]wire.SessionID, 0, len(b))
		for id := range b {
			list = append(list, id)
		}
		slices.Sort(list)
		out = append(out, ExpiryBucket{at, list})
	}
	slices.SortFunc(out, func(a, b ExpiryBucket) int { return int(a.Deadline - b.Deadline) })
	return out
}
