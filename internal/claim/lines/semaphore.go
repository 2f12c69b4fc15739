package lines

import (
	"time"

	"bellwether/internal/claim"
)

// Semaphore is one bid for a lease of a semaphore. It waits in two lines, one after the other: the gate,
// which one bid at a time holds, and the leases.
//
//	wait for the gate ▸ bid for a lease ▸ wait for any lease to become free ▸ hold it ▸ leave the gate
//
// So only the holder of the gate watches the leases. Each other bid watches the bid ahead of it at the
// gate. A lease that becomes free therefore wakes one client.
//
// The gate only prevents many clients from waking at once. That at most Config.Leases bids hold depends
// only on the order of the leases, as in a [Line].
type Semaphore struct {
	gate, lease *Line // lease is nil until the gate is held

	cfg     Config // configuration of the lease
	n       uint64
	asked   *lineRequest  // the outstanding request
	waiting []lineRequest // requests to send next, at most one of each line
}

// lineRequest is a request of one of the two lines.
type lineRequest struct {
	by  *Line
	req claim.Request
}

// NewSemaphore returns the state machine of a bid. It does nothing until Attached is stepped. Each
// configuration has its own parent. The rule of gate must be Exclusive, and that of leases must be Leases.
// NewSemaphore sets NoLease for the gate. Otherwise a holder of the gate would leave it when its session's
// lease lapses, and two bids could wait for a lease of the semaphore at the same time.
func NewSemaphore(gate, leases Config) *Semaphore {
	gate.NoLease = true
	return &Semaphore{gate: NewLine(gate), cfg: leases}
}

// Step processes one event, as Line.Step does.
func (s *Semaphore) Step(now claim.Moment, ev claim.Event) {
	if r, ok := ev.(claim.Reply); ok {
		s.reply(now, r)
	} else {
		s.each(func(l *Line) { l.Step(now, ev) })
	}
	s.proceed(now)
}

// proceed makes the bid for a lease when the gate is held. It leaves the gate when the bid no longer waits
// for a lease.
func (s *Semaphore) proceed(now claim.Moment) {
	if g := s.gate; s.lease == nil && g.phase == Leading && g.Connected && g.watched == "" {
		s.lease = NewLine(s.cfg)
		s.lease.Step(now, claim.Attached{Session: g.Current, Lease: g.lease})
	}
	if s.lease != nil && s.lease.phase >= Leading {
		s.gate.Step(now, claim.Resign{})
	}
}

// reply passes an answer to the line that made the request.
func (s *Semaphore) reply(now claim.Moment, r claim.Reply) {
	if s.asked == nil || r.N != s.n {
		return
	}
	q := s.asked
	s.asked = nil
	q.by.Step(now, claim.Reply{N: q.req.N, Results: r.Results})
}

func (s *Semaphore) each(f func(*Line)) {
	f(s.gate)
	if s.lease != nil {
		f(s.lease)
	}
}

// Ready returns what both lines have produced, as Line.Ready does. It sends the requests of the two lines
// one after the other.
func (s *Semaphore) Ready() claim.Ready {
	var all claim.Ready
	s.each(func(l *Line) {
		r := l.Ready()
		if r.Request != nil {
			s.waiting = append(s.waiting, lineRequest{l, *r.Request})
		}
		if r.Wake > 0 && (all.Wake == 0 || r.Wake < all.Wake) {
			all.Wake = r.Wake
		}
		all.KeepAlive = all.KeepAlive || r.KeepAlive
		for _, h := range r.Observations {
			if l == s.gate {
				h = AtGate{h}
			}
			all.Observations = append(all.Observations, h)
		}
	})
	all.Request = s.next()
	return all
}

// next returns the request to send now, with a number of its own.
func (s *Semaphore) next() *claim.Request {
	if s.asked != nil || len(s.waiting) == 0 {
		return nil
	}
	q := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.n++
	s.asked = &q
	return &claim.Request{N: s.n, Session: q.req.Session, Ops: q.req.Ops}
}

// Over reports whether both lines have ended.
func (s *Semaphore) Over() bool { return s.State().Phase == Done }

// State returns the state of the bid as if it had one line: first that of the gate, then that of the
// lease.
func (s *Semaphore) State() State {
	if s.lease == nil {
		st := s.gate.State()
		st.Token, st.Led = 0, false // the token and the term of the gate do not count
		if st.Phase == Leading {
			st.Phase = Standing
		}
		return st
	}
	st := s.lease.State()
	switch {
	case st.Phase == Joining:
		st.Phase = Standing // the bid waits at the gate
	case st.Phase == Done && s.gate.phase != Done:
		st.Phase = Leaving
	}
	if st.RemoveErr == nil {
		st.RemoveErr = s.gate.removeErr
	}
	return st
}

// current returns the lease line if there is one, otherwise the gate.
func (s *Semaphore) current() *Line {
	if s.lease != nil {
		return s.lease
	}
	return s.gate
}

// Left returns how long the term of the lease lasts, as Line.Left does.
func (s *Semaphore) Left(now claim.Moment) time.Duration {
	if s.lease == nil {
		return 0
	}
	return s.lease.Left(now)
}

// Deadline returns the time until the lease of the session ends, as Line.Deadline does.
func (s *Semaphore) Deadline(now claim.Moment) time.Duration { return s.current().Deadline(now) }

// Proof returns nil if it is proven that the session lives until Deadline.
func (s *Semaphore) Proof() error { return s.current().Proof() }
