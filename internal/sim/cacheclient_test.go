package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/sim/check"
)

// cacheOptions make for much that caches have to follow: their clients are
// killed, stopped and cut off, and so are servers.
func cacheOptions(seed uint64) Options {
	return Options{Seed: seed, Events: 60_000, Recipe: Caches, Observers: -1, Clients: 4, Candidates: 4, TickMS: 200, ThinkMS: 20}
}

// cacheTally counts what caches tell.
type cacheTally map[cache.CacheEventType]int

func (cacheTally) Name() string { return "Tally" }

func (c cacheTally) See(o any) string {
	if e, ok := o.(cacheTold); ok {
		c[e.e.Type]++
	}
	return ""
}

// Caches of clients that are killed, stopped and cut off follow a tree that
// changes, over servers that fail: what they show was there at each moment, never
// goes back, and is the tree in the end.
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

// Who gives up the watch of a tree loses every watch that its client has at the
// root, as servers remove them together: nothing is missed then.
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
