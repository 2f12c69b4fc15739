package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// cacheOptions returns options for runs with many changes that caches must follow. Their
// clients and the servers are killed, stopped and cut off.
func cacheOptions(seed uint64) Options {
	return Options{Seed: seed, Events: 60_000, Recipe: client.Caches, Observers: -1, Clients: 4, Candidates: 4, TickMS: 200, ThinkMS: 20}
}

// cacheTally counts the events that caches report.
type cacheTally map[cache.EventType]int

func (cacheTally) Name() string { return "Tally" }

func (c cacheTally) See(o any) string {
	if e, ok := o.(check.CacheTold); ok {
		c[e.Event.Type]++
	}
	return ""
}

// TestCaches lets caches follow a changing tree while their clients and the servers are
// killed, stopped and cut off. It checks that a cache shows only states that existed, never
// goes back, and equals the tree in the end.
func TestCaches(t *testing.T) {
	all, reached := cacheTally{}, map[string]int{}
	for seed := range uint64(6) {
		o := cacheOptions(seed + 1)
		o.rule = func() check.Checker { return all }
		s := New(o)
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
		for name, n := range s.result().Reached {
			reached[name] += n
		}
	}
	t.Log(all, reached[situationNames[situationTreeAgain]], reached[situationNames[situationSince]])
	for what, n := range map[cache.EventType]int{cache.NodeAdded: 500, cache.NodeChanged: 1000, cache.NodeRemoved: 100, cache.Current: 100} {
		if all[what] < n {
			t.Errorf("%d events %v, want %d", all[what], what, n)
		}
	}
	for _, x := range []situation{situationTreeAgain, situationSince} {
		if reached[situationNames[x]] < 20 {
			t.Errorf("%s: %d times", situationNames[x], reached[situationNames[x]])
		}
	}
}

// TestWatchesOfAZnodeAreRemovedTogether removes the watch of a tree. With it, the server removes
// all watches that the client has at the root. The test checks that the client misses no event
// for that reason.
func TestWatchesOfAZnodeAreRemovedTogether(t *testing.T) {
	s := newScene(t, Options{})
	c := s.client(nil)
	s.carried(c.Ask(c.Creation("/a")))
	s.carried(c.Ask(client.Get("/a", true)))
	for _, kind := range []claim.OpKind{claim.OpWatchTree, claim.OpUnwatch} {
		done := false
		c.CarryTree(claim.Op{Kind: kind, Path: "/a"}, func(r claim.Result) { done = r.Err == nil })
		s.until("it is carried out", 20*machine.Second, func() bool { return done })
	}
	s.carried(c.Ask(c.Write("/a")))
}
