package lines

import (
	"time"

	"bellwether/internal/claim"
)

// Semaphore is one bid for one of several leases. It stands in two lines, one
// after the other: the gate, which one bid at a time holds, and the leases.
//
//	wait for the gate ▸ bid for a lease ▸ wait for any lease to become free ▸ hold it ▸ leave the gate
//
// So one bid at a time watches the leases, and each of the others the bid
// ahead of it at the gate: a lease that becomes free wakes one.
//
// The gate is for good order only. That no more than Config.Leases hold rests
// on the order of the leases alone, as in a [Line].
type Semaphore struct {
	gate, lease *Line // lease is nil before the gate is held

	cfg     Config // of the lease
	n       uint64
	asked   *question  // outstanding
	waiting []question // at most one of each line
}

// question is a request of one of the lines.
type question struct {
	by  *Line
	req claim.Request
}

// NewSemaphore makes a bid's state machine, which waits for Attached. Both
// configurations name a parent; the rule of the gate's is Exclusive, that of
// the leases' Leases. The gate is Loose, lest a second bid come to wait for a
// lease.
func NewSemaphore(gate, leases Config) *Semaphore {
	gate.Loose = true
	return &Semaphore{gate: NewLine(gate), cfg: leases}
}

// Step is as Line.Step.
func (s *Semaphore) Step(now claim.Moment, ev claim.Event) {
	if r, ok := ev.(claim.Reply); ok {
		s.reply(now, r)
	} else {
		s.each(func(l *Line) { l.Step(now, ev) })
	}
	s.proceed(now)
}

// proceed goes from the gate to the leases, and leaves the gate when there
// is nothing left to wait for.
func (s *Semaphore) proceed(now claim.Moment) {
	if g := s.gate; s.lease == nil && g.phase == Leading && g.attached && g.watched == "" {
		s.lease = NewLine(s.cfg)
		s.lease.Step(now, claim.Attached{Session: g.session, Lease: g.lease})
	}
	if s.lease != nil && s.lease.phase >= Leading {
		s.gate.Step(now, claim.Resign{})
	}
}

// reply hands an answer to the line that asked.
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

// Ready is as Line.Ready. The requests of the two lines are carried out one
// after the other.
func (s *Semaphore) Ready() claim.Ready {
	var all claim.Ready
	s.each(func(l *Line) {
		r := l.Ready()
		if r.Request != nil {
			s.waiting = append(s.waiting, question{l, *r.Request})
		}
		if r.Wake > 0 && (all.Wake == 0 || r.Wake < all.Wake) {
			all.Wake = r.Wake
		}
		all.KeepAlive = all.KeepAlive || r.KeepAlive
		for _, h := range r.Happenings {
			if l == s.gate {
				h = AtGate{h}
			}
			all.Happenings = append(all.Happenings, h)
		}
	})
	all.Request = s.next()
	return all
}

// next is the request to send now, numbered anew.
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

// Over reports whether both bids are gone, or stay behind for good.
func (s *Semaphore) Over() bool { return s.State().Phase == Done }

// State is how things stand: at the gate, then with the lease.
func (s *Semaphore) State() State {
	if s.lease == nil {
		st := s.gate.State()
		st.Token, st.Led = 0, false // the gate's
		if st.Phase == Leading {
			st.Phase = Standing
		}
		return st
	}
	st := s.lease.State()
	switch {
	case st.Phase == Joining:
		st.Phase = Standing // at the gate
	case st.Phase == Done && s.gate.phase != Done:
		st.Phase = Leaving
	}
	if st.Stays == nil {
		st.Stays = s.gate.stays
	}
	return st
}

// present is the line that counts.
func (s *Semaphore) present() *Line {
	if s.lease != nil {
		return s.lease
	}
	return s.gate
}

// Left is as Line.Left, of the lease.
func (s *Semaphore) Left(now claim.Moment) time.Duration {
	if s.lease == nil {
		return 0
	}
	return s.lease.Left(now)
}

// Deadline is as Line.Deadline.
func (s *Semaphore) Deadline(now claim.Moment) time.Duration { return s.present().Deadline(now) }

// Proof is as Line.Proof.
func (s *Semaphore) Proof() error { return s.present().Proof() }
