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

// dialogue steps a Sharing of parts below /s event by event.
type dialogue struct {
	t *testing.T
	m *Sharing
}

func share(t *testing.T, cfg SharingConfig) *dialogue {
	cfg.Parent = "/s"
	d := &dialogue{t, NewSharing(cfg)}
	d.wants("register /s/members/" + cfg.ID)
	return d
}

// step steps an event, and fails unless exactly these operations begin.
func (d *dialogue) step(ev claim.Event, starts ...string) {
	d.t.Helper()
	d.m.Step(claim.Moment{}, ev)
	d.wants(starts...)
}

func (d *dialogue) wants(starts ...string) {
	d.t.Helper()
	claimtest.WantStarts(d.t, d.m.Ready().Start, starts)
}

// ends fails unless the Sharing has ended with this error.
func (d *dialogue) ends(err error) {
	d.t.Helper()
	if !d.m.Over() || !errors.Is(d.m.Err(), err) || err == nil && d.m.Err() != nil {
		d.t.Errorf("over: %v, by %v, not %v", d.m.Over(), d.m.Err(), err)
	}
}

// seen returns the event of a cache that reports these names. A minus before a name means that it was
// removed. A dot stands for cache.Current.
func seen(root, names string) Seen {
	ev := Seen{Path: root}
	for _, name := range strings.Fields(names) {
		e := cache.Event{Node: &cache.Node{}}
		switch gone, is := strings.CutPrefix(name, "-"); {
		case name == ".":
			e.Type, e.Node = cache.Current, nil
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

// sole returns a member that is alone and bids for both parts.
func sole(t *testing.T) *dialogue {
	t.Helper()
	d := share(t, SharingConfig{ID: "a", Parts: []string{"q", "p"}})
	d.step(Registered{}, "follow /s/members")
	d.step(Registered{})
	d.step(seen(theMembers, "a"))
	d.step(seen(theMembers, "."), "bid p", "bid q")
	return d
}

// TestSharingFromBeginToEnd checks that a member leaves only after it has let go of all parts and follows
// nothing.
func TestSharingFromBeginToEnd(t *testing.T) {
	d := sole(t)
	d.step(BidOver{Part: "p"}, "bid p") // the session of the bid was lost
	d.step(claim.Resign{}, "unfollow /s/members", "resign p", "resign q")
	d.step(claim.Resign{Err: errors.New("too late")})
	d.step(BidOver{Part: "p", Resigned: true, TermEnd: claim.TermEnd{Err: errors.New("told")}})
	d.step(CacheOver{Path: theMembers, Err: errors.New("closed")})
	d.step(seen(theMembers, "b"))
	d.step(BidOver{Part: "q", Resigned: true}, "deregister /s/members/a")
	d.step(RegistrationOver{})
	d.ends(nil)
}

// TestSharingLetsGoFirst checks that a part that is assigned to the member again is bid for when the last
// bid is gone. If the owner had returned by itself, it is bid for only after it was assigned to another
// member.
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
	d.step(seen(theMembers, "-"+given["p"]), "resign p") // the member's own registration is lost
	d.step(seen(theMembers, given["p"]))
	d.step(seen(theMembers, "-"+given["p"]))
	d.step(seen(theMembers, given["p"]))
	d.step(BidOver{Part: "p", Resigned: true}, "bid p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true}})
	d.step(seen(theMembers, "-"+members[other]))
	d.step(seen(theMembers, members[other]+" -"+given["p"]))
	d.step(seen(theMembers, given["p"]), "bid p")
}

// TestSharingOfTasks checks that the election of a task is deleted before the member bids for a task of
// the same name. It also checks the limit, and that tasks which the member has begun come first.
func TestSharingOfTasks(t *testing.T) {
	d := share(t, SharingConfig{ID: "a", Tasks: true, Most: 1})
	d.step(Registered{}, "follow /s/members", "follow /s/tasks")
	d.step(seen(theTasks, "q ."))
	d.step(seen(theMembers, "a ."), "bid q")
	d.step(seen(theTasks, "p"))
	d.step(BidOver{Part: "q", TermEnd: claim.TermEnd{Returned: true}}, "tidy q")
	d.step(seen(theTasks, "-q"), "bid p")
	d.step(seen(theTasks, "q -p"), "resign p")
	d.step(BidOver{Part: "p", Resigned: true}, "tidy p")
	d.step(Tidied{"q"}, "bid q")
	d.step(CacheOver{Path: theTasks, Err: claimtest.ErrGivenUp}, "unfollow /s/members", "resign q")
	d.step(CacheOver{Path: theMembers})
	d.step(Tidied{"p"})
	d.step(BidOver{Part: "q", Resigned: true}, "tidy q")
	d.step(Tidied{"q"}, "deregister /s/members/a")
	d.step(RegistrationOver{Err: claimtest.ErrRefused})
	d.ends(claimtest.ErrGivenUp)
	d.ends(claimtest.ErrRefused)
}

// TestSharingOfATaskMadeAnew checks that a new task with the name of a finished one is another task, even
// if the cache reports both changes at once.
func TestSharingOfATaskMadeAnew(t *testing.T) {
	d := share(t, SharingConfig{ID: "a", Tasks: true, Most: 1})
	d.step(Registered{}, "follow /s/members", "follow /s/tasks")
	d.step(seen(theTasks, "p ."))
	d.step(seen(theMembers, "a ."), "bid p")
	d.step(seen(theTasks, "-p p"), "resign p") // the task is done, and its deletion has not been reported yet
	d.step(BidOver{Part: "p", Resigned: true, TermEnd: claim.TermEnd{Returned: true}}, "tidy p")
	d.step(Tidied{"p"}, "bid p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true}}, "tidy p")
	d.step(seen(theTasks, "-p p"))
	d.step(Tidied{"p"}, "bid p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true}}, "tidy p")
	d.step(Tidied{"p"})
	d.step(seen(theTasks, "-p p"), "bid p")
}

// TestSharingFails checks that a failure of the registration, a cache or an owner ends the member.
func TestSharingFails(t *testing.T) {
	d := share(t, SharingConfig{ID: "a"})
	d.step(RegistrationOver{Err: claimtest.ErrRefused})
	d.ends(claimtest.ErrRefused)

	d = sole(t)
	d.step(BidOver{Part: "q", TermEnd: claim.TermEnd{Returned: true, Err: claimtest.ErrGivenUp}}, "unfollow /s/members", "resign p")
	d.step(RegistrationOver{})
	d.step(CacheOver{Path: theMembers})
	d.step(BidOver{Part: "p", Resigned: true})
	d.ends(claimtest.ErrGivenUp)

	d = sole(t) // the second owner fails by itself before it has let go of its part
	d.step(BidOver{Part: "q", TermEnd: claim.TermEnd{Returned: true, Err: claimtest.ErrGivenUp}}, "unfollow /s/members", "resign p")
	d.step(BidOver{Part: "p", TermEnd: claim.TermEnd{Returned: true, Err: claimtest.ErrRefused}})
	d.step(CacheOver{Path: theMembers}, "deregister /s/members/a")
	d.step(RegistrationOver{})
	d.ends(claimtest.ErrGivenUp)

	d = share(t, SharingConfig{ID: "a", Parts: []string{"p"}}) // the member leaves before it is registered
	d.step(claim.Resign{}, "deregister /s/members/a")
	d.step(Registered{})
	d.step(RegistrationOver{})
	d.ends(nil)
}

// TestSharingCountsMembers checks that persistent znodes and changes of data do not count as members.
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

// TestTermEnd checks that a member bids again after a lost claim, but not after the work is done or the
// server has refused.
func TestTermEnd(t *testing.T) {
	for end, again := range map[claim.TermEnd]bool{{}: true, {Returned: true}: false, {Err: claimtest.ErrRefused}: false} {
		if end.Again() != again {
			t.Errorf("%+v: again %v", end, end.Again())
		}
	}
	var passing []string
	for r := claim.Resigned; r <= claim.Occupied; r++ {
		if claim.Passing(r) {
			passing = append(passing, r.String())
		}
	}
	if got := fmt.Sprint(passing); got != "[no proof in time that the session lives session expired bid deleted by somebody else]" {
		t.Error(got)
	}
}
