package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// words counts the announcements that ended, and those that followers have seen.
type words map[string]int

func (words) Name() string { return "Words" }

func (w words) See(o any) string {
	switch e := o.(type) {
	case announced:
		if !e.crashed {
			w[e.m.Outcome().String()]++
		}
		if e.m.Err() == value.ErrBidGone {
			w["too late"]++
		}
	case configSeen:
		w["seen"]++
	case leaderSeen:
		w["leaders seen"]++
	}
	return ""
}

// TestConfigurations lets leaders announce configurations under all faults, some of them
// after they were deposed. It checks that no announcement replaces that of a later leader,
// that no follower goes back to an earlier one, and that in the end all know the last
// configuration and the leader.
func TestConfigurations(t *testing.T) {
	all := words{}
	for seed := range uint64(3) {
		s := New(Options{
			Seed: seed + 1, Events: 60_000, Recipe: Configuration, TermMS: 400,
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
	s.opt.Recipe = Configuration
	for i := range 2 {
		s.cast(s.scripted(nil), i)
	}
	s.quiet = true // no leader announces by itself, and a leader stays
	all := s.announcers()
	s.until("somebody leads", 20*second, func() bool { return s.holder != nil })
	old, next := all[0], all[1]
	if s.holder != old.k {
		old, next = next, old
	}
	speaks := func(sp *announcer, token wire.Zxid, bid string, session wire.SessionID) {
		sp.n++
		sp.data = "word"
		sp.m = value.NewAnnounce(value.AnnounceConfig{Path: configPath, Bid: bid, Session: session, Token: token, Data: []byte(sp.data)})
		sp.step(claim.Attached{Session: sp.c.session})
	}
	st, session := old.k.line.State(), old.c.session
	old.k.step(claim.Resign{})
	s.until("the other leads", 20*second, func() bool { return s.holder == next.k })
	speaks(old, st.Token, claim.Join(electionPath, st.Bid), session)
	over := old.m
	s.until("it is over", 20*second, func() bool { return over.Over() })
	if over.Err() != value.ErrBidGone {
		t.Errorf("%v: %v", over.Outcome(), over.Err())
	}
	if data, _ := s.content(configPath); len(data) > 0 {
		t.Errorf("%q stands there", data)
	}
}

// brokenWords are sequences of observations that break the rule of announcements.
var brokenWords = []broken{
	{"an older leader's word in the place of a later one's", wordRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{says(a, 5, "x"), says(a, 4, "y")}
	}},
	{"a word announced twice", wordRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{says(a, 5, "x"), says(a, 5, "x")}
	}},
	{"a word that was said not to be announced", wordRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{announced{someAnnouncer(), withdrawn(announcing()).(*value.Announce), "x", false}, says(a, 5, "x")}
	}},
	{"a word that was said to be, and is not", wordRule, func(_ *check.History, _ *Sim, _, _ *server) []any {
		return []any{announced{someAnnouncer(), done(announcing()).(*value.Announce), "x", false}}
	}},
	{"a word that nobody said", wordRule, func(_ *check.History, _ *Sim, _, _ *server) []any {
		return []any{configSeen{someAnnouncer(), value.Announcement{Token: 5, Data: []byte("x")}}}
	}},
	{"a follower that goes back to an older leader", wordRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		sp := someAnnouncer()
		return []any{says(a, 4, "x"), says(a, 5, "y"), configSeen{sp, value.Announcement{Token: 5, Version: 1, Data: []byte("y")}},
			configSeen{someAnnouncer(), value.Announcement{Token: 4, Data: []byte("x")}}, configSeen{sp, value.Announcement{Token: 4, Data: []byte("x")}}}
	}},
	{"a follower that goes back to an older word", wordRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		sp := someAnnouncer()
		return []any{says(a, 5, "x"), says(a, 5, "y"), configSeen{sp, value.Announcement{Token: 5, Version: 1, Data: []byte("y")}},
			configSeen{sp, value.Announcement{Token: 5, Data: []byte("x")}}}
	}},
	{"a leader that never was", wordRule, func(_ *check.History, _ *Sim, _, _ *server) []any {
		return []any{leaderSeen{someAnnouncer(), claim.Notice{}}, leaderSeen{someAnnouncer(), claim.Notice{Token: 5}}}
	}},
	{"a follower that goes back to a former leader", wordRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		leads := func(token wire.Zxid) check.Committed {
			return wrote(a, 1, &record.CreateTxn{Path: electionPath + "/LEADER", Data: claim.Notice{Bid: "b", Token: token}.Encode()})
		}
		sp := someAnnouncer()
		return []any{leads(4), leads(5), leaderSeen{sp, claim.Notice{Token: 5}}, leaderSeen{sp, claim.Notice{}}, leaderSeen{sp, claim.Notice{Token: 4}}}
	}},
}

func wordRule(*check.History, *Sim) check.Checker { return newAnnouncements() }

func someAnnouncer() *announcer {
	c := &client{}
	return &announcer{runner: runner{c: c}, configs: newFollower(c), leaders: newFollower(c)}
}

func announcing() operation { return value.NewAnnounce(value.AnnounceConfig{Session: 1}) }

// says returns the transaction by which a leader writes an announcement.
func says(v *server, token wire.Zxid, data string) check.Committed {
	text := value.Announcement{Token: token, Data: []byte(data)}.Text("/bid")
	return wrote(v, 1, &record.SetDataTxn{Path: configPath, Data: text})
}
