package server

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
)

// TestServiceFollowsTheStatus: the service to clients follows from the status: a
// server that stops being read-only serves no client until it has a leader.
func TestServiceFollowsTheStatus(t *testing.T) {
	for _, c := range []struct {
		stands           *replica.Status
		serves, readOnly bool
	}{
		{nil, false, false},
		{&replica.Status{Role: peerwire.Looking}, false, false},
		{&replica.Status{Role: peerwire.Looking, ReadOnly: true}, true, true},
		{&replica.Status{Role: peerwire.Following}, false, false},
		{&replica.Status{Role: peerwire.Following, Serving: true}, true, false},
	} {
		s := &Server{member: &member{}}
		s.member.status.Store(c.stands)
		if serves, _ := s.Service(); serves {
			t.Errorf("%+v: served before the server serves", c.stands)
		}
		s.serving.Store(true)
		serves, readOnly := s.Service()
		if serves != c.serves || readOnly != c.readOnly || s.Serving() != serves {
			t.Errorf("%+v: serves %v, read-only %v", c.stands, serves, readOnly)
		}
	}
}
