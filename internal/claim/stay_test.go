package claim

import (
	"testing"
	"time"
)

// TestStayEnds: a stay ends with its session, at its deadline, by Resign, and when the client is closed. A
// connection in the same session and a proof before the deadline do not end it. A proof that arrives at
// the deadline or later comes too late.
func TestStayEnds(t *testing.T) {
	at := func(s time.Duration) Moment { return Moment{Mono: s * time.Second, Wall: s * time.Second} }
	proof := func(sent time.Duration) Lease {
		return Lease{Sent: at(sent), Timeout: 100 * time.Second, Delay: 19 * time.Second} // lasts 80 s
	}
	type step struct {
		at time.Duration
		ev Event
	}
	for _, c := range []struct {
		name  string
		steps []step
		over  bool
		why   Reason
	}{
		{"the same session", []step{{1, Attached{7, proof(1)}}}, false, 0},
		{"another session", []step{{1, Attached{8, proof(1)}}}, true, SessionExpired},
		{"no session", []step{{1, Attached{0, proof(1)}}}, true, SessionExpired},
		{"the session has expired", []step{{1, Expired{}}}, true, SessionExpired},
		{"closed", []step{{1, Closed{}}}, true, SessionClosed},
		{"resigned", []step{{1, Resign{}}}, true, Resigned},
		{"no connection", []step{{1, Disconnected{}}}, false, 0},
		{"a proof in time", []step{{79, Confirmed{proof(70)}}, {149, Disconnected{}}}, false, 0},
		{"the end of the last proof", []step{{79, Confirmed{proof(70)}}, {150, Disconnected{}}}, true, LeaseLapsed},
		{"a proof at the deadline", []step{{80, Confirmed{proof(80)}}}, true, LeaseLapsed},
		{"the first reason counts", []step{{80, Expired{}}, {81, Resign{}}}, true, LeaseLapsed},
	} {
		s := NewStay(7, proof(0))
		for _, x := range c.steps {
			s.Step(at(x.at), x.ev)
		}
		if s.Over() != c.over || c.over && s.Reason() != c.why {
			t.Errorf("%s: over %v, reason %v; want %v, %v", c.name, s.Over(), s.Reason(), c.over, c.why)
		}
	}
}

// TestStayWakes checks when a stay asks for its next step: after a twentieth of the timeout, at its deadline, and
// after no less than a millisecond. It keeps the session alive until it is over.
func TestStayWakes(t *testing.T) {
	s := NewStay(7, Lease{Timeout: 100 * time.Second, Delay: 19 * time.Second})
	for _, c := range []struct{ at, want time.Duration }{
		{0, 5 * time.Second},
		{70 * time.Second, 5 * time.Second},
		{77 * time.Second, 3 * time.Second},
		{80*time.Second - 10*time.Microsecond, time.Millisecond},
	} {
		s.Step(Moment{Mono: c.at, Wall: c.at}, Tick{})
		if r := s.Ready(); !r.KeepAlive || r.Wake != c.want {
			t.Errorf("at %v: %+v, want a step in %v", c.at, r, c.want)
		}
	}
	s.Step(Moment{Mono: 80 * time.Second, Wall: 80 * time.Second}, Tick{})
	if r := s.Ready(); r.KeepAlive || r.Wake != 0 {
		t.Errorf("at its deadline: %+v", r)
	}
}
