package shadow_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

const (
	replyZxid = wire.Zxid(0x100000050)
	session   = wire.SessionID(0x1000000000000001)
)

// stat returns a stat all of whose fields differ from zero. It is not later than the reply.
func stat() wire.Stat {
	return wire.Stat{Czxid: 0x100000010, Mzxid: replyZxid, Ctime: 100, Mtime: 200, Version: 3, Cversion: 4, Aversion: 5, EphemeralOwner: session,
		DataLength: 4, NumChildren: 2, Pzxid: 0x100000030}
}

// fresh returns the stat of a znode that the reply's transaction has created.
func fresh(owner wire.SessionID) wire.Stat {
	return wire.Stat{Czxid: replyZxid, Mzxid: replyZxid, Pzxid: replyZxid, Ctime: 100, Mtime: 100, EphemeralOwner: owner, DataLength: 4}
}

func acl() []wire.ACL {
	return []wire.ACL{{Perms: 31, ID: wire.ID{Scheme: "digest", ID: "bob:aGFzaA=="}}, {Perms: 1, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
}

func read(path string) wire.Record { return &wire.PathWatchRequest{Path: path, Watch: true} }

// scenario is a request, the old server's reply without an error, and the answer of an observer with the same tree.
type scenario struct {
	name           string
	op             wire.OpCode
	request, reply wire.Record
	answer         wire.Record
	masked         []string // fields of the answer that the reply says nothing about
	undecided      []string // fields that cannot be compared at a later zxid
}

var wholeStat = []string{"Stat.Czxid", "Stat.Mzxid", "Stat.Ctime", "Stat.Mtime", "Stat.Version", "Stat.Cversion", "Stat.Aversion", "Stat.EphemeralOwner", "Stat.DataLength", "Stat.NumChildren", "Stat.Pzxid"}

// scenarios has each read and each write.
func scenarios() []scenario {
	names := []string{"a", "b"}
	data := []byte("data")
	created := []string{"Stat.Ctime", "Stat.Mtime"}
	late := []string{"Stat.Aversion"}
	result := &wire.DataResponse{Data: data, Stat: fresh(0)}
	return []scenario{
		{"exists", wire.OpExists, read("/n"), &wire.StatResponse{Stat: stat()}, &wire.StatResponse{Stat: stat()}, nil, late},
		{"getData", wire.OpGetData, read("/n"), &wire.DataResponse{Data: data, Stat: stat()}, &wire.DataResponse{Data: data, Stat: stat()}, nil, late},
		{"getChildren", wire.OpGetChildren, read("/n"), &wire.ChildrenResponse{Children: names}, &wire.ChildrenStatResponse{Children: []string{"b", "a"}, Stat: stat()}, wholeStat, nil},
		{"getChildren2", wire.OpGetChildren2, read("/n"), &wire.ChildrenStatResponse{Children: names, Stat: stat()}, &wire.ChildrenStatResponse{Children: []string{"b", "a"}, Stat: stat()}, nil, late},
		{"getACL", wire.OpGetACL, &wire.PathRequest{Path: "/n"}, &wire.ACLResponse{ACL: acl(), Stat: stat()}, &wire.ACLResponse{ACL: acl(), Stat: stat()}, nil, late},
		{"getAllChildrenNumber", wire.OpGetAllChildrenNumber, &wire.PathRequest{Path: "/n"}, &wire.CountResponse{Count: 7}, &wire.CountResponse{Count: 7}, nil, []string{"Count"}},
		{"whoAmI", wire.OpWhoAmI, nil, &wire.WhoAmIResponse{Clients: []wire.ClientInfo{{Scheme: "ip", User: "1.2.3.4"}, {Scheme: "digest", User: "bob"}}},
			&wire.WhoAmIResponse{Clients: []wire.ClientInfo{{Scheme: "ip", User: "::1"}, {Scheme: "digest", User: "bob"}}}, []string{"Clients[0].User"}, nil},
		{"multiRead", wire.OpMultiRead, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpGetData, Request: read("/n")}}},
			&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpGetData, Response: &wire.DataResponse{Data: data, Stat: stat()}}}}, &wire.DataResponse{Data: data, Stat: stat()}, nil, late},
		{"multiRead of children", wire.OpMultiRead, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpGetChildren, Request: read("/n")}}},
			&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpGetChildren, Response: &wire.ChildrenResponse{Children: names}}}}, &wire.ChildrenStatResponse{Children: names, Stat: stat()}, wholeStat, nil},
		{"getEphemerals", wire.OpGetEphemerals, &wire.NullPathRequest{}, &wire.EphemeralsResponse{Paths: []string{"/n"}}, &wire.StatResponse{Stat: stat()},
			slices.DeleteFunc(slices.Clone(wholeStat), func(s string) bool { return s == "Stat.EphemeralOwner" }), nil},
		{"create", wire.OpCreate, &wire.CreateRequest{Path: "/n-", Data: data, ACL: acl(), Flags: wire.FlagPersistentSequential}, &wire.PathResponse{Path: "/n-0000000001"}, result, created, late},
		{"create of an ephemeral", wire.OpCreate, &wire.CreateRequest{Path: "/n", Data: data, Flags: wire.FlagEphemeral}, &wire.PathResponse{Path: "/n"}, &wire.DataResponse{Data: data, Stat: fresh(session)}, created, late},
		{"create2", wire.OpCreate2, &wire.CreateRequest{Path: "/n", Data: data}, &wire.PathStatResponse{Path: "/n", Stat: fresh(0)}, result, nil, late},
		{"createContainer", wire.OpCreateContainer, &wire.CreateRequest{Path: "/n", Data: data, Flags: wire.FlagContainer}, &wire.PathStatResponse{Path: "/n", Stat: fresh(0)}, result, nil, late},
		{"createTTL", wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/n", Data: data, Flags: wire.FlagPersistentTTL}, TTL: 5}, &wire.PathStatResponse{Path: "/n", Stat: fresh(0)}, result, nil, late},
		{"setData", wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: data, Version: 2}, &wire.StatResponse{Stat: stat()}, &wire.DataResponse{Data: data, Stat: stat()}, nil, late},
		{"setACL", wire.OpSetACL, &wire.SetACLRequest{Path: "/n", ACL: acl(), Version: 4}, &wire.StatResponse{Stat: stat()}, &wire.ACLResponse{ACL: acl(), Stat: stat()}, nil, late},
		{"multi with setData", wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/n", Data: data, Version: -1}}}},
			&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpSetData, Response: &wire.StatResponse{Stat: stat()}}}}, &wire.DataResponse{Data: data, Stat: stat()}, nil, late},
		{"multi with create", wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/n", Data: data}}}},
			&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpCreate, Response: &wire.PathResponse{Path: "/n"}}}}, result, created, late},
		{"multi with check", wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/n", Version: 3}}}},
			&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpCheck}}}, &wire.DataResponse{Data: data, Stat: stat()},
			append([]string{"Data"}, slices.DeleteFunc(slices.Clone(wholeStat), func(s string) bool { return s == "Stat.Version" })...), nil},
	}
}

// pair returns the request and its reply.
func pair(op wire.OpCode, request wire.Record, code wire.Code, reply wire.Record) *shadow.Pair {
	p := &shadow.Pair{Op: op, Session: session, Header: wire.ReplyHeader{Xid: 1, Zxid: replyZxid, Err: code}}
	if request != nil {
		p.Request = wire.Append(nil, request)
	}
	if reply != nil {
		p.Answer = wire.Append(nil, reply)
	}
	return p
}

// only returns the one check of a pair.
func only(t *testing.T, p *shadow.Pair) *shadow.Check {
	t.Helper()
	checks, why := shadow.Plan(p)
	if len(checks) != 1 || why != "" {
		t.Fatalf("%d checks, %q", len(checks), why)
	}
	return &checks[0]
}

func judged(c *shadow.Check, at wire.Zxid, code wire.Code, answer wire.Record) shadow.Verdict {
	var body []byte
	if answer != nil {
		body = wire.Append(nil, answer)
	}
	return c.Judge(wire.ReplyHeader{Zxid: at, Err: code}, body)
}

// mutations calls f with the name of each field of a record after it has changed the field, and restores it.
func mutations(rec wire.Record, f func(field string)) {
	var walk func(name string, v reflect.Value)
	change := func(name string, v reflect.Value, to any) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		v.Set(reflect.ValueOf(to).Convert(v.Type()))
		f(name)
		v.Set(was)
	}
	walk = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Int32, reflect.Int64:
			change(name, v, v.Int()-1)
		case reflect.String:
			change(name, v, v.String()+"x")
		case reflect.Struct:
			for i := range v.NumField() {
				sub := v.Type().Field(i).Name
				if name != "" {
					sub = name + "." + sub
				}
				walk(sub, v.Field(i))
			}
		case reflect.Slice:
			change(name, v, v.Slice(0, v.Len()-1).Interface())
			if v.Type().Elem().Kind() == reflect.Uint8 {
				change(name, v, []byte("datb"))
				change(name, v, []byte(nil))
				return
			}
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", name, i), v.Index(i))
			}
		}
	}
	walk("", reflect.ValueOf(rec).Elem())
}

// TestWrongFieldsAreFound changes each field of the observer's answer to each operation. The comparison must find the
// change, unless the reply says nothing about the field, both at the zxid of the reply and at a later one.
func TestWrongFieldsAreFound(t *testing.T) {
	for _, s := range scenarios() {
		c := only(t, pair(s.op, s.request, wire.OK, s.reply))
		for _, at := range []wire.Zxid{replyZxid, replyZxid + 5} {
			v := judged(c, at, wire.OK, s.answer)
			if v.Result != shadow.Equal || v.At != at {
				t.Errorf("%s at %v: the right answer: %+v", s.name, at, v)
			}
			mutations(s.answer, func(field string) {
				want := shadow.Differs
				switch {
				case slices.Contains(s.masked, field):
					want = shadow.Equal
				case at > replyZxid && slices.Contains(s.undecided, field):
					want = shadow.Unsure
				}
				if v := judged(c, at, wire.OK, s.answer); v.Result != want {
					t.Errorf("%s at %v, wrong %s: result %v, want %v: %+v", s.name, at, field, v.Result, want, v)
				}
			})
		}
	}
}

// TestWrongErrorsAreFound gives each operation an error instead of the right answer, at the zxid of the reply.
func TestWrongErrorsAreFound(t *testing.T) {
	for _, s := range scenarios() {
		c := only(t, pair(s.op, s.request, wire.OK, s.reply))
		for _, code := range []wire.Code{wire.ErrNoNode, wire.ErrNoAuth, wire.ErrUnimplemented, wire.ErrMarshalling} {
			want := shadow.Differs
			if code == wire.ErrNoAuth && (s.op.IsWrite() || s.op == wire.OpExists || s.op == wire.OpGetEphemerals) {
				want = shadow.Unsure // the client may not be allowed to read what it has written
			}
			if v := judged(c, replyZxid, code, nil); v.Result != want {
				t.Errorf("%s: %v: %+v", s.name, code, v)
			}
		}
		if v := judged(c, replyZxid, wire.ErrSessionExpired, nil); v.Result != shadow.Unsure || v.Reason != shadow.UnsureRefused {
			t.Errorf("%s: session expired: %+v", s.name, v)
		}
		if v := c.Judge(wire.ReplyHeader{Zxid: replyZxid}, []byte{0}); v.Result != shadow.Differs {
			t.Errorf("%s: an answer that is cut short: %+v", s.name, v)
		}
	}
}

// TestErrorsOfReads compares replies with an error.
func TestErrorsOfReads(t *testing.T) {
	there := &wire.DataResponse{Data: []byte("data"), Stat: stat()}
	later := &wire.DataResponse{Data: []byte("data"), Stat: fresh(0)}
	later.Stat.Czxid, later.Stat.Mzxid, later.Stat.Pzxid = replyZxid+3, replyZxid+3, replyZxid+3
	for _, c := range []struct {
		old, observer wire.Code
		answer        wire.Record
		at            wire.Zxid
		want          shadow.Result
	}{
		{wire.ErrNoNode, wire.ErrNoNode, nil, replyZxid, shadow.Equal},
		{wire.ErrNoNode, wire.ErrNoNode, nil, replyZxid + 5, shadow.Equal},
		{wire.ErrNoNode, wire.OK, there, replyZxid, shadow.Differs},
		{wire.ErrNoNode, wire.OK, there, replyZxid + 5, shadow.Differs}, // it was created before the reply
		{wire.ErrNoNode, wire.OK, later, replyZxid + 5, shadow.Unsure},
		{wire.ErrNoNode, wire.ErrNoAuth, nil, replyZxid, shadow.Differs},
		{wire.ErrNoNode, wire.ErrNoAuth, nil, replyZxid + 5, shadow.Unsure},
		{wire.ErrNoAuth, wire.ErrNoAuth, nil, replyZxid, shadow.Equal},
		{wire.ErrNoAuth, wire.OK, there, replyZxid, shadow.Differs},
		{wire.ErrNoAuth, wire.OK, there, replyZxid + 5, shadow.Unsure},
		{wire.ErrNoAuth, wire.ErrNoNode, nil, replyZxid, shadow.Differs},
		{wire.ErrBadArguments, wire.ErrBadArguments, nil, replyZxid - 1, shadow.Equal},
		{wire.ErrBadArguments, wire.ErrNoNode, nil, replyZxid + 5, shadow.Differs},
		{wire.ErrBadArguments, wire.OK, there, replyZxid + 5, shadow.Differs},
		{wire.ErrUnimplemented, wire.ErrBadArguments, nil, -1, shadow.Differs},
		{wire.OK, wire.ErrNoNode, nil, replyZxid + 5, shadow.AskParent},
		{wire.OK, wire.ErrNoNode, nil, replyZxid - 1, shadow.Behind},
	} {
		var reply wire.Record
		if c.old == wire.OK {
			reply = there
		}
		if v := judged(only(t, pair(wire.OpGetData, read("/n"), c.old, reply)), c.at, c.observer, c.answer); v.Result != c.want {
			t.Errorf("old %v, observer %v at %v: %+v, want %v", c.old, c.observer, c.at, v, c.want)
		}
	}
}

// TestChangesSinceTheReply shows that a part of a znode that has changed since the reply is not compared, and the
// others still are.
func TestChangesSinceTheReply(t *testing.T) {
	at := replyZxid + 5
	c := only(t, pair(wire.OpGetData, read("/n"), wire.OK, &wire.DataResponse{Data: []byte("data"), Stat: stat()}))
	for _, s := range []struct {
		name   string
		change func(*wire.DataResponse)
		want   shadow.Result
	}{
		{"data", func(r *wire.DataResponse) { r.Data, r.Stat.Mzxid, r.Stat.Version = nil, at-1, 4 }, shadow.Unsure},
		{"data, and a wrong number of children", func(r *wire.DataResponse) { r.Stat.Mzxid, r.Stat.NumChildren = at-1, 9 }, shadow.Differs},
		{"children", func(r *wire.DataResponse) { r.Stat.Pzxid, r.Stat.NumChildren = at, 9 }, shadow.Unsure},
		{"children, and wrong data", func(r *wire.DataResponse) { r.Stat.Pzxid, r.Data = at, []byte("x") }, shadow.Differs},
		{"created again", func(r *wire.DataResponse) { r.Stat.Czxid, r.Stat.Mzxid, r.Stat.Pzxid, r.Data = at, at, at, nil }, shadow.Unsure},
		{"a zxid after the answer", func(r *wire.DataResponse) { r.Stat.Mzxid = at + 1 }, shadow.Differs},
	} {
		answer := &wire.DataResponse{Data: []byte("data"), Stat: stat()}
		s.change(answer)
		if v := judged(c, at, wire.OK, answer); v.Result != s.want {
			t.Errorf("%s: %+v, want %v", s.name, v, s.want)
		}
	}
}

// TestMissingZnodeIsFoundByItsParent: the observer lacks a znode, at a later zxid.
func TestMissingZnodeIsFoundByItsParent(t *testing.T) {
	c := only(t, pair(wire.OpGetData, read("/p/n"), wire.OK, &wire.DataResponse{Stat: stat()}))
	parent := c.Parent()
	if parent.Path != "/p" || parent.Ask != wire.OpExists {
		t.Fatalf("%+v", parent)
	}
	for pzxid, want := range map[wire.Zxid]shadow.Result{replyZxid: shadow.Differs, replyZxid + 1: shadow.Unsure} {
		s := stat()
		s.Pzxid = pzxid
		if v := c.JudgeParent(wire.ReplyHeader{Zxid: replyZxid + 9}, wire.Append(nil, &wire.StatResponse{Stat: s})); v.Result != want {
			t.Errorf("pzxid %v: %+v, want %v", pzxid, v, want)
		}
	}
	if v := c.JudgeParent(wire.ReplyHeader{Zxid: replyZxid + 9, Err: wire.ErrNoNode}, nil); v.Result != shadow.Unsure {
		t.Errorf("no parent: %+v", v)
	}
}

// TestFailedWrites compares errors of writes with the state that must have caused them.
func TestFailedWrites(t *testing.T) {
	set := &wire.SetDataRequest{Path: "/p/n", Version: 9}
	del := &wire.PathVersionRequest{Path: "/p/n", Version: 9}
	create := &wire.CreateRequest{Path: "/p/n"}
	with := func(change func(*wire.Stat)) wire.Record {
		s := stat()
		change(&s)
		return &wire.StatResponse{Stat: s}
	}
	there := with(func(*wire.Stat) {})
	for _, c := range []struct {
		op           wire.OpCode
		request      wire.Record
		code         wire.Code
		path         string
		right, wrong wire.Record // nil: no such znode
	}{
		{wire.OpSetData, set, wire.ErrNoNode, "/p/n", nil, there},
		{wire.OpDelete, del, wire.ErrNoNode, "/p/n", nil, there},
		{wire.OpCreate, create, wire.ErrNoNode, "/p", nil, there},
		{wire.OpCreate2, create, wire.ErrNodeExists, "/p/n", there, nil},
		{wire.OpCreate, create, wire.ErrNoChildrenForEphemerals, "/p", there, with(func(s *wire.Stat) { s.EphemeralOwner = 0 })},
		{wire.OpSetData, set, wire.ErrBadVersion, "/p/n", there, with(func(s *wire.Stat) { s.Version = 9 })},
		{wire.OpDelete, del, wire.ErrBadVersion, "/p/n", there, nil},
		{wire.OpSetACL, &wire.SetACLRequest{Path: "/p/n", Version: 9}, wire.ErrBadVersion, "/p/n", there, with(func(s *wire.Stat) { s.Aversion = 9 })},
		{wire.OpDelete, del, wire.ErrNotEmpty, "/p/n", there, with(func(s *wire.Stat) { s.NumChildren = 0 })},
	} {
		multi := &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/p/n", Version: 1}}, {Type: c.op, Request: c.request}}}
		results := &wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpError}, {Type: wire.OpError, Err: c.code}}}
		pairs := []*shadow.Pair{pair(c.op, c.request, c.code, nil)}
		if c.op != wire.OpSetACL { // a multi has none
			pairs = append(pairs, pair(wire.OpMulti, multi, wire.OK, results))
		}
		for _, p := range pairs {
			check := only(t, p)
			if check.Path != c.path {
				t.Errorf("%v %v: path %s", p.Op, c.code, check.Path)
			}
			for answer, want := range map[wire.Record]shadow.Result{c.right: shadow.Equal, c.wrong: shadow.Differs} {
				code := wire.OK
				if answer == nil {
					code = wire.ErrNoNode
				}
				if v := judged(check, replyZxid, code, answer); v.Result != want {
					t.Errorf("%v %v: %+v, want %v", p.Op, c.code, v, want)
				}
			}
		}
	}
}

// TestMultiChecksTheLastState: of each znode only the last operation is checked, and not the fields that a later
// operation on a child has changed.
func TestMultiChecksTheLastState(t *testing.T) {
	set := &wire.SetDataRequest{Path: "/p", Data: []byte("1"), Version: -1}
	create := &wire.CreateRequest{Path: "/p/c"}
	del := &wire.PathVersionRequest{Path: "/p/c", Version: -1}
	ops := []wire.Op{{Type: wire.OpSetData, Request: set}, {Type: wire.OpCreate, Request: create}, {Type: wire.OpDelete, Request: del}}
	results := []wire.OpResult{{Type: wire.OpSetData, Response: &wire.StatResponse{Stat: stat()}}, {Type: wire.OpCreate, Response: &wire.PathResponse{Path: "/p/c"}}, {Type: wire.OpDelete}}
	checks, why := shadow.Plan(pair(wire.OpMulti, &wire.MultiRequest{Ops: ops}, wire.OK, &wire.MultiResponse{Results: results}))
	if len(checks) != 2 || why != "" || checks[0].Path != "/p/c" || checks[1].Path != "/p" {
		t.Fatalf("%+v %s", checks, why)
	}
	if v := judged(&checks[0], replyZxid, wire.ErrNoNode, nil); v.Result != shadow.Equal {
		t.Errorf("deleted: %+v", v)
	}
	s := stat()
	s.Pzxid, s.Cversion, s.NumChildren = replyZxid, 6, 3
	if v := judged(&checks[1], replyZxid, wire.OK, &wire.DataResponse{Data: []byte("1"), Stat: s}); v.Result != shadow.Equal {
		t.Errorf("parent: %+v", v)
	}
	// An error that an earlier operation of the multi may have caused is not checked.
	ops = []wire.Op{{Type: wire.OpDelete, Request: del}, {Type: wire.OpDelete, Request: del}}
	results = []wire.OpResult{{Type: wire.OpError}, {Type: wire.OpError, Err: wire.ErrNoNode}}
	if checks, why := shadow.Plan(pair(wire.OpMulti, &wire.MultiRequest{Ops: ops}, wire.OK, &wire.MultiResponse{Results: results})); len(checks) != 0 || why != shadow.NotErrorWrite {
		t.Errorf("%+v %q", checks, why)
	}
}

// TestNotCompared has replies of which nothing is compared.
func TestNotCompared(t *testing.T) {
	config := pair(wire.OpGetData, read("/zookeeper/config"), wire.OK, &wire.DataResponse{Stat: stat()})
	cut := pair(wire.OpGetData, read("/n"), wire.OK, &wire.DataResponse{Stat: stat()})
	cut.Cut = true
	for want, p := range map[shadow.Reason]*shadow.Pair{
		shadow.NotState:      pair(wire.OpSync, &wire.PathRequest{Path: "/"}, wire.OK, &wire.PathResponse{Path: "/"}),
		shadow.NotWatch:      pair(wire.OpAddWatch, nil, wire.OK, nil),
		shadow.NotSession:    pair(wire.OpCloseSession, nil, wire.OK, nil),
		shadow.NotConfig:     config,
		shadow.NotSASL:       pair(wire.OpSASL, &wire.SASLRequest{}, wire.OK, nil),
		shadow.NotCut:        cut,
		shadow.NotDecoded:    pair(wire.OpGetData, nil, wire.OK, nil),
		shadow.NotErrorWrite: pair(wire.OpSetData, &wire.SetDataRequest{Path: "/n"}, wire.ErrNoAuth, nil),
	} {
		if checks, why := shadow.Plan(p); len(checks) != 0 || why != want {
			t.Errorf("%d checks, %q, want %q", len(checks), why, want)
		}
	}
}

// TestQuotaStatsChangeWithoutZxid: servers write what a quota counts without a transaction.
func TestQuotaStatsChangeWithoutZxid(t *testing.T) {
	c := only(t, pair(wire.OpGetData, read("/zookeeper/quota/a/zookeeper_stats"), wire.OK, &wire.DataResponse{Data: []byte("count=1"), Stat: stat()}))
	for at, want := range map[wire.Zxid]shadow.Result{replyZxid: shadow.Differs, replyZxid + 1: shadow.Unsure} {
		if v := judged(c, at, wire.OK, &wire.DataResponse{Data: []byte("count=2"), Stat: stat()}); v.Result != want {
			t.Errorf("at %v: %+v, want %v", at, v, want)
		}
	}
}

// TestWritesClaimNoQuotaStats: the server counts again when it applies a write of a quota's stats, so that the znode does not keep the
// data of the request. The rest of the reply, and the quota's limits, are compared.
func TestWritesClaimNoQuotaStats(t *testing.T) {
	const stats, limits = "/zookeeper/quota/q/zookeeper_stats", "/zookeeper/quota/q/zookeeper_limits"
	old, counted := []byte("count=0,bytes=0"), []byte("count=11,bytes=11")
	before := fresh(0)
	before.DataLength = int32(len(old))
	create := func(path string) *wire.CreateRequest { return &wire.CreateRequest{Path: path, Data: old} }
	set := func(path string) *wire.SetDataRequest { return &wire.SetDataRequest{Path: path, Data: old} }
	writes := func(path string) []*shadow.Pair {
		return []*shadow.Pair{
			pair(wire.OpCreate, create(path), wire.OK, &wire.PathResponse{Path: path}),
			pair(wire.OpCreate2, create(path), wire.OK, &wire.PathStatResponse{Path: path, Stat: before}),
			pair(wire.OpSetData, set(path), wire.OK, &wire.StatResponse{Stat: before}),
			pair(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCreate, Request: create(path)}}}, wire.OK,
				&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpCreate, Response: &wire.PathResponse{Path: path}}}}),
			pair(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpSetData, Request: set(path)}}}, wire.OK,
				&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpSetData, Response: &wire.StatResponse{Stat: before}}}}),
		}
	}
	for path, want := range map[string]shadow.Result{stats: shadow.Equal, limits: shadow.Differs} {
		for _, p := range writes(path) {
			c := only(t, p)
			answer := &wire.DataResponse{Data: counted, Stat: before}
			answer.Stat.DataLength = int32(len(counted))
			if v := judged(c, replyZxid, wire.OK, answer); v.Result != want {
				t.Errorf("%v %s: %+v", p.Op, path, v)
			}
			answer.Data, answer.Stat = old, before
			answer.Stat.Version++
			if v := judged(c, replyZxid, wire.OK, answer); v.Result != shadow.Differs {
				t.Errorf("%v %s, wrong version: %+v", p.Op, path, v)
			}
		}
	}
}

// TestEpochWithoutTransactions: a leader answers at counter 0 of its epoch before the first transaction.
func TestEpochWithoutTransactions(t *testing.T) {
	old := wire.DataResponse{Data: []byte("data"), Stat: stat()}
	p := pair(wire.OpGetData, read("/n"), wire.OK, &old)
	p.Header.Zxid = 0x200000000
	c := only(t, p)
	if v := judged(c, replyZxid, wire.OK, &old); v.Result != shadow.Equal {
		t.Errorf("equal: %+v", v)
	}
	if v := judged(c, replyZxid, wire.OK, &wire.DataResponse{Stat: stat()}); v.Result != shadow.Behind {
		t.Errorf("different: %+v", v)
	}
}

// TestWeakIdentity judges answers to a session that has fewer identities than the client, because the client has logged in
// by SASL. What the observer refuses then is not compared, and what everybody may read is.
func TestWeakIdentity(t *testing.T) {
	right := &wire.DataResponse{Data: []byte("data"), Stat: stat()}
	wrong := &wire.DataResponse{Data: []byte("datb"), Stat: stat()}
	for _, c := range []struct {
		old, observer wire.Code
		answer        wire.Record
		want          shadow.Result
		super         bool // the super user can decide
	}{
		{wire.OK, wire.OK, right, shadow.Equal, false},
		{wire.OK, wire.OK, wrong, shadow.Differs, false},
		{wire.OK, wire.ErrNoAuth, nil, shadow.Unsure, true},
		{wire.OK, wire.ErrNoNode, nil, shadow.Differs, false},
		{wire.ErrNoAuth, wire.ErrNoAuth, nil, shadow.Unsure, false},
		{wire.ErrNoAuth, wire.OK, right, shadow.Differs, false}, // fewer identities cannot be allowed more
		{wire.ErrNoNode, wire.ErrNoAuth, nil, shadow.Differs, false},
	} {
		var reply wire.Record
		if c.old == wire.OK {
			reply = right
		}
		p := pair(wire.OpGetData, read("/n"), c.old, reply)
		p.Identity.SASL = true
		check := only(t, p)
		v := judged(check, replyZxid, c.observer, c.answer)
		again, super := check.AsSuper(v)
		if v.Result != c.want || super != c.super {
			t.Errorf("old %v, observer %v: %+v, super %v", c.old, c.observer, v, super)
		}
		if super && (judged(&again, replyZxid, wire.OK, right).Result != shadow.Equal || judged(&again, replyZxid, wire.OK, wrong).Result != shadow.Differs) {
			t.Errorf("old %v, observer %v: wrong data are not found by the super user", c.old, c.observer)
		}
	}
}

// TestSuperDecides shows which other verdicts the super user can decide, and that the super user sees hashes that
// the client does not.
func TestSuperDecides(t *testing.T) {
	create := pair(wire.OpCreate, &wire.CreateRequest{Path: "/n", Data: []byte("data")}, wire.OK, &wire.PathResponse{Path: "/n"})
	exists := pair(wire.OpExists, read("/n"), wire.OK, &wire.StatResponse{Stat: stat()})
	for _, p := range []*shadow.Pair{create, exists} {
		c := only(t, p)
		if _, ok := c.AsSuper(judged(c, replyZxid, wire.ErrNoAuth, nil)); !ok {
			t.Errorf("%v without READ", p.Op)
		}
	}
	hidden := acl()
	hidden[0].ID.ID = "bob:x"
	p := pair(wire.OpGetACL, &wire.PathRequest{Path: "/n"}, wire.OK, &wire.ACLResponse{ACL: hidden, Stat: stat()})
	p.Identity.SASL = true
	c := only(t, p)
	s, ok := c.AsSuper(judged(c, replyZxid, wire.ErrNoAuth, nil))
	if v := judged(&s, replyZxid, wire.OK, &wire.ACLResponse{ACL: acl(), Stat: stat()}); !ok || v.Result != shadow.Equal {
		t.Errorf("%+v", v)
	}
	who := pair(wire.OpWhoAmI, nil, wire.OK, &wire.WhoAmIResponse{})
	who.Identity.SASL = true
	c = only(t, who)
	v := judged(c, replyZxid, wire.OK, &wire.WhoAmIResponse{})
	if _, ok := c.AsSuper(v); ok || v.Reason != shadow.UnsureRights {
		t.Errorf("whoAmI: %+v", v)
	}
}
