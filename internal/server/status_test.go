package server

import (
	"slices"
	"testing"
	"time"

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

// TestPartialNamesEveryReason: no reason for which a server serves only in part hides another one.
func TestPartialNamesEveryReason(t *testing.T) {
	s := Status{
		Mode: "follower", Disk: &SlowDisk{}, Busy: time.Second, Differs: "its tree differs", ClosedPort: "election port h:1 is in use", GivesWay: "no space",
	}
	want := []string{s.SlowDiskText(), "its main loop has been busy with one batch for 1s", "its tree differs", "election port h:1 is in use", "another server should lead: no space"}
	if got := s.Partial(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&Status{Mode: "follower"}).Partial(); len(got) != 0 {
		t.Errorf("a server without a fault: %q", got)
	}
}
