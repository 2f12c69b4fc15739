package recipe

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/claim/cache"
	"bellwether/wire"
)

// copied is a tree of znodes as a reader knows it. The root has the key "".
type copied map[string]*cache.Node

// apply processes an event. It fails the test if a znode is added before its parent, or removed before its
// children.
func (c copied) apply(typ CacheEventType, n, old *cache.Node) error {
	was := c[n.Path]
	switch {
	case typ == NodeAdded && (was != nil || n.Path != "/" && c[path.Dir(n.Path)] == nil):
		return fmt.Errorf("%s is added, but it exists already or has no parent", n.Path)
	case typ == NodeChanged && (was == nil || was.Stat.Mzxid != old.Stat.Mzxid):
		return fmt.Errorf("%s is set, but the reader knows another znode there", n.Path)
	case typ == NodeRemoved && (was == nil || was.Stat.Mzxid != n.Stat.Mzxid):
		return fmt.Errorf("%s is removed, but the reader knows another znode there", n.Path)
	case typ == NodeRemoved:
		delete(c, n.Path)
		for name := range c {
			if path.Dir(name) == n.Path {
				return fmt.Errorf("%s goes before %s", n.Path, name)
			}
		}
	default:
		c[n.Path] = n
	}
	return nil
}

// TestCacheNewsAreTheDifference checks that the events lead a reader to the current tree, whenever it
// takes them, and that no event is superfluous.
func TestCacheNewsAreTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var news cacheNews
		tree, known := copied{}, copied{}
		zxid := wire.Zxid(0)
		tell := func(e cache.Event) {
			if err := tree.apply(CacheEventType(e.Type), e.Node, e.Old); err != nil {
				t.Fatalf("the test's own: %v", err)
			}
			news.add(e)
		}
		paths := []string{"/", "/a", "/a/b", "/a/b/c", "/a/d", "/e"}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			zxid++
			p := rapid.SampledFrom(paths).Draw(t, "path")
			n := &cache.Node{Path: p, Stat: wire.Stat{Czxid: zxid, Mzxid: zxid}}
			switch was := tree[p]; {
			case rapid.IntRange(0, 19).Draw(t, "take") == 0:
				difference(t, &news, tree, known)
			case was == nil && (p == "/" || tree[path.Dir(p)] != nil):
				tell(cache.Event{Type: cache.NodeAdded, Node: n})
			case was != nil && rapid.Bool().Draw(t, "set"):
				n.Stat.Czxid = was.Stat.Czxid
				tell(cache.Event{Type: cache.NodeChanged, Node: n, Old: was})
			case was != nil:
				for _, name := range slices.Backward(slices.Sorted(maps.Keys(tree))) {
					if name == p || p == "/" || strings.HasPrefix(name, p+"/") {
						tell(cache.Event{Type: cache.NodeRemoved, Node: tree[name]})
					}
				}
			}
		}
		difference(t, &news, tree, known)
	})
}

// difference takes the events that the reader was not given yet, applies them to known, and
// compares the result with tree.
func difference(t *rapid.T, news *cacheNews, tree, known copied) {
	seen := map[string]int{}
	for _, e := range news.take(false) {
		n, old := cache.Node(e.Node), cache.Node(e.Old)
		if err := known.apply(e.Type, &n, &old); err != nil {
			t.Fatal(err)
		}
		if seen[n.Path]++; seen[n.Path] > 2 || seen[n.Path] == 2 && e.Type != NodeAdded {
			t.Fatalf("%s is told of too often", n.Path)
		}
	}
	same := func(a, b *cache.Node) bool { return a.Stat.Mzxid == b.Stat.Mzxid }
	if !maps.EqualFunc(known, tree, same) {
		t.Fatalf("known are %v, there are %v", known, tree)
	}
}

// TestCacheNewsAreCurrentLast checks that CacheCurrent is the last event, and that it is left out while
// the Cache is stale.
func TestCacheNewsAreCurrentLast(t *testing.T) {
	var news cacheNews
	n := &cache.Node{Path: "/"}
	for _, stale := range []bool{false, true} {
		news.add(cache.Event{Type: cache.Current})
		news.add(cache.Event{Type: cache.NodeAdded, Node: n})
		want := []CacheEvent{{Type: NodeAdded, Node: Node(*n)}, {Type: CacheCurrent}}
		if stale {
			want = want[:1]
		}
		got := news.take(stale)
		if !slices.EqualFunc(got, want, func(a, b CacheEvent) bool { return a.Type == b.Type && a.Node.Path == b.Node.Path }) {
			t.Errorf("stale %v: %v, want %v", stale, got, want)
		}
	}
}
