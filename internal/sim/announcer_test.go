package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// words counts the announcements that ended, and those that followers have seen.
type words map[string]int

func (words) Name() string { return "Words" }

func (w words) See(o any) string {
	switch e := o.(type) {
	case check.Announced:
		if !e.Crashed {
			w[e.Outcome.String()]++
		}
		if e.Err == value.ErrBidGone {
			w["too late"]++
		}
	case check.ConfigurationSeen:
		w["seen"]++
	case check.LeaderSeen:
		w["leaders seen"]++
	}
	return ""
}

// TestConfigurations lets leaders announce configurations under all faults, some of them
// after they were deposed. It checks that no announcement replaces that of a later leader,
// that no follower goes back to an earlier configuration, and that in the end all know the
// last configuration and the leader.
func TestConfigurations(t *testing.T) {
	all := words{}
	for seed := range uint64(3) {
		s := New(Options{
			Seed: seed + 7, Events: 60_000, Recipe: client.Configuration, TermMS: 400,
			Voters: 3, Observers: -1, Clients: -1, Candidates: 5, TickMS: 200,
			rule: func() check.Checker { return all },
		})
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
	}
	t.Log(all)
	for what, least := range map[string]int{"succeeded": 100, "too late": 20, "seen": 500, "leaders seen": 500} {
		if all[what] < least {
			t.Errorf("%s: %d, want %d", what, all[what], least)
		}
	}
}

// TestADeposedLeaderAnnouncesNothing deposes a leader while its announcement is on its way.
// It checks that the announcement does not replace that of the next leader, and that
// followers have seen only the latter.
func TestADeposedLeaderAnnouncesNothing(t *testing.T) {
	s := newScene(t, Options{Seed: 1, Voters: 3})
	s.opt.Recipe = client.Configuration
	for i := range 2 {
		s.clients.Cast(s.scripted(nil), i)
	}
	s.quiet = true // leaders neither announce nor resign by themselves
	all := s.clients.Announcers()
	s.until("somebody leads", 20*machine.Second, func() bool { return s.clients.LastHolder() != nil })
	old, next := all[0], all[1]
	if s.clients.LastHolder() != old.Client() {
		old, next = next, old
	}
	st, session := old.Candidate().State(), old.Client().Session
	old.Candidate().Resign()
	s.until("the other leads", 20*machine.Second, func() bool { return s.clients.LastHolder() == next.Client() })
	over := old.Announce(claim.Join(check.ElectionPath, st.Bid), session, st.Token, "too late")
	s.until("it is over", 20*machine.Second, func() bool { return over.Over() })
	if over.Err() != value.ErrBidGone {
		t.Errorf("%v: %v", over.Outcome(), over.Err())
	}
	if data, _, _ := s.history.Content(check.ConfigPath); len(data) > 0 {
		t.Errorf("%q stands there", data)
	}
}
