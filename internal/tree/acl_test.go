package tree

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bellwether/internal/record"
	"bellwether/wire"
)

func TestSetACLErrorOrder(t *testing.T) {
	w := newWorld(t, Options{})
	open, bad := acl(31, "world:anyone"), acl(31, "nope:x")
	w.ok(createACL("/closed", acl(31&^16, "world:anyone")))
	w.ok(create("/n", 0))
	const dead = wire.SessionID(99)
	for _, row := range []struct {
		name string
		req  *Request
		want wire.Code
	}{
		{"cut short", &Request{Session: dead, Op: wire.OpSetACL, Body: []byte{0}}, wire.ErrMarshalling},
		{"session", setACL("nope", 7, bad).by(dead), wire.ErrSessionExpired},
		{"path", setACL("/missing/", 7, bad), wire.ErrBadArguments},
		{"list", setACL("/missing", 7, bad), wire.ErrInvalidACL},
		{"empty list", setACL("/missing", 7), wire.ErrInvalidACL},
		{"existence", setACL("/missing", 7, open), wire.ErrNoNode},
		{"permission", setACL("/closed", 7, open), wire.ErrNoAuth},
		{"version", setACL("/n", 7, open), wire.ErrBadVersion},
		{"fine", setACL("/n", 0, open), wire.OK},
		{"root", setACL("/", 0, open), wire.OK},
	} {
		w.expect(row.name, row.req, row.want)
	}
	r := w.ok(setACL("/n", 1, acl(1, "world:anyone"))).Response.(*wire.StatResponse)
	if r.Stat.Aversion != 2 || r.Stat != w.stat("/n") {
		t.Errorf("answers %+v", r)
	}
}

// TestResolveACL: the entries of a request's ACL are resolved: auth becomes the
// identities of the client, and invalid lists are refused.
func TestResolveACL(t *testing.T) {
	plain := []wire.ID{id("ip:127.0.0.1")}
	two := []wire.ID{id("ip:127.0.0.1"), id("digest:a:b"), id("digest:c:d"), id("super:")}
	for _, row := range []struct {
		list []wire.ACL
		ids  []wire.ID
		want string // the result as fmt.Sprint prints it; empty: the request is refused
	}{
		{nil, plain, ""},
		{[]wire.ACL{}, plain, ""},
		{[]wire.ACL{acl(31, "world:anyone")}, plain, "[{31 {world anyone}}]"},
		{[]wire.ACL{acl(1, "world:anyone"), acl(1, "world:anyone")}, plain, "[{1 {world anyone}}]"},
		{[]wire.ACL{acl(1, "world:anyone"), acl(2, "world:anyone")}, plain, "[{1 {world anyone}} {2 {world anyone}}]"},
		{[]wire.ACL{acl(1, "world:somebody")}, plain, ""},
		{[]wire.ACL{acl(31, "auth:whatever")}, plain, ""},
		{[]wire.ACL{acl(31, "auth:")}, two, "[{31 {digest a:b}} {31 {digest c:d}}]"},
		{[]wire.ACL{acl(31, "digest:a:b"), acl(31, "auth:")}, two, "[{31 {digest a:b}} {31 {digest a:b}} {31 {digest c:d}}]"},
		{[]wire.ACL{acl(0, "ip:1.2.3.4"), acl(63, "ip:1.2.3.0/24"), acl(-1, "digest:a:b")}, plain,
			"[{0 {ip 1.2.3.4}} {63 {ip 1.2.3.0/24}} {-1 {digest a:b}}]"},
		{[]wire.ACL{acl(31, ":x")}, plain, ""},
		{[]wire.ACL{acl(31, "super:x")}, two, ""},
		{[]wire.ACL{acl(31, "sasl:bob")}, plain, ""},
		{[]wire.ACL{acl(31, "auth:")}, []wire.ID{id("sasl:bob")}, ""},
		{[]wire.ACL{acl(31, "x509:CN=alice")}, plain, ""},
		{[]wire.ACL{acl(31, "key:x")}, plain, ""},
	} {
		p := proposal{t: New(Options{}), ids: row.ids}
		got, ok := p.resolveACL(row.list)
		if text := fmt.Sprint(got); ok != (row.want != "") || ok && text != row.want {
			t.Errorf("%v: %s %v, want %s", row.list, text, ok, row.want)
		}
	}
	p := proposal{t: New(Options{SchemeSASL: true, SchemeX509: true})}
	for _, entry := range []string{"sasl:bob", "x509:CN=alice"} {
		if _, ok := p.resolveACL([]wire.ACL{acl(31, entry)}); !ok {
			t.Errorf("%s is refused though its scheme is switched on", entry)
		}
	}
	p.ids = []wire.ID{id("sasl:bob"), id("x509:CN=alice"), id("ip:127.0.0.1")}
	if got, ok := p.resolveACL([]wire.ACL{acl(31, "auth:")}); !ok || fmt.Sprint(got) != "[{31 {sasl bob}} {31 {x509 CN=alice}}]" {
		t.Errorf("auth becomes %v, %v", got, ok)
	}
}

// TestExpansionIsBounded: a list with many auth entries from a client with many
// identities is refused before it takes memory.
func TestExpansionIsBounded(t *testing.T) {
	w := newWorld(t, Options{})
	var list []wire.ACL
	var ids []wire.ID
	for i := range 10_000 {
		list = append(list, acl(1, fmt.Sprint("auth:", i)))
		ids = append(ids, id(fmt.Sprintf("digest:user:%010d", i)))
	}
	before := liveHeap()
	w.expect("too much", createACL("/a", list...).by(alice, ids...), wire.ErrInvalidACL)
	w.expect("one entry", createACL("/a", list[0]).by(alice, ids...), wire.OK)
	w.expect("one login", createACL("/b", list...).by(alice, ids[0]), wire.OK)
	one := wire.Op{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/c", ACL: list[:20]}}
	two := wire.Op{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/d", ACL: list[:20]}}
	if got := results(w.ok(multi(one, two).by(alice, ids[:900]...))); got != "-1:0 -1:-114 " {
		t.Errorf("in a multi: %s", got)
	}
	if grown := int64(liveHeap()) - int64(before); grown > 16*expandMax {
		t.Errorf("%d bytes are kept", grown)
	}
}

func TestValidIDs(t *testing.T) {
	tree := New(Options{SchemeSASL: true, SchemeX509: true})
	for text, want := range map[string]bool{
		"digest:a:b": true, "digest::b": true, "digest:a:": false, "digest:x": false, "digest:a:b:c": false, "digest:": false, "digest:a:b:": true,
		"ip:1.2.3.4": true, "ip:1.2.3.4/0": true, "ip:1.2.3.4/32": true, "ip:1.2.3.4/33": false, "ip:1.2.3.4/-1": false, "ip:1.2.3.4/x": false,
		"ip:::1": true, "ip:fe80::/10": true, "ip:::1/129": false, "ip:localhost": false, "ip:1.2.3": false, "ip:": false, "ip:fe80::1%eth0": false,
		"ip:127.000.000.001": true, "ip:+1.-0.3.4/+08": true, "ip:1.2.3.-4": false, "ip:1.2.3.256": false, "ip:1.2.3.4.": false, "ip:1.2..4": false,
		"ip:1.2.3. 4": false, "ip:0x1.2.3.4": false, "ip:1_0.2.3.4": false, "ip:1.2.3.4/": false, "ip:/8": false, "ip:1.2.3.4/8/8": false,
		"ip:::": true, "ip:::/0": true, "ip:1::": true, "ip:1:2:3:4:5:6:7:8": true, "ip:0001:2:3:4:5:6:7:8": true, "ip:00001:2:3:4:5:6:7:8": false,
		"ip:1:2:3:4:5:6:7": false, "ip:1:2:3:4:5:6:7:8:9": false, "ip:1:2:3:4:5:6:7::": true, "ip:1:2:3:4::5:6:7:8": false, "ip:1::2::3": false,
		"ip::::1": false, "ip:1:::2": false, "ip::1": false, "ip:1:": false, "ip:g::": false, "ip:::ffff:127.0.0.1": false, "ip:::127.0.0.1": false,
		"ip:::ffff:7f00:1": true, "ip:[::1]": false, "ip:١٢٧.0.0.1": false,
		"x509:CN=alice": true, "x509:CN=alice,OU=Dev\\, Inc,O=\"a,b\"": true, "x509:x": false, "x509:CN=a,": false, "x509:2.5.4.3=a": true,
		"x509:NOPE=a": false, "x509:CN=\"a": false, "x509:CN=a\\": false, "x509:oid.1.2=a+cn=b": true, "x509:1=a": false, "x509:1..2=a": false,
		"x509:C=a,L=a,S=a,ST=a,O=a,OU=a,T=a,IP=a,STREET=a,DC=a": true, "x509:DNQUALIFIER=a,DNQ=a,SURNAME=a,GIVENNAME=a,INITIALS=a": true,
		"x509:GENERATION=a,EMAILADDRESS=a,UID=a,SERIALNUMBER=a": true,
		"sasl:bob": true, "sasl:bob@EXAMPLE": true, "sasl:a/b@C": true, "sasl:a/b/c@D": false, "sasl:a@b@c": false, "sasl:a/b": true,
		"world:anyone": true, "world:x": false, "auth:x": false, "super:x": false, "ensemble:x": false,
	} {
		if got := tree.validID(id(text)); got != want {
			t.Errorf("%s: valid %v, want %v", text, got, want)
		}
	}
}

// TestPermits: an ACL permits exactly the identities that it names.
func TestPermits(t *testing.T) {
	list := []wire.ACL{acl(1, "digest:a:b"), acl(2, "ip:10.0.0.0/8"), acl(4, "x509:CN=a"), acl(8, "sasl:bob"), acl(16, "ip:2001:db8::/32")}
	for _, row := range []struct {
		o    Options
		ids  string
		perm int32
		want bool
	}{
		{Options{}, "digest:a:b", 1, true},
		{Options{}, "digest:a:c", 1, false},
		{Options{}, "digest:a:b", 2, false},
		{Options{}, "digest:a:b", 1 | 16, true},
		{Options{}, "super:", 31, true},
		{Options{SchemeSASL: true}, "sasl:a:b", 1, false},
		{Options{}, "ip:10.1.2.3", 2, true},
		{Options{}, "ip:::ffff:10.1.2.3", 2, true},
		{Options{}, "ip:11.1.2.3", 2, false},
		{Options{}, "ip:::1", 2, false},
		{Options{}, "ip:nonsense", 2, false},
		{Options{}, "ip:2001:db8::7", 16, true},
		{Options{}, "ip:2001:db9::7", 16, false},
		{Options{}, "x509:CN=a", 4, true},
		{Options{}, "x509:CN=root", 4, false},
		{Options{X509Super: "CN=root"}, "x509:CN=root", 4, true},
		{Options{SchemeSASL: true}, "sasl:bob", 8, true},
		{Options{}, "sasl:bob", 8, false}, // as with ZooKeeper, if the scheme is not switched on
		{Options{SchemeSASL: true}, "sasl:eve", 8, false},
		{Options{SchemeSASL: true}, "sasl:super", 8, true},
		{Options{SchemeSASL: true, LetAnySASLUser: "bob"}, "sasl:eve", 8, true},
		{Options{SchemeSASL: true, LetAnySASLUser: "eve"}, "sasl:eve", 8, false},
		{Options{LetAnySASLUser: "bob"}, "sasl:eve", 8, false},
		{Options{SchemeSASL: true, LetAnySASLUser: "bob"}, "digest:eve", 8, false},
		{Options{SkipACL: true}, "ip:1.1.1.1", 31, true},
		{Options{}, "other:x", 31, false},
	} {
		if got := New(row.o).permitsList(list, row.perm, []wire.ID{id(row.ids)}); got != row.want {
			t.Errorf("%+v %s for %d: %v", row.o, row.ids, row.perm, got)
		}
	}
	for _, row := range []struct {
		entry, peer string
		want        bool
	}{
		{"127.000.000.001", "127.0.0.1", true}, {"+127.0.0.010", "127.0.0.10", true}, {"127.0.0.010", "127.0.0.8", false},
		{"010.0.0.0/08", "10.9.9.9", true}, {"127.0.0.1/31", "127.0.0.0", true}, {"127.0.0.1/31", "127.0.0.2", false}, {"9.9.9.9/0", "127.0.0.1", true},
		{"::ffff:127.0.0.1", "127.0.0.1", false}, {"::ffff:7f00:1", "127.0.0.1", false}, {"::/0", "127.0.0.1", false}, {"0.0.0.0/0", "::1", false},
		{"0::01", "::1", true}, {"2001:db8::/32", "2001:0db8:0:0:0:0:0:1", true}, {"::1/33", "::2", true}, {"::1", "0:0:0:0:0:0:0:1", true},
	} {
		if got := New(Options{}).permitsList([]wire.ACL{acl(1, "ip:"+row.entry)}, 1, []wire.ID{id("ip:" + row.peer)}); got != row.want {
			t.Errorf("the entry %s lets %s in: %v", row.entry, row.peer, got)
		}
	}
	tree := New(Options{})
	if !tree.permitsList(nil, 31, nil) || !tree.permitsList([]wire.ACL{acl(0, "ip:1.1.1.1"), acl(2, "world:anyone")}, 2, nil) ||
		tree.permitsList([]wire.ACL{acl(0, "world:anyone")}, 31, nil) {
		t.Error("the empty list, an entry for world or an entry without permissions is handled wrongly")
	}
}

// TestGetACL: a client that may not administer a znode sees no password hash, and a
// client that may neither read nor administer it sees nothing.
func TestGetACL(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(createACL("/n", acl(16, "digest:boss:hash"), acl(1, "ip:127.0.0.1"), acl(31, "digest:other:hash2")))
	get := func(ids ...wire.ID) string {
		var out wire.ACLResponse
		if code := w.tree.GetACL(&conn{ids: ids}, "/n", &out); code != wire.OK {
			return code.Error()
		}
		if out.Stat != w.stat("/n") {
			t.Errorf("stat %+v", out.Stat)
		}
		return fmt.Sprint(out.ACL)
	}
	full := "[{16 {digest boss:hash}} {1 {ip 127.0.0.1}} {31 {digest other:hash2}}]"
	masked := "[{16 {digest boss:x}} {1 {ip 127.0.0.1}} {31 {digest other:x}}]"
	for _, row := range []struct {
		who  wire.ID
		want string
	}{
		{id("digest:boss:hash"), full}, {id("super:"), full}, {id("ip:127.0.0.1"), masked}, {id("ip:127.0.0.2"), wire.ErrNoAuth.Error()},
	} {
		if got := get(row.who); got != row.want {
			t.Errorf("%v sees %s, want %s", row.who, got, row.want)
		}
	}
	if got := get(id("digest:boss:hash")); got != full {
		t.Errorf("masking changed the list: %s", got)
	}
}

// TestACLTable: equal lists are stored once. A list is removed together with the last znode that has it.
func TestACLTable(t *testing.T) {
	w := newWorld(t, Options{})
	a := acl(31, "digest:a:b")
	super := id("super:")
	for _, path := range []string{"/x", "/y"} {
		w.ok(createACL(path, a, acl(1, "world:anyone")).by(alice, super))
	}
	if x, y := w.tree.find("/x"), w.tree.find("/y"); x.acl != y.acl || w.tree.acls.entries[x.acl].refs != 2 {
		t.Error("/x and /y do not share one stored ACL")
	}
	w.ok(setACL("/x", -1, a).by(alice, super))
	w.ok(remove("/y", -1))
	w.ok(remove("/x", -1))
	if n := len(w.tree.acls.places); n != 1 { // the list of /zookeeper/config
		t.Errorf("%d ACLs are left, want 1", n)
	}
	w.ok(createACL("/z", a))
	if key := w.tree.acls.entries[w.tree.find("/z").acl].key; key != 4 {
		t.Errorf("the new ACL has the key %d, want 4", key)
	}
}

// TestListsAreCheckedOnce (etcd 14571): only the leader checks permissions. A server that
// applies the transaction does not check them again.
func TestListsAreCheckedOnce(t *testing.T) {
	w := newWorld(t, Options{})
	me := id("digest:me:x")
	w.ok(createACL("/mine", acl(31, "digest:me:x")))
	w.expect("another", setData("/mine", "x", -1), wire.ErrNoAuth)
	w.ok(setData("/mine", "x", -1).by(alice, me))
	w.ok(createACL("/mine/kid", acl(0, "digest:me:x")).by(alice, me))
	w.ok(remove("/mine/kid", -1).by(alice, me))
	follower := New(Options{Seed: 4})
	for _, txn := range w.txns {
		follower.Apply(txn)
	}
	if d := diff(dump(w.tree), dump(follower)); d != "" {
		t.Errorf("differs:%s", d)
	}
}

// TestPendingACLDecides: a setACL that is not applied yet decides whether a later request
// is allowed, both when the new ACL grants access and when it denies it.
func TestPendingACLDecides(t *testing.T) {
	w := newWorld(t, Options{})
	me := id("digest:me:x")
	w.ok(createACL("/n", acl(31, "digest:me:x")))
	pending := []*record.Txn{}
	prepare := func(req *Request, want wire.OpCode) {
		t.Helper()
		txn, _ := w.prepare(req)
		if pending = append(pending, txn); txn.Type != want {
			t.Errorf("%v is prepared as %v, want %v", req.Op, txn.Type, want)
		}
	}
	prepare(setData("/n", "early", -1), wire.OpError)
	prepare(setACL("/n", -1, acl(31, "world:anyone")).by(alice, me), wire.OpSetACL)
	prepare(setData("/n", "granted", -1), wire.OpSetData)
	prepare(setACL("/n", -1, acl(1, "world:anyone")), wire.OpSetACL)
	prepare(setData("/n", "denied", -1).by(alice, me), wire.OpError)
	for _, txn := range pending {
		w.apply(txn)
	}
	if got := string(w.tree.find("/n").data()); got != "granted" {
		t.Errorf("the data is %q", got)
	}
}

// TestLongACLsAreComparedOnce shows that a multi and a multiRead with many parts do not compare a
// long ACL with many identities for each part, which would block all others for minutes.
func TestLongACLsAreComparedOnce(t *testing.T) {
	const limit = 200 // comparisons of the list with the identities; without the memory 6,000
	w := newWorld(t, Options{})
	var ids []wire.ID
	var list []wire.ACL
	for i := range 1000 {
		ids = append(ids, id(fmt.Sprintf("digest:user%d:hash", i)))
	}
	for i := range 4_000 {
		list = append(list, acl(wire.PermAll, fmt.Sprintf("digest:other%d:hash", i)))
	}
	w.ok(createACL("/a", append(list, acl(wire.PermAll, "digest:user999:hash"))...))
	var writes, reads []wire.Op
	for range 2000 {
		writes = append(writes, opSet("/a", "", -1), opCheck("/a", -1))
		reads = append(reads, wire.Op{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/a"}})
	}
	began := time.Now()
	w.ok(setData("/a", "", -1).by(alice, ids...))
	once := time.Since(began)
	began = time.Now()
	w.ok(multi(writes...).by(alice, ids...))
	var r wire.MultiResponse
	if code := w.tree.MultiRead(&conn{ids: ids}, reads, 1<<30, &r); code != wire.OK || r.Results[1999].Type != wire.OpGetData {
		t.Errorf("multiRead: %v", code)
	}
	if d := time.Since(began); d > limit*once {
		t.Errorf("the requests took %v, and one comparison takes %v", d, once)
	}
	ids = ids[:999]
	if got := w.do(multi(writes...).by(alice, ids...)); got.Response.(*wire.MultiResponse).Results[0].Err != wire.ErrNoAuth {
		t.Errorf("a multi of others: %+v", got)
	}
	if w.tree.MultiRead(&conn{ids: ids}, reads, 1<<30, &r); r.Results[1999].Err != wire.ErrNoAuth {
		t.Errorf("a multiRead of others: %+v", r.Results[1999])
	}
}

// TestSubjects: a subject of an x509 identity is a list of attributes with the names that Java's X500Principal knows, or with numbers.
func TestSubjects(t *testing.T) {
	for _, name := range strings.Fields("CN C L S ST O OU T IP STREET DC DNQUALIFIER DNQ SURNAME GIVENNAME INITIALS GENERATION EMAILADDRESS UID SERIALNUMBER 2.5.4.3 OID.2.5.4.3 cn") {
		if !validSubject(name+"=x") || !validSubject("CN=a, "+name+" =x") {
			t.Errorf("%s=x is refused", name)
		}
	}
	for text, want := range map[string]bool{
		"": true, "CN=a,O=b": true, "CN=a;O=b": true, "CN=a+O=b": true, `CN="a,b"`: true, `CN=a\,b`: true, "CN=": true, "CN=a=b": true,
		"CN": false, "X=a": false, "CN=a,": false, "CN=a,b": false, `CN="a`: false, `CN=a\`: false, "2=a": false, "2..5=a": false, ".=a": false, "2.x=a": false, "=a": false,
	} {
		if validSubject(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestExpandedListIsBounded: the ids that replace `auth` may take expandMax bytes, and not one more.
func TestExpandedListIsBounded(t *testing.T) {
	const rest = len(schemeDigest) + 3*4
	for size, want := range map[int]bool{expandMax - rest: true, expandMax - rest + 1: false} {
		p := &proposal{t: New(Options{}), ids: []wire.ID{{Scheme: schemeDigest, ID: strings.Repeat("a", size)}}}
		if _, ok := p.resolveACL([]wire.ACL{acl(31, "auth:")}); ok != want {
			t.Errorf("an id of %d bytes is accepted: %v", size, ok)
		}
	}
}
