package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
)

// walked lists the paths that Walk finds below a path, sorted.
func (w *world) walked(c Client, path string) (paths []string, hidden bool) {
	w.Helper()
	hidden, code := w.tree.Walk(c, path, func(part []Walked) bool {
		for _, v := range part {
			if v.Stat != w.stat(v.Path) {
				w.Errorf("%s has the stat %+v, want %+v", v.Path, v.Stat, w.stat(v.Path))
			}
			paths = append(paths, v.Path)
		}
		return true
	})
	if code != wire.OK {
		w.Fatal(code)
	}
	slices.Sort(paths)
	return paths, hidden
}

// TestWalkFindsWhatAClientMayList: Walk finds every znode below a path, level by level, except those below znodes
// that the client may not read.
func TestWalkFindsWhatAClientMayList(t *testing.T) {
	w := newWorld(t, Options{})
	for _, path := range []string{"/a", "/a/b", "/a/b/c", "/d"} {
		w.ok(create(path, 0))
	}
	w.ok(createACL("/closed", acl(31&^1, "world:anyone")))
	w.ok(create("/closed/in", 0))
	w.ok(createACL("/a/leaf", acl(31&^1, "world:anyone"))) // nothing is below it
	c := &conn{}
	paths, hidden := w.walked(c, "/")
	want := []string{"/a", "/a/b", "/a/b/c", "/a/leaf", "/closed", "/d", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}
	if !slices.Equal(paths, want) || !hidden {
		t.Errorf("from the root: %q, hidden %v", paths, hidden)
	}
	if paths, hidden := w.walked(c, "/a"); !slices.Equal(paths, []string{"/a/b", "/a/b/c", "/a/leaf"}) || hidden {
		t.Errorf("from /a: %q, hidden %v", paths, hidden)
	}
	for path, want := range map[string]wire.Code{"/closed": wire.ErrNoAuth, "/missing": wire.ErrNoNode} {
		if _, code := w.tree.Walk(c, path, func([]Walked) bool { return true }); code != want {
			t.Errorf("%s: %v, want %v", path, code, want)
		}
	}
}

// TestWalkOfManyZnodes: a large tree is walked in parts, shallow znodes first, while it changes; a walk can stop.
func TestWalkOfManyZnodes(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/many", 0))
	for i := range 3000 {
		w.ok(create(fmt.Sprintf("/many/n%04d", i), 0))
	}
	w.ok(create("/many/n0007/deep", 0))
	if paths, _ := w.walked(&conn{}, "/many"); len(paths) != 3001 || len(slices.Compact(paths)) != 3001 {
		t.Errorf("%d paths", len(paths))
	}
	parts, deepest := 0, 0
	w.tree.Walk(&conn{}, "/", func(part []Walked) bool {
		if parts++; parts == 2 {
			w.ok(remove("/many/n0007/deep", -1))
		}
		if len(part) > 2*yieldEvery {
			t.Errorf("one part has %d znodes", len(part))
		}
		for _, v := range part {
			depth := strings.Count(v.Path, "/")
			if depth < deepest {
				t.Errorf("%s comes after znodes of level %d", v.Path, deepest)
			}
			deepest = depth
		}
		return true
	})
	if parts < 3 || deepest != 2 {
		t.Errorf("%d parts, deepest level %d", parts, deepest)
	}
	calls := 0
	w.tree.Walk(&conn{}, "/", func([]Walked) bool { calls++; return false })
	if calls != 1 {
		t.Errorf("a walk that was stopped made %d calls", calls)
	}
}

// TestKindOf: the owner of a znode shows its kind.
func TestKindOf(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	w.ok(create("/persistent", 0))
	w.ok(create("/ephemeral", wire.FlagEphemeral))
	w.ok(container("/container"))
	w.ok(createTTL("/ttl", wire.FlagPersistentTTL, 5000))
	for path, want := range map[string]Kind{"/persistent": {Name: "persistent"}, "/ephemeral": {Name: "ephemeral"},
		"/container": {Name: "container"}, "/ttl": {"ttl", 5000}} {
		if k, ok := w.tree.KindOf(path); k != want || !ok {
			t.Errorf("%s: %+v %v", path, k, ok)
		}
	}
	if _, ok := w.tree.KindOf("/missing"); ok {
		t.Error("a missing znode has a kind")
	}
}
