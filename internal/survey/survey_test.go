package survey

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// nonceOf returns a nonce that consists of one digit.
func nonceOf(d string) string { return strings.Repeat(d, 32) }

func uuidOf(d string) string {
	r := func(n int) string { return strings.Repeat(d, n) }
	return r(8) + "-" + r(4) + "-" + r(4) + "-" + r(4) + "-" + r(12)
}

// placeOf returns a parent with children. A child is given as "name" (an ephemeral of session 1, 2 and so on, by
// its position), "name persistent" or "name session 7".
func placeOf(at, beside string, children ...string) Parent {
	p := Parent{Path: at, Beside: strings.Fields(beside)}
	for i, c := range children {
		f := strings.Fields(c)
		owner := wire.SessionID(i + 1)
		if len(f) == 2 {
			owner = 0
		}
		if len(f) == 3 {
			fmt.Sscan(f[2], &owner)
		}
		p.Names = append(p.Names, f[0])
		p.Children = append(p.Children, Child{Name: f[0], Data: []byte("id" + f[0][:1]), Stat: wire.Stat{EphemeralOwner: owner, Czxid: wire.Zxid(i + 1), Ctime: 5}})
	}
	return p
}

// text returns a recipe in one line: the session and the role of each participant, and for how many others it
// waits.
func text(s Recipe) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Path, s.Kind)
	if s.Leases > 0 {
		fmt.Fprintf(&b, " of %d", s.Leases)
	}
	if s.Items > 0 {
		fmt.Fprintf(&b, " %d items", s.Items)
	}
	for _, st := range s.Participants {
		fmt.Fprintf(&b, "; %d %s", int64(st.Session), st.Role)
		if n := len(st.Behind); n > 0 {
			fmt.Fprintf(&b, " for %d", n)
		}
	}
	for _, o := range s.Orphans {
		fmt.Fprintf(&b, "; orphan %s", path.Base(o.Path)[:1])
	}
	return b.String()
}

// TestRecognise shows that a recipe is recognised by the names of its znodes, in the naming of each library.
func TestRecognise(t *testing.T) {
	a, b, c := nonceOf("a"), nonceOf("b"), nonceOf("c")
	for _, tc := range []struct {
		want   string
		places []Parent
	}{
		{"/p lock; 1 holds; 2 waits for 1", []Parent{placeOf("/p", "", a+"-n_0000000000", b+"-n_0000000001")}},
		{"/p election; 1 leads; 2 waits for 1", []Parent{placeOf("/p", "", "_c_"+uuidOf("a")+"-latch-0000000000", "_c_"+uuidOf("b")+"-latch-0000000001")}},
		{"/p election; 1 leads", []Parent{placeOf("/p", "", "n_0000000000")}},
		// The sequence numbers decide the order, not the names or the order of the list.
		{"/p lock; 2 holds; 1 waits for 1", []Parent{placeOf("/p", "", "_c_"+uuidOf("a")+"-lock-0000000009", "_c_"+uuidOf("b")+"-lock-0000000008")}},
		{"/p lock; 1 holds; 2 waits for 1", []Parent{placeOf("/p", "", "_c_"+a+"-lock-0000000000", "_c_"+b+"-lock-0000000001")}},
		{"/p lock; 1 holds; 2 waits for 1", []Parent{placeOf("/p", "", a+"__lock__0000000000", b+"__lock__0000000001")}},
		// The counter of the parent has reached its end: the czxids decide the order.
		{"/p lock; 1 holds; 2 waits for 1", []Parent{placeOf("/p", "", b+"-n_2147483647", a+"-n_2147483647")}},
		// Readers wait only for writers; writers wait for all.
		{"/p read-write lock; 1 holds; 2 holds; 3 waits for 2; 4 waits for 1",
			[]Parent{placeOf("/p", "", a+"__rlock__0000000000", b+"__rlock__0000000001", c+"__lock__0000000002", nonceOf("d")+"__rlock__0000000003")}},
		{"/p read-write lock; 1 holds; 2 waits for 1", []Parent{placeOf("/p", "", "_c_"+uuidOf("a")+"-__WRIT__0000000000", "_c_"+uuidOf("b")+"-__READ__0000000001")}},
		{"/p read-write lock; 1 holds; 2 waits for 1", []Parent{placeOf("/p", "", a+"-r_0000000000", b+"-n_0000000001")}},
		// In a semaphore, the first client at the gate waits. Its bid is already among the leases.
		{"/s semaphore; 1 holds; 2 holds; 3 waits for 2; 4 waits for 1", []Parent{
			placeOf("/s/leases", "leases locks", a+"-n_0000000000", b+"-n_0000000001", c+"-n_0000000002"),
			placeOf("/s/locks", "leases locks", a+"-n_0000000007 session 3", b+"-n_0000000008 session 4")}},
		{"/s semaphore; 1 holds", []Parent{placeOf("/s/leases", "leases", "_c_"+uuidOf("a")+"-lease-0000000000")}},
		{"/s semaphore; 1 holds; 2 waits for 1", []Parent{
			placeOf("/s", "s s-__lock__", a), placeOf("/s-__lock__", "s s-__lock__", b+"__lock__0000000000 session 2")}},
		{"/s semaphore; 1 holds", []Parent{placeOf("/s/leases", "leases locks", "_c_"+uuidOf("a")+"-lease-0000000000"), placeOf("/s/locks", "leases locks")}},
		{"/q queue 3 items; 1 is next; 2 waits for 1", []Parent{
			placeOf("/q", "q q.line", a+"-entry-100-0000000000 persistent", "entry-100-0000000001 persistent", "qn-0000000002 persistent"),
			placeOf("/q.line", "q q.line", a+"-n_0000000000", b+"-n_0000000001")}},
		{"/w work queue 2 items; 1 works; 9 is next", []Parent{
			placeOf("/w/entries", "entries taken", "entry-100-0000000000 persistent", "entry-100-0000000001 persistent"),
			placeOf("/w/taken", "entries taken", "entry-100-0000000000"),
			placeOf("/w.line", "w w.line", a+"-n_0000000000 session 9")}},
		{"/b double barrier; 1 waits; 2 waits", []Parent{placeOf("/b", "", a, b)}},
		{"/b double barrier; 1 is in", []Parent{placeOf("/b", "", uuidOf("a"), "ready persistent")}},
		{"/b double barrier; 2 is in; 3 is in; orphan r", []Parent{placeOf("/b", "", "ready persistent", a, b)}},
		{"/b double barrier; 1 is in; 3 is in", []Parent{placeOf("/b", "", a, "ready persistent", b)}},
		{"/g group; 1 is in; 2 is in", []Parent{placeOf("/g", "", "host-a", "host-b")}},
		{"/g group; 1 is in", []Parent{placeOf("/g", "", a+"__party__")}},
		{"/p lock; 2 holds; orphan a", []Parent{placeOf("/p", "", a+"-n_0000000000 persistent", b+"-n_0000000001")}},
		// Two bids with the same nonce come from a lost reply. Two bids of one session come from two threads,
		// except in an election.
		{"/p lock; 1 holds; 1 waits for 1; orphan a", []Parent{placeOf("/p", "", a+"-n_0000000000", a+"-n_0000000001 session 1")}},
		{"/p lock; 1 holds; 1 waits for 1", []Parent{placeOf("/p", "", a+"__lock__0000000000", a[:31]+"b__lock__0000000001 session 1")}},
		{"/p read-write lock; 1 holds; 1 waits for 1", []Parent{placeOf("/p", "", "_c_"+uuidOf("a")+"-__WRIT__0000000000", "_c_"+uuidOf("b")+"-__READ__0000000001 session 1")}},
		{"/p election; 1 leads; 1 waits for 1; orphan _", []Parent{placeOf("/p", "", "_c_"+uuidOf("a")+"-latch-0000000000", "_c_"+uuidOf("b")+"-latch-0000000001 session 1")}},
		{"/p lock; 1 holds; 1 waits for 1", []Parent{placeOf("/p", "", "x-0000000000", "x-0000000001 session 1")}},
		// Curator's queues, and the znodes of items that consumers work on.
		{"/q queue 3 items", []Parent{placeOf("/q", "", "queue-0000000000 persistent", "queue-0FFFFFFFB0000000001 persistent", "queue-|17A|0000000002 persistent")}},
		{"/l work queue; 1 works; 2 works", []Parent{placeOf("/l", "", "queue-0000000000", "queue-|id|0000000001")}},
		// A mark is not a participant.
		{"", []Parent{placeOf("/v", "", "_m_"+a)}},
		{"", []Parent{placeOf("/v", "", "_m_"+a[:22]+"0000000007")}},
		{"/t transaction; 1 coordinates; 2 is in", []Parent{placeOf("/t/tx-"+a, "", "coordinator", "site_berlin", "decision persistent")}},
		{"", []Parent{placeOf("/app", "", "config persistent", "a-0000000001 persistent")}},
	} {
		var recipes []Recipe
		for _, p := range tc.places {
			if s, ok := Recognise(p); ok {
				recipes = append(recipes, s)
			}
		}
		got := ""
		for _, s := range Assemble(recipes) {
			got += strings.ReplaceAll(text(s), "/tx-"+a, "")
		}
		if got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

// TestRecogniseMembers shows that members are recognised by their names and data.
func TestRecogniseMembers(t *testing.T) {
	uuid, hex := uuidOf("a"), nonceOf("b")
	counted := uuid[:26] + "0000000007" // an id that ends like a sequence number
	for _, tc := range []struct {
		name, data string
		kind       claim.Kind
		naming, id string
	}{
		{"host-a", "anything", claim.KindGroup, "member", "host-a"},
		{"_c_" + uuid + "-host-a", "anything", claim.KindGroup, "curator-node", "host-a"},
		{hex + "-host-a", "", claim.KindGroup, "kazoo-shallow", "host-a"},
		{hex + "__party__", "host-a", claim.KindGroup, "kazoo-party", "host-a"},
		{uuid, "10.0.0.1", claim.KindDoubleBarrier, "curator-barrier", "10.0.0.1"},
		{counted, "10.0.0.1", claim.KindDoubleBarrier, "curator-barrier", "10.0.0.1"},
		{hex, "host-a", claim.KindDoubleBarrier, "barrier", "host-a"},
		{hex[:22] + "0000000007", "host-a", claim.KindDoubleBarrier, "barrier", "host-a"},
		{uuid, `{"name":"web","id":"` + uuid + `","address":"h","port":81}`, claim.KindService, "curator-instance", uuid},
		{"one", `{"name":"web","id":"one"}`, claim.KindService, "curator-instance", "one"},
		{"one", `{"name":"other","id":"one"}`, claim.KindGroup, "member", "one"},
	} {
		p := placeOf("/services/web", "", tc.name)
		p.Children[0].Data = []byte(tc.data)
		s, ok := Recognise(p)
		if !ok || s.Kind != tc.kind || s.Participants[0].Naming.String() != tc.naming || s.Participants[0].ID != tc.id {
			t.Errorf("%s: %s, %+v", tc.name, s.Kind, s.Participants)
		}
	}
}

// TestRecogniseKazooSemaphore shows that the number of leases is read from the data of the semaphore's own
// znode, where kazoo writes it, and that the id which kazoo writes at its gate is shown as its user gave it.
func TestRecogniseKazooSemaphore(t *testing.T) {
	lease, gate := placeOf("/s", "s s-__lock__", nonceOf("a")), placeOf("/s-__lock__", "s s-__lock__", nonceOf("b")+"__lock__0000000000 session 2")
	lease.Data, gate.Children[0].Data = []byte("1"), []byte("b'bob'")
	a, _ := Recognise(lease)
	b, _ := Recognise(gate)
	s := Assemble([]Recipe{a, b})[0]
	if got := text(s); got != "/s semaphore of 1; 1 holds; 2 waits for 1" || s.Participants[1].ID != "bob" {
		t.Errorf("%s, %q", got, s.Participants[1].ID)
	}
}

// TestRecogniseLeader shows that LEADER makes the bids of a lock those of an election and gives the time since
// when the leader leads, and that LEADER is an orphan if the bid that it names is gone.
func TestRecogniseLeader(t *testing.T) {
	bid := nonceOf("a") + "-n_0000000000"
	p := placeOf("/p", "", bid, "LEADER")
	for _, tc := range []struct {
		names string
		want  string
		since int64
	}{{bid, "/p election; 1 leads", 77}, {nonceOf("b") + "-n_0000000000", "/p election; 1 leads; orphan L", 5}} {
		p.Children[1].Data = claim.Notice{ID: "x", Bid: tc.names, Token: 1}.Encode()
		p.Children[1].Stat.Ctime = 77
		s, ok := Recognise(p)
		if !ok || text(s) != tc.want || s.Participants[0].Since != tc.since {
			t.Errorf("%s, since %d", text(s), s.Participants[0].Since)
		}
	}
	p.Names, p.Children = p.Names[1:], p.Children[1:]
	if s, ok := Recognise(p); !ok || text(s) != "/p election; orphan L" {
		t.Errorf("alone: %s", text(s))
	}
}

// TestReads shows that the items of a queue are not read, because their names are enough, and that items at work
// are read.
func TestReads(t *testing.T) {
	item := "entry-100-0000000000"
	if got := placeOf("/q", "", item, "x").Reads(); !slices.Equal(got, []string{"x"}) {
		t.Errorf("of a queue: %q", got)
	}
	if got := placeOf("/w/taken", "entries taken", item).Reads(); !slices.Equal(got, []string{item}) {
		t.Errorf("of what is taken: %q", got)
	}
	var many []string
	for i := range 3 * atWorkMax {
		many = append(many, fmt.Sprintf("queue-%010d", i))
	}
	if got := placeOf("/c", "", many...).Reads(); len(got) != atWorkMax {
		t.Errorf("%d of Curator's items are read", len(got))
	}
}

// TestDeadlocks shows that sessions that wait for each other in a cycle are found. Sessions that wait behind
// them, and sessions that will get their turn, are not part of the result.
func TestDeadlocks(t *testing.T) {
	lock := func(at string, sessions ...int) Parent {
		var names []string
		for i, s := range sessions {
			names = append(names, fmt.Sprintf("%s-n_%010d session %d", nonceOf(string(rune('a'+i))), i, s))
		}
		return placeOf(at, "", names...)
	}
	election := func(at string, sessions ...int) Parent {
		var names []string
		for i, s := range sessions {
			names = append(names, fmt.Sprintf("_c_%s-latch-%010d session %d", uuidOf(string(rune('a'+i))), i, s))
		}
		return placeOf(at, "", names...)
	}
	for _, tc := range []struct {
		places []Parent
		want   string
	}{
		{[]Parent{lock("/1", 1, 2), lock("/2", 2, 1)}, "1 2."},
		{[]Parent{lock("/1", 1, 2), lock("/2", 1, 2)}, ""},
		{[]Parent{lock("/1", 1, 2), lock("/2", 2, 3), lock("/3", 3, 1)}, "1 3 2."},
		{[]Parent{lock("/1", 1, 2, 4), lock("/2", 2, 1, 5)}, "1 2."},
		{[]Parent{lock("/1", 1, 2), lock("/2", 2, 1), lock("/3", 3, 4), lock("/4", 4, 3)}, "1 2.3 4."},
		// A session that waits blocks the sessions behind it, as a session that holds the lock does.
		{[]Parent{lock("/1", 9, 1, 2), lock("/2", 2, 1)}, "1 2."},
		{[]Parent{lock("/1", 1, 1)}, ""},
		// Each client leads one election and waits in the other one. That is not a deadlock.
		{[]Parent{election("/1", 1, 2), election("/2", 2, 1)}, ""},
		{[]Parent{placeOf("/1", "", "w-0000000000 session 1", "w-0000000001 session 2"), placeOf("/2", "", "w-0000000000 session 2", "w-0000000001 session 1")}, ""},
		{[]Parent{placeOf("/q.line", "q q.line", nonceOf("a")+"-n_0000000000 session 1", nonceOf("b")+"-n_0000000001 session 2"), lock("/2", 2, 1)}, ""},
		// One of the two leases will be released, so no session waits for ever.
		{[]Parent{placeOf("/s", "s s-__lock__", nonceOf("a")+" session 1", nonceOf("b")+" session 3"),
			placeOf("/s-__lock__", "s s-__lock__", nonceOf("a")+"__lock__0000000000 session 2"), lock("/2", 2, 1)}, ""},
		{[]Parent{placeOf("/s", "s s-__lock__", nonceOf("a")+" session 1"),
			placeOf("/s-__lock__", "s s-__lock__", nonceOf("a")+"__lock__0000000000 session 2"), lock("/2", 2, 1)}, "1 2."},
	} {
		var recipes []Recipe
		for _, p := range tc.places {
			s, _ := Recognise(p)
			recipes = append(recipes, s)
		}
		got := ""
		for _, circle := range Deadlocks(Assemble(recipes)) {
			var names []string
			for _, l := range circle {
				names = append(names, fmt.Sprint(int64(l.Session)))
				if l.Holds.Session != l.Session || l.Wait.Session != l.Session || l.Holds.Path == l.Wait.Path {
					t.Errorf("link %+v", l)
				}
			}
			got += strings.Join(names, " ") + "."
		}
		if got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestMissing(t *testing.T) {
	s, _ := Recognise(placeOf("/p", "", nonceOf("a")+"-n_0000000000", nonceOf("b")+"-n_0000000001"))
	got := s.Missing(map[wire.SessionID]bool{2: true})
	if len(got) != 1 || got[0].Path != s.Participants[0].Path {
		t.Errorf("%+v", got)
	}
}
