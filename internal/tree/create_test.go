package tree

import (
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// expect runs a request and compares its code.
func (w *world) expect(name string, req *Request, want wire.Code) {
	w.Helper()
	if got := w.do(req).Err; got != want {
		w.Errorf("%s: %v (%d), want %v", name, got, int32(got), want)
	}
}

func createFlags(op wire.OpCode, path string, flags int32, list ...wire.ACL) *Request {
	return request(op, &wire.CreateRequest{Path: path, ACL: list, Flags: flags})
}

// TestCreateErrorOrder: a request that fails several checks gets the error code of the
// first of them.
func TestCreateErrorOrder(t *testing.T) {
	w := newWorld(t, Options{EnforceQuota: true})
	open := acl(31, "world:anyone")
	bad := acl(31, "digest:x")
	w.ok(createACL("/closed", acl(1, "world:anyone")))
	w.ok(create("/eph", wire.FlagEphemeral))
	w.ok(create("/q", 0))
	w.ok(create("/q/is", 0))
	w.setQuota("/q", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2")
	const c, dead = wire.OpCreate, wire.SessionID(99)
	for _, row := range []struct {
		name string
		req  *Request
		want wire.Code
	}{
		{"cut short", (&Request{Op: c, Body: []byte{0, 0}}).by(dead), wire.ErrMarshalling},
		{"null path and bad flags", nullPath(9).by(dead), wire.ErrBadArguments},
		{"null path and a dead session", nullPath(0).by(dead), wire.ErrSessionExpired},
		{"null path", nullPath(0), wire.ErrMarshalling},
		{"flags", createFlags(c, "nope", 7, bad).by(dead), wire.ErrBadArguments},
		{"flags below 0", createFlags(c, "nope", -1, bad).by(dead), wire.ErrBadArguments},
		{"ttl switched off", createTTL("nope", 5, -7).by(dead), wire.ErrUnimplemented},
		{"ttl flags of a create switched off", createFlags(c, "/n", 5, open), wire.ErrUnimplemented},
		{"createTTL without a ttl mode", createTTL("nope", 0, -1).by(dead), wire.ErrBadArguments},
		{"session", createFlags(c, "nope", 0, bad).by(dead), wire.ErrSessionExpired},
		{"session 0", createFlags(c, "nope", 0, bad).by(0), wire.ErrSessionExpired},
		{"no slash", createFlags(c, "nope", 0, bad), wire.ErrBadArguments},
		{"nul", createFlags(c, "/no\x00pe", 0, bad), wire.ErrBadArguments},
		{"list before parent", createFlags(c, "/missing/x", 0, bad), wire.ErrInvalidACL},
		{"no list", createFlags(c, "/missing/x", 0), wire.ErrInvalidACL},
		{"parent before its path's form", createFlags(c, "/missing//x", 0, open), wire.ErrNoNode},
		{"parent verbatim", createFlags(c, "/q//x", 0, open), wire.ErrNoNode},
		{"permission before form", createFlags(c, "/closed/.", 0, open), wire.ErrNoAuth},
		{"form", createFlags(c, "/eph/..", 0, open), wire.ErrBadArguments},
		{"slash at the end", createFlags(c, "/q/", 0, open), wire.ErrBadArguments},
		{"root", createFlags(c, "/", 0, open), wire.ErrNodeExists},
		{"beyond the basic plane", createFlags(c, "/\U0001F600", 0, open), wire.ErrBadArguments},
		{"malformed text", createFlags(c, "/a\xff", 0, open), wire.ErrBadArguments},
		{"parent is ephemeral", createFlags(c, "/eph/kid", 0, open), wire.ErrNoChildrenForEphemerals},
		{"exists before quota", createFlags(c, "/q/is", 0, open), wire.ErrNodeExists},
		{"quota", createFlags(c, "/q/more", 0, open), wire.ErrQuotaExceeded},
		{"exists", createFlags(c, "/zookeeper", 0, open), wire.ErrNodeExists},
		{"fine", createFlags(c, "/fine", 0, open), wire.OK},
		{"fine below zookeeper", createFlags(c, "/zookeeper/mine", 0, open), wire.OK},
	} {
		z := w.z
		w.expect(row.name, row.req, row.want)
		if used := w.z - z; used != 1 {
			t.Errorf("%s: %d zxids used", row.name, used)
		}
	}
}

// nullPath returns a create whose path is null, without data and without an ACL.
func nullPath(flags byte) *Request {
	return (&Request{Op: wire.OpCreate, Body: []byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, flags}}).by(alice)
}

// TestTTLArguments: a TTL must be in its range, and only some operations may have one.
func TestTTLArguments(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	const most = int64(0xffffffffff)
	for _, row := range []struct {
		name string
		req  *Request
		want wire.Code
	}{
		{"create with a ttl mode", create("/a", wire.FlagPersistentTTL), wire.ErrBadArguments},
		{"create2 with a ttl mode", createFlags(wire.OpCreate2, "/a", 6, acl(31, "world:anyone")), wire.ErrBadArguments},
		{"container with a ttl mode", createFlags(wire.OpCreateContainer, "/a", 5, acl(31, "world:anyone")), wire.ErrBadArguments},
		{"zero", createTTL("/a", 5, 0), wire.ErrBadArguments},
		{"below zero", createTTL("/a", 5, -1), wire.ErrBadArguments},
		{"too much", createTTL("/a", 5, most+1), wire.ErrBadArguments},
		// If a ZooKeeper server logs one of these requests, it crashes at every later
		// start.
		{"no ttl mode, ttl -1", createTTL("/a", 0, -1), wire.ErrBadArguments},
		{"ephemeral, ttl -1", createTTL("/a", 1, -1), wire.ErrBadArguments},
		{"container, ttl -1", createTTL("/a", 4, -1), wire.ErrBadArguments},
		{"no ttl mode, ttl 5", createTTL("/a", 0, 5), wire.ErrBadArguments},
		{"least", createTTL("/a", 5, 1), wire.OK},
		{"most", createTTL("/b", 5, most), wire.OK},
	} {
		w.expect(row.name, row.req, row.want)
	}
	res := w.ok(createTTL("/seq-", wire.FlagPersistentSequentialTTL, 9))
	if r := res.Response.(*wire.PathStatResponse); r.Path != "/seq-0000000002" || r.Stat.EphemeralOwner != 0 {
		t.Errorf("sequential TTL: %+v", r)
	}
	for path, owner := range map[string]uint64{"/a": 0xff00000000000001, "/b": 0xff0000ffffffffff} {
		if got := uint64(w.tree.find(path).owner); got != owner {
			t.Errorf("%s: owner %#x, want %#x", path, got, owner)
		}
	}
	if c := w.tree.Counts(); c.TTLs != 3 || c.Ephemerals != 0 {
		t.Errorf("counts %+v", c)
	}
}

// TestCreateResponses: the reply to create has no stat; the replies to create2 and the
// other kinds of create have one.
func TestCreateResponses(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	open := acl(31, "world:anyone")
	if r, ok := w.ok(create("/one", 0)).Response.(*wire.PathResponse); !ok || r.Path != "/one" {
		t.Errorf("create answers %+v", r)
	}
	for path, req := range map[string]*Request{
		"/two":   createFlags(wire.OpCreate2, "/two", 0, open),
		"/three": createFlags(wire.OpCreateContainer, "/three", 0, open),
		"/four":  createTTL("/four", 5, 1),
	} {
		r, ok := w.ok(req).Response.(*wire.PathStatResponse)
		if !ok || r.Path != path || r.Stat.Czxid != w.z || r.Stat != w.stat(path) {
			t.Errorf("%s answers %+v", path, r)
		}
	}
}

// TestContainerFlag: operation 19 makes a container whatever its flags are. An ordinary
// create with the flag makes a container only within a multi.
func TestContainerFlag(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(createFlags(wire.OpCreateContainer, "/real", 0, acl(31, "world:anyone")))
	w.ok(create("/plain", wire.FlagContainer))
	res := w.ok(multi(opCreate("/inside", wire.FlagContainer)))
	if r := res.Response.(*wire.MultiResponse).Results[0]; r.Type != wire.OpCreate2 {
		t.Errorf("a multi's container answers with type %v", r.Type)
	}
	for path, want := range map[string]kind{"/real": kindContainer, "/plain": kindPersistent, "/inside": kindContainer} {
		if got, _ := w.tree.o.kindOf(w.tree.find(path).owner); got != want {
			t.Errorf("%s is of kind %d, want %d", path, got, want)
		}
	}
}

// TestSequentialNames: the suffix is the number of children of any kind that were created
// in the parent. Failed creates do not count, and deletes do not lower it.
func TestSequentialNames(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/s", 0))
	next := func(path, want string) {
		t.Helper()
		if got := w.ok(create(path, wire.FlagPersistentSequential)).Response.(*wire.PathResponse).Path; got != want {
			t.Errorf("create %s gives %s, want %s", path, got, want)
		}
	}
	next("/s/a-", "/s/a-0000000000")
	next("/s/b-", "/s/b-0000000001")
	w.ok(create("/s/plain", 0))
	next("/s/", "/s/0000000003")
	next("/s/.", "/s/.0000000004")
	w.ok(remove("/s/a-0000000000", -1))
	w.expect("exists", create("/s/plain", 0), wire.ErrNodeExists)
	w.ok(multi(opCreate("/s/x-", 2), opCheck("/missing", -1)))
	next("/s/a-", "/s/a-0000000005")
	w.ok(multi(opCreate("/s/m-", 2), opCreate("/s/m-", 3)))
	if !w.exists("/s/m-0000000006") || !w.exists("/s/m-0000000007") {
		t.Error("a multi's sequential creates are not numbered consecutively")
	}
	next("/", "/0000000001")
	if s := w.stat("/s"); s.Cversion != 9 || s.NumChildren != 7 {
		t.Errorf("stat of the parent %+v", s)
	}
}

// TestSequenceEnds: at the end of its range the counter does not change any more, and the
// next create fails, pipelined or not. ZooKeeper gives pipelined creates negative numbers
// there, and does not count them in its tree.
func TestSequenceEnds(t *testing.T) {
	for _, pipelined := range []bool{false, true} {
		w := newWorld(t, Options{})
		w.ok(create("/s", 0))
		n := w.tree.find("/s")
		w.tree.digest -= w.tree.sum(n)
		n.cversion = 1<<31 - 2
		w.tree.digest += w.tree.sum(n)
		reqs := []*Request{create("/s/a", 2), create("/s/a", 2), create("/s/a", 2), create("/s/b", 2), create("/s/c", 0)}
		var got []wire.Code
		var paths []string
		var txns []*record.Txn
		run := func(txn *record.Txn) {
			res := w.apply(txn)
			got = append(got, res.Err)
			if r, ok := res.Response.(*wire.PathResponse); ok {
				paths = append(paths, r.Path)
			}
		}
		for _, req := range reqs {
			if txn, _ := w.prepare(req); pipelined {
				txns = append(txns, txn)
			} else {
				run(txn)
			}
		}
		for _, txn := range txns {
			run(txn)
		}
		if s := strings.Join(paths, " "); s != "/s/a2147483646 /s/a2147483647 /s/b2147483647 /s/c" || got[2] != wire.ErrNodeExists {
			t.Errorf("pipelined %v: %s, codes %v", pipelined, s, got)
		}
		if n.cversion != 1<<31-1 {
			t.Errorf("counter is %d", n.cversion)
		}
	}
}

// TestNullAndEmptyData: null data and empty data are different values and remain
// different.
func TestNullAndEmptyData(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: "/null", ACL: wire.OpenACL()}))
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: "/empty", Data: []byte{}, ACL: wire.OpenACL()}))
	check := func(path string, null bool) {
		t.Helper()
		var out wire.DataResponse
		w.tree.GetData(&conn{}, path, false, &out)
		if (out.Data == nil) != null || len(out.Data) != 0 || out.Stat.DataLength != 0 {
			t.Errorf("%s: data %#v", path, out.Data)
		}
	}
	check("/null", true)
	check("/empty", false)
	check("/", false)
	w.ok(request(wire.OpSetData, &wire.SetDataRequest{Path: "/empty", Version: -1}))
	w.ok(setData("/null", "", -1))
	w.ok(setData("/", "", -1))
	check("/empty", true)
	check("/null", false)
	check("/", false)
}

// TestStats: after each operation, every field of the stat of a znode and of its parent
// is right.
func TestStats(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/p", 0))
	z1, t1 := w.z, w.now
	w.ok(create("/p/c", wire.FlagEphemeral))
	z2, t2 := w.z, w.now
	want := wire.Stat{Czxid: z1, Mzxid: z1, Ctime: t1, Mtime: t1, Cversion: 1, DataLength: 2, NumChildren: 1, Pzxid: z2}
	if got := w.stat("/p"); got != want {
		t.Errorf("after create\n%+v\n%+v", got, want)
	}
	w.ok(setData("/p/c", "hello", 0))
	z3, t3 := w.z, w.now
	w.ok(setACL("/p/c", 0, wire.OpenACL()...))
	want = wire.Stat{Czxid: z2, Mzxid: z3, Ctime: t2, Mtime: t3, Version: 1, Aversion: 1, EphemeralOwner: alice, DataLength: 5, Pzxid: z2}
	if got := w.stat("/p/c"); got != want {
		t.Errorf("after setData and setACL\n%+v\n%+v", got, want)
	}
	w.ok(remove("/p/c", 1))
	want = wire.Stat{Czxid: z1, Mzxid: z1, Ctime: t1, Mtime: t1, Cversion: 2, DataLength: 2, Pzxid: w.z}
	if got := w.stat("/p"); got != want {
		t.Errorf("after delete\n%+v\n%+v", got, want)
	}
	if s := w.stat("/zookeeper"); s.Cversion != -2 || s.NumChildren != 2 || s.Czxid != 0 {
		t.Errorf("stat of /zookeeper %+v", s)
	}
	if s := w.stat("/zookeeper/config"); s.Aversion != -1 || s.Version != 0 {
		t.Errorf("stat of /zookeeper/config %+v", s)
	}
}
