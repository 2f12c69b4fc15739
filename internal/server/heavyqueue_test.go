package server

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// TestHeavyRequestsWait shows that connections take turns with heavy requests, that the requests of
// one connection keep their order, that light requests of other connections do not wait, and that
// at most heavyMax bytes are with the replica.
func TestHeavyRequestsWait(t *testing.T) {
	var p heavyQueue
	a, b, c := &conn{}, &conn{}, &conn{}
	names := map[*conn]string{a: "a", b: "b", c: "c"}
	flying := map[*replica.Request]*conn{}
	var got []string
	take := func(c *conn, q *replica.Request) {
		p.taken(c, q)
		flying[q] = c
		got = append(got, fmt.Sprint(names[c], q.Xid))
		if p.inFlight > max(heavyMax, q.Size) {
			t.Errorf("%d bytes at once after %v", p.inFlight, got)
		}
	}
	push := func(c *conn, xid int32, size int64) {
		if q := (&replica.Request{Xid: xid, Size: size}); !p.hold(c, q) {
			take(c, q)
		}
	}
	expect := func(want string) {
		t.Helper()
		for p.ready() {
			take(p.next())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
		got = nil
	}
	answer := func() {
		for q, c := range flying {
			p.answered(c, q)
			delete(flying, q)
		}
	}
	push(a, 1, heavyMax)
	push(a, 2, heavyMax)
	push(a, 3, 10)
	push(b, 1, heavyMax/2)
	push(b, 2, heavyMax/2+1)
	push(c, 1, 10)
	push(c, 2, heavyMin-1)
	if p.hold(a, &replica.Request{Op: wire.OpPing}) {
		t.Error("a ping waits")
	}
	expect("a1 c1 c2")
	answer()
	expect("a2")
	answer()
	expect("b1 a3")
	push(c, 3, heavyMin) // small enough, but b is first
	expect("")
	answer()
	expect("b2 c3")
	push(a, 4, heavyMax)
	push(c, 4, heavyMax)
	p.forget(a)
	expect("")
	answer()
	expect("c4")
	p.forget(c)
	if p.inFlight != 0 || p.waiting.Len() != 0 || c.heavy != 0 {
		t.Errorf("left: %+v", p)
	}
	push(b, 3, 10*heavyMax) // above the limit: it goes without others
	push(b, 4, heavyMin)
	if p.inFlight != 10*heavyMax || p.waiting.Len() != 1 {
		t.Errorf("a request of 10 times the limit: %+v", p)
	}
}

// TestLightWriteOvertakesHeavyMultis: many clients have sent large multis that are not
// answered yet. A write of another client becomes a transaction before most of these do.
func TestLightWriteOvertakesHeavyMultis(t *testing.T) {
	const clients, each, ops = 8, 4, 10_000
	fs := &stallFS{FS: store.NewMem(1)}
	s := start(t, Options{FS: fs})
	m := &wire.MultiRequest{}
	for i := range ops {
		m.Ops = append(m.Ops, wire.Op{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/m", Data: []byte(strconv.Itoa(i)), Version: -1}})
	}
	light := s.connect()
	light.create("/m", "")
	var heavies []*client
	for range clients {
		heavies = append(heavies, s.connect())
	}
	before := s.Tree().LastZxid()
	release := fs.stall()
	for _, c := range heavies {
		for range each {
			c.send(wire.OpMulti, m)
		}
	}
	awaitInProcess(t, s, clients*each)
	light.send(wire.OpCreate, create("/light", ""))
	awaitInProcess(t, s, clients*each+1)
	release()
	passed := int64(light.reply(nil).Zxid - before)
	if most := int64(heavyMax/len(wire.Append(nil, m)) + 1); passed > most {
		t.Errorf("the write is transaction %d of %d, want one of the first %d", passed, clients*each+1, most)
	}
	for _, c := range heavies {
		for i := range each {
			if h := c.reply(nil); h.Err != wire.OK || h.Xid != int32(i+1) {
				t.Fatalf("multi %d is answered by %+v", i+1, h)
			}
		}
	}
	awaitInProcess(t, s, 0)
	if n := s.inProcessBytes.Load(); n != 0 {
		t.Errorf("%d bytes are still in process", n)
	}
}

// awaitInProcess waits until n requests are in process.
func awaitInProcess(t *testing.T, s *running, n int64) {
	t.Helper()
	for end := time.Now().Add(eventTimeout); s.inProcess.Load() != n; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d requests are in process, want %d", s.inProcess.Load(), n)
		}
	}
}

// holdingClient holds the tree's read lock while it gets an event.
type holdingClient struct {
	tree.Client
	holds, release chan struct{}
}

func (c *holdingClient) Identities() []wire.ID { return nil }
func (c *holdingClient) Reserve(wire.Zxid)     {}
func (c *holdingClient) Notify(tree.Event) {
	close(c.holds)
	<-c.release
}

// TestWriteDuringHeavyMultiOvertakesTheNext: a write that arrives while a heavy multi is
// applied goes to the log before the next heavy multi, which waits.
func TestWriteDuringHeavyMultiOvertakesTheNext(t *testing.T) {
	fs := &stallFS{FS: store.NewMem(1)}
	s := start(t, Options{FS: fs})
	light, first, second := s.connect(), s.connect(), s.connect()
	light.create("/m", "")
	m := &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpSetData,
		Request: &wire.SetDataRequest{Path: "/m", Data: make([]byte, heavyMax*3/4), Version: -1}}}}
	before := s.Tree().LastZxid()
	release := fs.stall()
	first.send(wire.OpMulti, m)
	awaitInProcess(t, s, 1)
	second.send(wire.OpMulti, m)
	awaitInProcess(t, s, 2)

	c := &holdingClient{holds: make(chan struct{}), release: make(chan struct{})}
	held := make(chan struct{})
	r := &wire.SetWatches2Request{}
	r.Data = []string{"/missing"}
	go func() {
		s.Tree().SetWatches2(c, r)
		close(held)
	}()
	<-c.holds
	release()
	awaitWriter(t, s.Tree())
	light.send(wire.OpCreate, create("/light", ""))
	for end := time.Now().Add(eventTimeout); !s.inbox.waits(func(e event) bool { q, ok := e.event.(*replica.Request); return ok && q.Op == wire.OpCreate }); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the write does not reach the loop")
		}
	}
	close(c.release)
	<-held
	if z := first.reply(nil).Zxid; z != before+1 {
		t.Errorf("the first multi is transaction %v, want %v", z, before+1)
	}
	if z := light.reply(nil).Zxid; z != before+2 {
		t.Errorf("the write is transaction %v, want %v", z, before+2)
	}
	if z := second.reply(nil).Zxid; z != before+3 {
		t.Errorf("the second multi is transaction %v, want %v", z, before+3)
	}
}

// awaitWriter waits until a writer waits for the lock of a tree that is held for reading.
// Further readers then wait too.
func awaitWriter(t *testing.T, of *tree.Tree) {
	t.Helper()
	for end := time.Now().Add(eventTimeout); time.Now().Before(end); {
		read := make(chan struct{})
		go func() { of.LastZxid(); close(read) }()
		select {
		case <-read:
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
	t.Fatal("no writer waits")
}
