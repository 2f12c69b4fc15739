package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/sim/check"
)

// cacheOptions returns options for runs with many changes that caches must follow. Their
// clients and the servers are killed, stopped and cut off.
func cacheOptions(seed uint64) Options {
	return Options{Seed: seed, Events: 60_000, Recipe: Caches, Observers: -1, Clients: 4, Candidates: 4, TickMS: 200, ThinkMS: 20}
}

// cacheTally counts the events that caches report.
type cacheTally map[cache.CacheEventType]int

func (cacheTally) Name() string { return "Tally" }

func (c cacheTally) See(o any) string {
	if e, ok := o.(cacheTold); ok {
		c[e.e.Type]++
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
	for what, n := range map[cache.CacheEventType]int{cache.NodeAdded: 500, cache.NodeChanged: 1000, cache.NodeRemoved: 100, cache.CacheCurrent: 100} {
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

// TestWatchesOfAZnodeAreRemovedTogether removes the watch of a tree. Servers remove all
// watches that the client has at the root together with it. The test checks that no event
// is missed for that reason.
func TestWatchesOfAZnodeAreRemovedTogether(t *testing.T) {
	s := newScene(t, Options{})
	c := s.client(nil)
	h := &runner{c: c, step: func(claim.Event) {}}
	s.carried(c.ask(c.making("/a")))
	s.carried(c.ask(get("/a", true)))
	for _, carry := range []func(string, func(claim.Result)){h.watchTree, h.unwatchTree} {
		done := false
		carry("/a", func(r claim.Result) { done = r.Err == nil })
		s.until("it is carried out", 20*second, func() bool { return done })
	}
	s.carried(c.ask(c.setting("/a")))
}
