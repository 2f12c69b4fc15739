package view

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/zk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// look is a view of a running standalone server, with a client of that server.
type look struct {
	*testing.T
	*View
	zc *zk.Client
}

func start(t *testing.T) *look {
	return startOn(t, store.NewMem(1), config.Default().Storage.StallLimit)
}

// startOn starts the server on a disk, which counts as one that does not answer after limit.
func startOn(t *testing.T, disk *store.Mem, limit time.Duration) *look {
	t.Helper()
	c := config.Default()
	c.Storage.StallLimit = limit
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	c.Limits.ClientCnxns = 0
	s, err := server.New(server.Options{Config: c, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	l := &look{t, New(s, "1"), nil}
	l.zc = l.client()
	return l
}

// client returns a further client of the server.
func (l *look) client() *zk.Client {
	l.Helper()
	zc, err := zk.Connect(l.Context(), l.srv.Addr().String(), nil)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { zc.Close(context.Background()) })
	return zc
}

func (l *look) create(path string, data []byte, opts ...zk.CreateOption) string {
	l.Helper()
	made, _, err := l.zc.Create(l.Context(), path, data, opts...)
	if err != nil {
		l.Fatal(path, err)
	}
	return made
}

// ok fails the test if there was an error.
func ok[T any](l *look) func(T, error) T {
	return func(v T, err error) T {
		l.Helper()
		if err != nil {
			l.Fatal(err)
		}
		return v
	}
}

// kindOf returns the kind of an error; -1: it has none.
func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) && e.What != "" {
		return e.Kind
	}
	return -1
}

var (
	anyone = Who{Addr: netip.MustParseAddr("127.0.0.1")}
	super  = Who{Addr: netip.MustParseAddr("127.0.0.1"), Super: true}
)

// TestNodeShowsWhatTheViewerMayRead: a viewer sees only what access-control lists allow; an operator sees everything.
func TestNodeShowsWhatTheViewerMayRead(t *testing.T) {
	l := start(t)
	l.create("/open", []byte("text"))
	l.create("/here", nil, zk.ACLs{{Perms: zk.PermRead, ID: zk.ID{Scheme: "ip", ID: "127.0.0.1"}}})
	l.create("/secret", []byte("password"), zk.ACLs{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "a:b"}}})
	l.create("/open/e", []byte{0, 1}, zk.Ephemeral)
	n := ok[*Node](l)(l.Node(t.Context(), anyone, "/open", Listing{}))
	if n.Data.Text != "text" || n.Kind != "persistent" || len(n.ACL) != 1 || n.ACL[0] != (ACL{"world", "anyone", "cdrwa"}) || n.Stat.Children != 1 {
		t.Errorf("/open: %+v", n)
	}
	if c := n.Children; len(c) != 1 || c[0].Path != "/open/e" || c[0].Owner != l.zc.Session().ID.String() || c[0].Bytes != 2 {
		t.Errorf("children of /open: %+v", c)
	}
	if n := ok[*Node](l)(l.Node(t.Context(), anyone, "/open/e", Listing{})); n.Kind != "ephemeral" || n.Data.Hex != "0001" || n.Stat.Owner == "" {
		t.Errorf("/open/e: %+v", n)
	}
	ok[*Node](l)(l.Node(t.Context(), anyone, "/here", Listing{}))
	for path, want := range map[string]Kind{"/secret": Forbidden, "/missing": Missing, "open": Wrong, "/open/": Wrong, "": Wrong} {
		if n, err := l.Node(t.Context(), anyone, path, Listing{}); kindOf(err) != want || n != nil {
			t.Errorf("%q: %v, %v", path, n, err)
		}
	}
	if n := ok[*Node](l)(l.Node(t.Context(), super, "/secret", Listing{})); n.Data.Text != "password" {
		t.Errorf("for an operator: %+v", n)
	}
	root := ok[*Node](l)(l.Node(t.Context(), anyone, "/", Listing{}))
	i := slices.IndexFunc(root.Children, func(c Child) bool { return c.Name == "secret" })
	if c := root.Children[i]; !c.Hidden || c.Bytes != 0 {
		t.Errorf("the list shows figures of a hidden znode: %+v", c)
	}
}

// TestChildrenInPages: the pages of many children are in order, without a gap, and can be filtered.
func TestChildrenInPages(t *testing.T) {
	l := start(t)
	l.create("/many", nil)
	var ops []zk.Op
	for i := range 2500 {
		ops = append(ops, zk.CreateOp(fmt.Sprintf("/many/n%05d", i*7919%100_000), nil))
	}
	if _, err := l.zc.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
	var all []string
	for after := ""; ; {
		n := ok[*Node](l)(l.Node(t.Context(), anyone, "/many", Listing{After: after, Limit: 300}))
		for _, c := range n.Children {
			all = append(all, c.Name)
		}
		if n.First != (after == "") || n.Next != "" && len(n.Children) != 300 {
			t.Fatalf("a page of %d after %q: next %q", len(n.Children), after, n.Next)
		}
		if after = n.Next; after == "" {
			break
		}
	}
	if len(all) != 2500 || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != 2500 {
		t.Errorf("%d children, in order: %v", len(all), slices.IsSorted(all))
	}
	want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, "n00") })
	n := ok[*Node](l)(l.Node(t.Context(), anyone, "/many", Listing{Prefix: "n00"}))
	if len(n.Children) != len(want) || n.Children[0].Name != want[0] || n.Next != "" {
		t.Errorf("%d children begin with n00, want %d", len(n.Children), len(want))
	}
	if n := ok[*Node](l)(l.Node(t.Context(), anyone, "/many", Listing{Limit: 1 << 30})); len(n.Children) != ChildrenMax {
		t.Errorf("the largest page has %d children", len(n.Children))
	}
}

// TestDataIsCut: only the beginning of long data is shown, and it does not end in the middle of a character.
func TestDataIsCut(t *testing.T) {
	for _, c := range []struct {
		data        []byte
		text        bool
		shown, size int
	}{
		{nil, false, 0, 0}, {[]byte("ü"), true, 2, 2}, {[]byte(strings.Repeat("x", 1<<20)), true, DataShown, 1 << 20},
		{[]byte("x" + strings.Repeat("日", DataShown)), true, DataShown, 1 + 3*DataShown}, {[]byte(strings.Repeat("日", DataShown)), true, DataShown - 1, 3 * DataShown},
		{[]byte{0xff}, false, 1, 1}, {make([]byte, 1<<20), false, DataShown, 1 << 20},
	} {
		if d := dataOf(c.data); (d.Text != "") != c.text || d.Shown != c.shown || d.Bytes != c.size || d.Null != (c.data == nil) {
			t.Errorf("%d bytes: %d of %d shown, text %v, null %v", len(c.data), d.Shown, d.Bytes, d.Text != "", d.Null)
		}
	}
}

// TestSearchIsBounded: a search finds names whatever their case, stops at its limit and says so, and shows nothing
// below znodes that the viewer may not read.
func TestSearchIsBounded(t *testing.T) {
	l := start(t)
	l.create("/a", nil)
	for i := range FoundMax + 50 {
		l.create(fmt.Sprintf("/a/Worker-%d", i), nil)
	}
	l.create("/closed", nil, zk.ACLs{{Perms: zk.PermAll &^ zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}}})
	l.create("/closed/worker-hidden", nil)
	f := ok[*Found](l)(l.Search(t.Context(), anyone, "/", "wORKER"))
	if len(f.Nodes) != FoundMax || f.Complete {
		t.Errorf("%d found, complete %v", len(f.Nodes), f.Complete)
	}
	f = ok[*Found](l)(l.Search(t.Context(), anyone, "/", "worker-7"))
	if len(f.Nodes) != 11 || !f.Complete || !f.Hidden || f.Visited < FoundMax {
		t.Errorf("%d found, complete %v, hidden %v, visited %d", len(f.Nodes), f.Complete, f.Hidden, f.Visited)
	}
	if f := ok[*Found](l)(l.Search(t.Context(), anyone, "/", "hidden")); len(f.Nodes) != 0 {
		t.Errorf("found %+v", f.Nodes)
	}
	if f := ok[*Found](l)(l.Search(t.Context(), super, "/", "hidden")); len(f.Nodes) != 1 {
		t.Errorf("an operator found %+v", f.Nodes)
	}
	for _, text := range []string{"", strings.Repeat("x", 1001)} {
		if _, err := l.Search(t.Context(), anyone, "/", text); kindOf(err) != Wrong {
			t.Errorf("a text of %d bytes: %v", len(text), err)
		}
	}
}

// TestHistoryComesFromTheLogs: the changes of a path are found in the logs, including those in a multi and those by
// the end of a session. The history of a deleted znode is shown only to operators.
func TestHistoryComesFromTheLogs(t *testing.T) {
	l := start(t)
	l.create("/a", []byte("1"))
	if _, err := l.zc.Set(t.Context(), "/a", []byte("22"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.zc.SetACL(t.Context(), "/a", zk.OpenACL(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.zc.Multi(t.Context(), zk.SetOp("/a", []byte("333"), 1), zk.CreateOp("/b", nil)); err != nil {
		t.Fatal(err)
	}
	other := l.client()
	if _, _, err := other.Create(t.Context(), "/e", nil, zk.Ephemeral); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := ok[*History](l)(l.History(t.Context(), anyone, "/a"))
	got := ""
	for _, c := range h.Changes {
		bytes, version := -1, int32(-1)
		if c.Bytes != nil {
			bytes = *c.Bytes
		}
		if c.Version != nil {
			version = *c.Version
		}
		got += fmt.Sprint(c.What, " ", bytes, " ", version, " ", c.Multi, " ", c.Session == l.zc.Session().ID.String() && c.Address != "", "\n")
	}
	if want := "setData 3 2 true true\nsetACL -1 1 false true\nsetData 2 1 false true\ncreate 1 -1 false true\n"; got != want || !h.Complete || h.From != "0x1" || h.Bytes == 0 {
		t.Errorf("history of /a:\n%sfrom %s to %s, %d bytes, complete %v %s", got, h.From, h.To, h.Bytes, h.Complete, h.Note)
	}
	if _, err := l.History(t.Context(), anyone, "/e"); kindOf(err) != Missing {
		t.Errorf("history of a znode that is gone: %v", err)
	}
	h = ok[*History](l)(l.History(t.Context(), super, "/e"))
	if len(h.Changes) != 2 || h.Changes[0].What != "deleteSession" || h.Changes[1].What != "create" {
		t.Errorf("history of /e: %+v", h.Changes)
	}
	for range HistoryMax + 10 {
		if _, err := l.zc.Set(t.Context(), "/b", nil, -1); err != nil {
			t.Fatal(err)
		}
	}
	if h := ok[*History](l)(l.History(t.Context(), anyone, "/b")); len(h.Changes) != HistoryMax || h.Complete {
		t.Errorf("%d changes of /b, complete %v", len(h.Changes), h.Complete)
	}
}

// TestSessionsWithTheirCost: sessions are listed with what they cost, in the requested order.
func TestSessionsWithTheirCost(t *testing.T) {
	l := start(t)
	other := l.client()
	l.create("/e", nil, zk.Ephemeral)
	if _, _, _, err := other.GetW(t.Context(), "/e"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, _, err := other.Get(t.Context(), "/e"); err != nil {
			t.Fatal(err)
		}
	}
	first := func(order string) string {
		s := ok[*Sessions](l)(l.Sessions(Page{Sort: order, Limit: 1}))
		if s.Total != 2 || len(s.Sessions) != 1 || s.Next == nil || *s.Next != 1 || s.Sessions[0].Connection == nil {
			t.Errorf("by %s: %+v", order, s)
		}
		return s.Sessions[0].ID
	}
	mine, others := l.zc.Session().ID.String(), other.Session().ID.String()
	for order, want := range map[string]string{"requests": others, "": others, "bytes": others, "watches": others, "ephemerals": mine, "age": mine} {
		if got := first(order); got != want {
			t.Errorf("by %s: first %s, want %s", order, got, want)
		}
	}
	if s := ok[*Sessions](l)(l.Sessions(Page{Offset: 7})); len(s.Sessions) != 0 || s.Next != nil {
		t.Errorf("behind the end: %+v", s)
	}
	for _, p := range []Page{{Sort: "name"}, {Offset: -1}} {
		if _, err := l.Sessions(p); kindOf(err) != Wrong {
			t.Errorf("%+v: %v", p, err)
		}
		if _, err := l.Connections(p); kindOf(err) != Wrong {
			t.Errorf("connections %+v: %v", p, err)
		}
	}
	if c := ok[*Connections](l)(l.Connections(Page{Sort: "requests"})); c.Total != 2 || c.Connections[0].Session != others || c.Connections[0].Requests < 21 {
		t.Errorf("connections: %+v", c)
	}
}

// TestHerdWarning: a znode whose change notifies many connections gets a warning, which says what is wrong if it
// belongs to a lock; paths that the viewer may not read are not shown.
func TestHerdWarning(t *testing.T) {
	l := start(t)
	l.create("/lock", nil)
	bid := l.create("/lock/lock-", nil, zk.Ephemeral, zk.Sequential)
	l.create("/closed", nil, zk.ACLs{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "a:b"}}, {Perms: zk.PermCreate, ID: zk.ID{Scheme: "world", ID: "anyone"}}})
	l.create("/closed/open", nil) // only clients that may list the children of /closed may know this name
	for range HerdMin {
		zc := l.client()
		if _, _, _, err := zc.ChildrenW(t.Context(), "/lock"); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := zc.ExistsW(t.Context(), bid); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/closed", "/closed/open"} {
			if _, err := zc.AddWatch(t.Context(), path, zk.WatchPersistent); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := l.Watches(anyone)
	if w.Hidden != 2 || len(w.Hot) != 2 || w.Total != 6*int64(HerdMin) {
		t.Fatalf("%+v", w)
	}
	for _, h := range w.Hot {
		part := "every client watches all of them"
		if h.Path == bid {
			part = "all clients watch the same bid"
		}
		if h.Notifies != HerdMin || !strings.Contains(h.Warning, part) {
			t.Errorf("%s: %+v", h.Path, h)
		}
	}
	if w := l.Watches(super); w.Hidden != 0 || len(w.Hot) != 4 {
		t.Errorf("for an operator: %+v", w)
	}
	if err := l.zc.Delete(t.Context(), bid, -1); err != nil {
		t.Fatal(err)
	}
	f := l.Watches(anyone).FanOuts
	if len(f) != 2 || f[0].Path != "/lock" || f[1].Path != bid || f[0].Notified != HerdMin || time.Since(f[0].At) > time.Minute {
		t.Errorf("fan-outs: %+v", f)
	}
}

// TestRecipes: a lock is shown with its holder and those who wait, and what a limit or an access-control list hides
// is reported.
func TestRecipes(t *testing.T) {
	l := start(t)
	l.create("/app", nil)
	l.create("/app/lock", nil)
	first := l.create("/app/lock/_c_11111111-1111-1111-1111-111111111111-lock-", []byte("a"), zk.Ephemeral, zk.Sequential)
	second := l.create("/app/lock/_c_22222222-2222-2222-2222-222222222222-lock-", []byte("b"), zk.Ephemeral, zk.Sequential)
	r := ok[*Recipes](l)(l.Recipes(t.Context(), anyone, "/"))
	if len(r.Recipes) != 1 || r.Recipes[0].Path != "/app/lock" || len(r.Recipes[0].Clients) != 2 || !r.Complete {
		t.Fatalf("%+v", r)
	}
	c := r.Recipes[0].Clients
	if c[0].Bid != first || c[1].Bid != second || len(c[1].Behind) != 1 || c[1].Behind[0] != first || c[0].Address == "" || c[0].Session != l.zc.Session().ID.String() {
		t.Errorf("%+v", c)
	}
	l.create("/app/closed", nil, zk.ACLs{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "a:b"}}})
	if r := ok[*Recipes](l)(l.Recipes(t.Context(), anyone, "/app")); r.Complete || len(r.Recipes) != 1 {
		t.Errorf("with a hidden znode: %+v", r)
	}
	if _, err := l.Recipes(t.Context(), anyone, "/missing"); kindOf(err) != Missing {
		t.Error(err)
	}
}

// TestStandalone: a standalone server is an ensemble of one.
func TestStandalone(t *testing.T) {
	l := start(t)
	e := l.Ensemble(t.Context())
	if !e.Standalone || len(e.Servers) != 1 || e.Servers[0].Mode != "standalone" || e.Servers[0].Address != l.srv.Addr().String() || !e.Servers[0].Serves() || e.Counts.Sessions != 1 {
		t.Errorf("%+v", e)
	}
	if s := l.Server(); s.Member.Mode != "standalone" || s.Go == "" || !strings.HasSuffix(s.DataDir, "/data") {
		t.Errorf("%+v", s)
	}
}

// TestOwnReasons: a server shows of itself why it serves only in part, as it does of other servers.
func TestOwnReasons(t *testing.T) {
	disk := store.NewMem(1)
	l := startOn(t, disk, 20*time.Millisecond)
	disk.Hang()
	created := make(chan error, 1)
	go func() {
		_, _, err := l.zc.Create(context.Background(), "/waits", nil)
		created <- err
	}()
	for { // until the limit of the test binary
		if e := l.Ensemble(t.Context()); strings.HasPrefix(e.Servers[0].Reason, "the disk does not answer: ") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	disk.EndHang()
	if err := <-created; err != nil {
		t.Error(err)
	}
}

// TestCached: one computation serves all callers that ask while it runs, and later ones until its value is too old.
func TestCached(t *testing.T) {
	var c cached[int]
	n := 0
	begun, end := make(chan struct{}), make(chan struct{})
	results := make(chan int, 2)
	go func() {
		results <- c.get(time.Hour, func() int {
			close(begun)
			<-end
			n++
			return n
		})
	}()
	<-begun
	go func() { results <- c.get(time.Hour, func() int { n++; return n }) }()
	close(end)
	if a, b := <-results, <-results; a != 1 || b != 1 {
		t.Errorf("%d, %d", a, b)
	}
	if got := c.get(0, func() int { n++; return n }); got != 2 {
		t.Errorf("after its time: %d", got)
	}
}
