package recipe

import (
	"testing"
	"time"

	"bellwether/zk"
)

// TestPlace checks what Place returns before, during and after a candidacy, for the candidates of one client in
// two elections.
func TestPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		a, b, d := made(NewElection(c, parent, "a", nil)), made(NewElection(c, parent, "b", nil)), made(NewElection(c, parent, "d", nil))
		other := made(NewElection(c, "/app/other", "a", nil))
		is := func(e *Election, stands, leads bool, ahead int) {
			t.Helper()
			time.Sleep(time.Second) // until a leader is published
			now := e.Place()
			if now.Stands != stands || now.Leads != leads || now.Ahead != ahead || now.Published != leads || (now.Bid != "") != stands {
				t.Errorf("%+v, want stands %v, leads %v, %d ahead", now, stands, leads, ahead)
			}
		}
		is(a, false, false, 0)
		h := campaign(t, a)
		campaignLater(t.Context(), b)
		third := campaignLater(t.Context(), d)
		campaign(t, other)
		is(a, true, true, 0)
		is(b, true, false, 1)
		is(d, true, false, 2)
		is(other, true, true, 0)
		if a.Place().Token != h.Token() {
			t.Errorf("token %v, want %v", a.Place().Token, h.Token())
		}
		if err := b.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		is(b, false, false, 0)
		is(d, true, false, 1) // the candidate has looked again, because the bid directly ahead is gone
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		is(a, false, false, 0)
		won(t, third)
		is(d, true, true, 0)
		s.expire(c.Session().ID)
		<-c.State().Changed()
		time.Sleep(time.Second)
		if d.Place().Leads || other.Place().Leads {
			t.Error("leads after its session")
		}
	})
}
