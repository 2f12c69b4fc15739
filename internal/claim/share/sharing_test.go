package share

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/claim/claimtest"
)

// talk is a dialogue with a Sharing of parts below /s.
type talk struct {
	t *testing.T
	m *Sharing
}

func share(t *testing.T, cfg SharingConfig) *talk {
	cfg.Parent = "/s"
	d := &talk{t, NewSharing(cfg)}
	d.wants("register /s/members/" + cfg.ID)
	return d
}

// step steps an event and fails unless it begins these operations.
func (d *talk) step(ev claim.Event, starts ...string) {
	d.t.Helper()
	d.m.Step(claim.Moment{}, ev)
	d.wants(starts...)
}

func (d *talk) wants(starts ...string) {
	d.t.Helper()
	claimtest.WantStarts(d.t, d.m.Ready().Start, starts)
}

// ends fails unless it is over by this error.
func (d *talk) ends(err error) {
	d.t.Helper()
	if !d.m.Over() || !errors.Is(d.m.Err(), err) || err == nil && d.m.Err() != nil {
		d.t.Errorf("over: %v, by %v, not %v", d.m.Over(), d.m.Err(), err)
	}
}

// seen is what a cache tells: names, those that have gone with a minus before
// them; a dot is CacheCurrent.
func seen(root, names string) Seen {
	ev := Seen{Path: root}
	for _, name := range strings.Fields(names) {
		e := cache.CacheEvent{Node: &cache.Node{}}
		switch gone, is := strings.CutPrefix(name, "-"); {
		case name == ".":
			e.Type, e.Node = cache.CacheCurrent, nil
		case is:
			e.Type, name = cache.NodeRemoved, gone
		}
		if e.Node != nil {
			e.Node.Path = claim.Join(root, name)
			e.Node.Stat.EphemeralOwner = 1
		}
		ev.Events = append(ev.Events, e)
	}
	return ev
}

const theMembers, theTasks = "/s/members", "/s/tasks"

// sole is a member that is alone, and bids for both parts.
func sole(t *testing.T) *talk {
	t.Helper()
	d := share(t, SharingConfig{ID: "a", Parts: []string{"q", "p"}})
	d.step(Registered{}, "follow /s/members")
	d.step(Registered{})
	d.step(seen(theMembers, "a"))
	d.step(seen(theMembers, "."), "bid p", "bid q")
	return d
}

// TestSharingFromBeginToEnd: it leaves when it has let go, and follows nothing any more.
func TestSharingFromBeginToEnd(t *testing.T) {
	d := sole(t)
	d.step(BidOver{Part: "p"}, "bid p") // its session was lost
	d.step(claim.Resign{}, "unfollow /s/members", "let go p", "let go q")
	d.step(claim.Resign{Err: errors.New("too late")})
	d.step(BidOver{Part: "p", Told: true, TermEnd: claim.TermEnd{Err: errors.New("told")}})
	d.step(CacheOver{Path: theMembers, Err: errors.New("closed")})
	d.step(seen(theMembers, "b"))
	d.step(BidOver{Part: "q", Told: true}, "deregister /s/members/a")
	d.step(RegistrationOver{})
	d.ends(nil)
}

// TestSharingLetsGoFirst: a part that is meant for it again is bid for when the
// last bid is gone; one whose owner has returned only then.
func TestSharingLetsGoFirst(t *testing.T) {
	members := []string{"a", "b", "c", "d"}
	given := Share(members, []string{"p", "q"})
	other := slices.IndexFunc(members, func(m string) bool { return given["p"] != m && given["q"] != m })
	d := share(t, SharingConfig{ID: given["p"], Parts: []string{"p"}})
	d.step(Registered{}, "follow /s/members")
	d.step(seen(theMembers, given["p"]+" ."), "bid p")
	if Share([]string{given["p"], members[other]}, []string{"p"})["p"] != given["p"] {
		t.Fatal("it would be the other's")
	}
	d.step(seen(theMembers, members[other]))
	d.step(seen(theMembers, "-"+given["p"]), "let go p") // its registration is lost
	d.step(seen(theMembers, given["p"]))
	d.step(seen(theMembers, "-"+given["p"]))
	d.step(seen(theMembers, given["p"]))
	d.step(BidOver{Part: "p", Told: true}, "bid p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true}})
	d.step(seen(theMembers, "-"+members[other]))
	d.step(seen(theMembers, members[other]+" -"+given["p"]))
	d.step(seen(theMembers, given["p"]), "bid p")
}

// TestSharingOfTasks: what a task leaves is tidied up before its name is bid for again,
// and a member does as many as it may, those that it has begun first.
func TestSharingOfTasks(t *testing.T) {
	d := share(t, SharingConfig{ID: "a", Tasks: true, Most: 1})
	d.step(Registered{}, "follow /s/members", "follow /s/tasks")
	d.step(seen(theTasks, "q ."))
	d.step(seen(theMembers, "a ."), "bid q")
	d.step(seen(theTasks, "p"))
	d.step(BidOver{Part: "q", TermEnd: claim.TermEnd{Returned: true}}, "tidy q")
	d.step(seen(theTasks, "-q"), "bid p")
	d.step(seen(theTasks, "q -p"), "let go p")
	d.step(BidOver{Part: "p", Told: true}, "tidy p")
	d.step(Tidied{"q"}, "bid q")
	d.step(CacheOver{Path: theTasks, Err: claimtest.ErrDeaf}, "unfollow /s/members", "let go q")
	d.step(CacheOver{Path: theMembers})
	d.step(Tidied{"p"})
	d.step(BidOver{Part: "q", Told: true}, "tidy q")
	d.step(Tidied{"q"}, "deregister /s/members/a")
	d.step(RegistrationOver{Err: claimtest.ErrRefused})
	d.ends(claimtest.ErrDeaf)
	d.ends(claimtest.ErrRefused)
}

// TestSharingOfATaskMadeAnew: one of the name of a task that was done is another task,
// also where the cache tells of its coming together with the other's going.
func TestSharingOfATaskMadeAnew(t *testing.T) {
	d := share(t, SharingConfig{ID: "a", Tasks: true, Most: 1})
	d.step(Registered{}, "follow /s/members", "follow /s/tasks")
	d.step(seen(theTasks, "p ."))
	d.step(seen(theMembers, "a ."), "bid p")
	d.step(seen(theTasks, "-p p"), "let go p") // done, and not gone yet
	d.step(BidOver{Part: "p", Told: true, TermEnd: claim.TermEnd{Returned: true}}, "tidy p")
	d.step(Tidied{"p"}, "bid p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true}}, "tidy p")
	d.step(seen(theTasks, "-p p"))
	d.step(Tidied{"p"}, "bid p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true}}, "tidy p")
	d.step(Tidied{"p"})
	d.step(seen(theTasks, "-p p"), "bid p")
}

// TestSharingFails with its registration, its caches and its owners.
func TestSharingFails(t *testing.T) {
	d := share(t, SharingConfig{ID: "a"})
	d.step(RegistrationOver{Err: claimtest.ErrRefused})
	d.ends(claimtest.ErrRefused)

	d = sole(t)
	d.step(BidOver{Part: "q", TermEnd: claim.TermEnd{Returned: true, Err: claimtest.ErrDeaf}}, "unfollow /s/members", "let go p")
	d.step(RegistrationOver{})
	d.step(CacheOver{Path: theMembers})
	d.step(BidOver{Part: "p", Told: true})
	d.ends(claimtest.ErrDeaf)

	d = sole(t) // two owners fail before either is told of the other
	d.step(BidOver{Part: "q", TermEnd: claim.TermEnd{Returned: true, Err: claimtest.ErrDeaf}}, "unfollow /s/members", "let go p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true, Err: claimtest.ErrRefused}})
	d.step(CacheOver{Path: theMembers}, "deregister /s/members/a")
	d.step(RegistrationOver{})
	d.ends(claimtest.ErrDeaf)

	d = share(t, SharingConfig{ID: "a", Parts: []string{"p"}}) // it leaves before it is there
	d.step(claim.Resign{}, "deregister /s/members/a")
	d.step(Registered{})
	d.step(RegistrationOver{})
	d.ends(nil)
}

// TestSharingCountsMembers alone: neither what stays nor what was only set.
func TestSharingCountsMembers(t *testing.T) {
	d := share(t, SharingConfig{ID: "b", Parts: []string{"p", "q"}})
	d.step(Registered{}, "follow /s/members")
	all := seen(theMembers, "a b c x .")
	all.Events[0].Type = cache.NodeChanged
	all.Events[2].Node.Stat.EphemeralOwner = 0
	all.Events[3].Node.Path = theMembers
	d.step(all, "bid p", "bid q")
	d.step(seen(theMembers, "b ."))
}

// TestTermEnd: who has lost a claim bids again; who has done, or was refused, does not.
func TestTermEnd(t *testing.T) {
	for end, again := range map[claim.TermEnd]bool{{}: true, {Returned: true}: false, {Err: claimtest.ErrRefused}: false} {
		if end.Again() != again {
			t.Errorf("%+v: again %v", end, end.Again())
		}
	}
	var passing []string
	for r := claim.Resigned; r <= claim.Occupied; r++ {
		if r.Passing() {
			passing = append(passing, r.String())
		}
	}
	if got := fmt.Sprint(passing); got != "[no proof in time that the session lives session expired bid deleted by somebody else]" {
		t.Error(got)
	}
}
