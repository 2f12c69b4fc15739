package tree

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/wire"
)

// TestReadErrors: each read returns the right code, and reserves the place of its reply
// exactly once, with the last zxid.
func TestReadErrors(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(createACL("/closed", acl(31&^1, "world:anyone")))
	w.ok(createACL("/locked", acl(31, "digest:a:b")))
	w.ok(create("/open", 0))
	reads := map[string]func(c *conn, path string) wire.Code{
		"getData":     func(c *conn, p string) wire.Code { return w.tree.GetData(c, p, true, new(wire.DataResponse)) },
		"exists":      func(c *conn, p string) wire.Code { return w.tree.Exists(c, p, true, new(wire.StatResponse)) },
		"getACL":      func(c *conn, p string) wire.Code { return w.tree.GetACL(c, p, new(wire.ACLResponse)) },
		"getChildren": func(c *conn, p string) wire.Code { return w.tree.Children(c, p, true, new(Listing)) },
		"count":       func(c *conn, p string) wire.Code { return w.tree.CountAll(c, p, goOn, new(wire.CountResponse)) },
	}
	for name, read := range reads {
		for path, want := range map[string]wire.Code{
			"/open": wire.OK, "/": wire.OK, "": wire.OK, "/missing": wire.ErrNoNode, "/open/": wire.ErrNoNode, "open": wire.ErrNoNode,
			"//open": wire.ErrNoNode, "/closed": wire.ErrNoAuth, "/locked": wire.ErrNoAuth, "/missing/\x00": wire.ErrNoNode,
		} {
			switch {
			case name == "getACL" && path == "/closed":
				want = wire.OK // the permission ADMIN is enough for getACL
			case name == "exists" && path == "/missing/\x00":
				want = wire.ErrBadArguments
			}
			c := &conn{session: alice}
			if got := read(c, path); got != want {
				t.Errorf("%s %q: %v, want %v", name, path, got, want)
			}
			if log := fmt.Sprint(c.take()); log != fmt.Sprintf("[reply %d]", w.z) {
				t.Errorf("%s %q: %s", name, path, log)
			}
			watched := w.tree.watches.modes(c, path)
			wantWatch := want == wire.OK && name != "getACL" && name != "count" || name == "exists" && want == wire.ErrNoNode
			if (watched != 0) != wantWatch {
				t.Errorf("%s %q: watches %b", name, path, watched)
			}
			w.tree.Forget(c)
		}
	}
	c := &conn{}
	w.tree.Reserve(c)
	if log := fmt.Sprint(c.take()); log != fmt.Sprintf("[reply %d]", w.z) {
		t.Errorf("reserve: %s", log)
	}
	if n := w.tree.Counts().Watchers; n != 0 {
		t.Errorf("%d watchers left", n)
	}
}

func TestChildrenAndCounts(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/p", 0))
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("kid%02d", i)
		w.ok(create("/p/"+name, 0))
		want = append(want, name)
	}
	w.ok(create("/p/kid07/deep", 0))
	var list Listing
	w.tree.Children(&conn{}, "/p", false, &list)
	slices.Sort(list.Children)
	if !slices.Equal(list.Children, want) || list.Stat != w.stat("/p") {
		t.Errorf("children %v", list.Children)
	}
	count := func(path string, want int32) {
		t.Helper()
		var out wire.CountResponse
		if w.tree.CountAll(&conn{}, path, goOn, &out); out.Count != want {
			t.Errorf("count of %s is %d, want %d", path, out.Count, want)
		}
	}
	count("/p", 41)
	count("/p/kid07", 1)
	count("/p/kid08", 0)
	count("/", 45)
	count("/zookeeper", 2)
	w.ok(create("/none", 0))
	var none Listing
	if w.tree.Children(&conn{}, "/none", false, &none); none.Children == nil || len(none.Children) != 0 {
		t.Errorf("no children are %#v", none.Children)
	}
	if c := w.tree.Counts(); c.Nodes != 48 || c.DataBytes != 44+2*(2+5+40*8+13) {
		t.Errorf("counts %+v", c)
	}
}

func goOn() bool { return true }

// TestCountDoesNotBlockWriters: very many descendants are counted in steps. Transactions
// are applied between two steps, and the count stops when its caller gives up. A znode
// that exists all the time is counted once.
func TestCountDoesNotBlockWriters(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/p", 0))
	w.ok(create("/p/deep", 0))
	const wide, deep = 2 * divideAt, 3000
	for i := range wide {
		w.ok(create(fmt.Sprintf("/p/%d", i), 0))
	}
	for i := range deep {
		w.ok(create(fmt.Sprintf("/p/deep/%d", i), 0))
	}
	var out wire.CountResponse
	steps := 0
	w.tree.CountAll(&conn{}, "/p", func() bool {
		w.ok(create(fmt.Sprintf("/p/new%d", steps), 0))
		steps++
		return true
	}, &out)
	if least := int32(1 + wide + deep); steps < (wide+deep)/yieldEvery || out.Count < least || out.Count > least+int32(steps) {
		t.Errorf("%d znodes are counted in %d steps, want %d at least", out.Count, steps, least)
	}
	steps = 0
	if code := w.tree.CountAll(&conn{}, "/p", func() bool { steps++; return false }, &out); steps != 1 || code != wire.ErrSystem {
		t.Errorf("%d steps after the first, although nobody wants the count: %v", steps, code)
	}
}

// TestMultiRead: each read of a multiRead has a result of its own. A write among them
// makes the whole request fail.
func TestMultiRead(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(createACL("/closed", acl(2, "world:anyone")))
	read := func(op wire.OpCode, path string) wire.Op {
		return wire.Op{Type: op, Request: &wire.PathWatchRequest{Path: path, Watch: true}}
	}
	c := &conn{}
	var out wire.MultiResponse
	code := w.tree.MultiRead(c, []wire.Op{
		read(wire.OpGetData, "/a"), read(wire.OpGetChildren, "/"), read(wire.OpGetData, "/missing"), read(wire.OpGetChildren, "/closed"),
	}, 1<<20, &out)
	if got := results(Result{Response: &out}); code != wire.OK || got != "4:0 8:0 -1:-101 -1:-102 " {
		t.Errorf("results %s", got)
	}
	if r := out.Results[0].Response.(*wire.DataResponse); string(r.Data) != "/a" || r.Stat != w.stat("/a") {
		t.Errorf("getData %+v", r)
	}
	if r := out.Results[1].Response.(*wire.ChildrenResponse); len(r.Children) != 3 {
		t.Errorf("getChildren %+v", r)
	}
	if w.tree.Counts().Watches != 0 {
		t.Error("multiRead sets watches")
	}
	code = w.tree.MultiRead(c, []wire.Op{read(wire.OpGetData, "/a"), opDelete("/a"), read(wire.OpGetData, "/a")}, 1<<20, &out)
	if got := results(Result{Response: &out}); code != wire.ErrMarshalling || got != "4:0 " {
		t.Errorf("with a write inside: %v, %s", code, got)
	}
	if code := w.tree.MultiRead(c, nil, 0, &out); code != wire.OK || len(out.Results) != 0 {
		t.Errorf("empty: %v", code)
	}
	if log := c.take(); len(log) != 3 {
		t.Errorf("reserved %v", log)
	}
}

// TestReadersKeepWhatTheyGot: data that a reader got does not change when the znode
// changes, and a znode keeps none of the memory of its request.
func TestReadersKeepWhatTheyGot(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(create("/a/kid", 0))
	var data wire.DataResponse
	var kids Listing
	w.tree.GetData(&conn{}, "/a", false, &data)
	w.tree.Children(&conn{}, "/a", false, &kids)
	req := setData("/a", "XX", -1)
	txn, _ := w.prepare(req)
	w.tree.Apply(txn)
	clear(req.Body)
	w.ok(remove("/a/kid", -1))
	if string(data.Data) != "/a" || kids.Children[0] != "kid" {
		t.Errorf("read %q %q", data.Data, kids.Children)
	}
	if w.tree.GetData(&conn{}, "/a", false, &data); string(data.Data) != "XX" {
		t.Errorf("written %q", data.Data)
	}
}
