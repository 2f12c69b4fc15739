package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/store"
	"bellwether/wire"
)

// listed makes a znode with n children.
func (c *client) listed(path string, n int) {
	c.t.Helper()
	c.create(path, "")
	var out []byte
	for i := range n {
		out = append(out, request(int32(i), wire.OpCreate, create(fmt.Sprintf("%s/child-%06d", path, i), ""))...)
	}
	go c.nc.Write(out)
	for range n {
		if h := c.reply(nil); h.Err != wire.OK {
			c.t.Fatalf("%+v", h)
		}
	}
}

// pipeline returns n copies of one request.
func pipeline(n int, op wire.OpCode, r wire.Record) (out []byte) {
	for xid := range n {
		out = append(out, request(int32(xid+1), op, r)...)
	}
	return out
}

// answeredReads returns how many reads the server has answered.
func (r *running) answeredReads() int64 { return r.stats.readLatency.Figures().Count }

// TestReadsOfAClosedConnectionAreDropped: reads of a connection that its client has
// closed are not carried out.
func TestReadsOfAClosedConnectionAreDropped(t *testing.T) {
	s := start(t, Options{})
	other := s.connect()
	big := bytes.Repeat([]byte{1}, 1<<20-1024)
	other.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: big, ACL: wire.OpenACL()}, nil)
	before := s.answeredReads()
	const conns, requests, taken = 3, 1500, 100
	for range conns {
		c := s.connect()
		c.write(pipeline(requests, wire.OpGetData, &wire.PathWatchRequest{Path: "/big"}))
		for range taken { // so that the server has read many requests
			c.reply(nil)
		}
		c.nc.Close()
	}
	eventually(t, "only the other connection is left", func() bool { return s.Status().Connections == 1 })
	// The server answers reads until it notices that the connection has ended.
	if n := s.answeredReads() - before; n > conns*requests/4 {
		t.Errorf("%d of %d reads were carried out", n, conns*requests)
	}
}

// TestLargeReadsWaitForTheirTurn: while all places for large reads are taken, small
// reads, pings and writes are answered, and a long listing waits for its turn.
func TestLargeReadsWaitForTheirTurn(t *testing.T) {
	s := start(t, Options{})
	c, reader := s.connect(), s.connect()
	c.listed("/many", 2000)
	for range cap(s.turns.places) {
		s.turns.enter()
	}
	reader.send(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/many"})
	for range 100 {
		c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/many", Version: -1}, nil)
		c.must(wire.OpPing, nil, nil)
		if c.data("/many") != "" {
			t.Fatal("unreachable")
		}
	}
	reader.nc.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := reader.nc.Read(make([]byte, 1)); !timedOut(err) {
		t.Fatalf("the listing was answered out of turn: %d %v", n, err)
	}
	reader.nc.SetReadDeadline(time.Time{})
	for range cap(s.turns.places) {
		s.turns.leave()
	}
	var r wire.ChildrenResponse
	if h := reader.reply(&r); h.Err != wire.OK || len(r.Children) != 2000 {
		t.Errorf("%+v with %d children", h, len(r.Children))
	}
}

// TestCountsAndEphemeralsWaitForTheirTurn: counting very many znodes and listing many
// ephemerals wait for a turn too. A server that stops does not answer with a partial
// count.
func TestCountsAndEphemeralsWaitForTheirTurn(t *testing.T) {
	const many = 2000
	s := start(t, Options{})
	count, list := s.connect(), s.connect()
	count.listed("/many", many)
	var out []byte
	for i := range many {
		r := create(fmt.Sprintf("/mine-%d", i), "")
		r.Flags = 1
		out = append(out, request(int32(i), wire.OpCreate, r)...)
	}
	go list.nc.Write(out)
	for range many {
		list.reply(nil)
	}
	for range cap(s.turns.places) {
		s.turns.enter()
	}
	list.send(wire.OpGetEphemerals, &wire.NullPathRequest{Path: wire.NullString{String: "/"}})
	waiting := func(n int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d wait for their turns", n), func() bool { return s.turns.waiting.Load() == n })
	}
	waiting(1)
	s.turns.leave()
	var names wire.EphemeralsResponse
	if h := list.reply(&names); h.Err != wire.OK || len(names.Paths) != many {
		t.Errorf("%+v with %d paths", h, len(names.Paths))
	}
	s.turns.enter()
	read := &wire.PathRequest{Path: "/many"}
	count.send(wire.OpGetAllChildrenNumber, read)
	waiting(1)
	s.turns.leave()
	var all wire.CountResponse
	if h := count.reply(&all); h.Err != wire.OK || all.Count != many {
		t.Errorf("%+v, %d znodes", h, all.Count)
	}
	s.turns.enter()
	count.send(wire.OpGetAllChildrenNumber, read)
	waiting(1)
	stopped := make(chan error, 1)
	go func() { stopped <- s.end() }()
	eventually(t, "the server stops", s.stopping.Load)
	for range cap(s.turns.places) {
		s.turns.leave()
	}
	if n, err := io.Copy(io.Discard, count.nc); n > 0 || err != nil {
		t.Errorf("%d bytes of a reply, %v", n, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestLongPipelinesTakeTurns: a long pipeline of small reads takes turns too, and is
// answered in order.
func TestLongPipelinesTakeTurns(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	c.create("/a", "data")
	for range cap(s.turns.places) {
		s.turns.enter()
	}
	const n = 1000
	before := s.Connections()[0].Sent
	c.write(pipeline(n, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}))
	sent := func() int64 {
		reader := s.conns.all()[0]
		reader.out.mu.Lock()
		defer reader.out.mu.Unlock()
		return reader.out.traffic.sent - before
	}
	eventually(t, "the reads before the first turn are answered", func() bool { return sent() >= turnFree })
	if got := sent(); got > 2*turnFree { // the start of the pipeline may have arrived separately
		t.Errorf("%d reads are answered without a turn, want at most %d", got, turnFree)
	}
	for range cap(s.turns.places) {
		s.turns.leave()
	}
	for xid := int32(1); xid <= n; xid++ {
		if h := c.reply(nil); h.Xid != xid || h.Err != wire.OK {
			t.Fatalf("reply %d: %+v", xid, h)
		}
	}
}

// TestListingsOfManyChildren: both kinds of listing of many children agree with the tree,
// in a direct read and after a write.
func TestListingsOfManyChildren(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	c.listed("/many", 3000)
	var plain wire.ChildrenResponse
	var full wire.ChildrenStatResponse
	check := func(when string, want int) {
		t.Helper()
		seen := map[string]bool{}
		for _, name := range full.Children {
			seen[name] = true
		}
		if len(plain.Children) != want || len(seen) != want || int(full.Stat.NumChildren) != want || full.Stat.Cversion != int32(3000) {
			t.Errorf("%s: %d and %d children, stat %+v", when, len(plain.Children), len(seen), full.Stat)
		}
	}
	at := &wire.PathWatchRequest{Path: "/many"}
	c.must(wire.OpGetChildren, at, &plain)
	c.must(wire.OpGetChildren2, at, &full)
	check("alone", 3000)
	out := request(1, wire.OpSetData, &wire.SetDataRequest{Path: "/many", Version: -1})
	out = append(out, request(2, wire.OpGetChildren, at)...)
	c.write(append(out, request(3, wire.OpGetChildren2, at)...))
	c.reply(nil)
	c.reply(&plain)
	c.reply(&full)
	check("behind a write", 3000)
}

// TestStopDoesNotWaitForReaders: a server that stops waits neither for pipelined reads
// nor for clients that do not read, and ends without an error.
func TestStopDoesNotWaitForReaders(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	big := bytes.Repeat([]byte{1}, 1<<20-1024)
	c.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: big, ACL: wire.OpenACL()}, nil)
	for range 20 {
		slow := s.connect()
		slow.write(pipeline(200, wire.OpGetData, &wire.PathWatchRequest{Path: "/big"}))
	}
	eventually(t, "all clients are owed something", func() bool {
		n := 0
		for _, c := range s.conns.all() {
			c.out.mu.Lock()
			if c.out.writing {
				n++
			}
			c.out.mu.Unlock()
		}
		return n == 20
	})
	began := time.Now()
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// TestStopDropsMultiReadsThatWait: a multiRead that waits for its turn when the server
// stops is not carried out.
func TestStopDropsMultiReadsThatWait(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	c.listed("/many", 5000)
	for range cap(s.turns.places) {
		s.turns.enter()
	}
	c.write(request(1, wire.OpMultiRead, lists("/many", 5)))
	eventually(t, "the multiRead waits for its turn", func() bool {
		var stacks strings.Builder
		pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		return strings.Contains(stacks.String(), "buildInTurn")
	})
	stopped := make(chan error, 1)
	go func() { stopped <- s.end() }()
	eventually(t, "the server stops", s.stopping.Load)
	for range cap(s.turns.places) {
		s.turns.leave()
	}
	if n, err := io.Copy(io.Discard, c.nc); n > 0 || err != nil {
		t.Errorf("%d bytes of a reply, %v", n, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestMemoryOfUnreadReplies: the memory of replies that clients do not read stays within
// its limit, whatever they request. Clients that read are served meanwhile. At the end no
// memory is counted.
func TestMemoryOfUnreadReplies(t *testing.T) {
	o := Options{Config: testConfig(), FS: store.NewMem(1)}
	o.Config.Limits.ReplyMemoryMB = 8
	s := start(t, o)
	writer := s.connect()
	writer.create("/big", "")
	value := bytes.Repeat([]byte{1}, 500<<10)
	most := int64(0)
	look := func() {
		n := s.budget.bytes.Load()
		if most = max(most, n); n > s.budget.total()+int64(len(value))*2 {
			t.Fatalf("%d bytes wait, %d may", n, s.budget.total())
		}
	}
	for i := range 40 {
		// Each client waits for a value of its own, which the tree no longer holds.
		value[0] = byte(i)
		writer.must(wire.OpSetData, &wire.SetDataRequest{Path: "/big", Version: -1, Data: value}, nil)
		slow := s.connect()
		slow.nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		slow.write(pipeline(20, wire.OpGetData, &wire.PathWatchRequest{Path: "/big"}))
		look()
		if got := writer.data("/big"); got[0] != byte(i) || len(got) != len(value) {
			t.Fatalf("read %d bytes", len(got))
		}
		look()
	}
	if most < s.budget.total()/4 {
		t.Errorf("only %d bytes were counted", most)
	}
	for _, c := range s.conns.all() {
		if c.Session() != writer.session.Session {
			c.net.Close()
		}
	}
	eventually(t, "nothing is counted", func() bool { return s.budget.bytes.Load() == 0 })
	if n := len(s.budget.data); n != 0 {
		t.Errorf("%d values are still held", n)
	}
}

// TestMemoryOfUnreadMultis: the answer to a multi that its client has not read counts with
// the memory of all its results.
func TestMemoryOfUnreadMultis(t *testing.T) {
	o := Options{Config: testConfig(), OutputMax: 4 << 20}
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	slow := s.connect()
	multi := &wire.MultiRequest{}
	for range 1000 {
		multi.Ops = append(multi.Ops, wire.Op{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Version: -1}})
	}
	out := pipeline(10, wire.OpMulti, multi)
	for i := 0; s.conns.len() == 2; i++ {
		if i > 1000 {
			t.Fatal("the connection is never closed")
		}
		slow.nc.SetWriteDeadline(time.Now().Add(eventTimeout))
		if _, err := slow.nc.Write(out); err != nil {
			break
		}
		for _, c := range s.conns.all() {
			c.out.mu.Lock()
			waits := c.out.pending()
			c.out.mu.Unlock()
			if waits > 4*(4<<20)/(1000*elementCost) {
				t.Fatalf("%d answers of multis wait", waits)
			}
		}
	}
	eventually(t, "the connection is gone", func() bool { return s.conns.len() == 1 })
	if c.data("/a") != "" {
		t.Error("unreachable")
	}
}

// TestLongRepliesEncodeLikeShortOnes: a long reply has the same encoding as a short one.
func TestLongRepliesEncodeLikeShortOnes(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	data := bytes.Repeat([]byte("x"), longBytes+1)
	c.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: data, ACL: wire.OpenACL()}, nil)
	var r wire.DataResponse
	c.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/big"}, &r)
	if !bytes.Equal(r.Data, data) || int(r.Stat.DataLength) != len(data) {
		t.Errorf("%d bytes, stat %+v", len(r.Data), r.Stat)
	}
}

// TestAbortDoesNotWaitForATurn: abort returns at once even if the connection waits for its
// turn to write. The caller of abort holds the lock of the output, which the loop may need
// for an event, so it must not wait.
func TestAbortDoesNotWaitForATurn(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	big := bytes.Repeat([]byte{1}, 1<<20-1024)
	c.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: big, ACL: wire.OpenACL()}, nil)
	for range cap(s.turns.places) {
		s.turns.enter()
	}
	c.send(wire.OpGetData, &wire.PathWatchRequest{Path: "/big"})
	reader := s.conns.all()[0]
	eventually(t, "the reply is being written", func() bool {
		reader.out.mu.Lock()
		defer reader.out.mu.Unlock()
		return reader.out.takenLong > 0
	})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		reader.out.mu.Lock()
		defer reader.out.mu.Unlock()
		reader.abort()
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("abort waits for a turn")
	}
	for range cap(s.turns.places) {
		s.turns.leave()
	}
	<-closed
}

// lists returns a multiRead that lists a znode n times.
func lists(path string, n int) *wire.MultiRequest {
	q := &wire.MultiRequest{}
	for range n {
		q.Ops = append(q.Ops, wire.Op{Type: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: path}})
	}
	return q
}

// TestMultiReadsAreBounded: a multiRead whose answer would be too long is refused before
// it is built, in a direct read and after a write, and the connection continues. A
// shorter one is answered.
func TestMultiReadsAreBounded(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.ReplyMemoryMB = 16
	s := start(t, o)
	c := s.connect()
	const children = 3000
	c.listed("/many", children)
	c.listed("/few", 500)
	var r wire.MultiResponse
	for _, path := range []string{"/many", "/few"} {
		if h := c.call(wire.OpMultiRead, lists(path, 4), &r); h.Err != wire.OK || len(r.Results) != 4 {
			t.Fatalf("%+v with %d results", h, len(r.Results))
		}
		var want wire.ChildrenResponse
		c.must(wire.OpGetChildren, &wire.PathWatchRequest{Path: path}, &want)
		slices.Sort(want.Children)
		for _, result := range r.Results {
			got := result.Response.(*wire.ChildrenResponse).Children
			if slices.Sort(got); !slices.Equal(got, want.Children) {
				t.Errorf("%d names, want %d", len(got), len(want.Children))
			}
		}
		if h := c.call(wire.OpMultiRead, lists(path, 2000), nil); h.Err != wire.ErrSystem {
			t.Errorf("2000 listings of %s: %+v", path, h)
		}
	}
	out := request(1, wire.OpSetData, &wire.SetDataRequest{Path: "/many", Version: -1})
	out = append(out, request(2, wire.OpMultiRead, lists("/many", 2000))...)
	c.write(append(out, request(3, wire.OpMultiRead, lists("/many", 4))...))
	for xid, want := range []wire.Code{wire.OK, wire.ErrSystem, wire.OK} {
		if h := c.reply(nil); h.Err != want || h.Xid != int32(xid+1) {
			t.Errorf("request %d behind a write: %+v", xid+1, h)
		}
	}
}

// TestMemoryOfUnreadMultiReads: answers to multiReads that clients do not read stay
// within the memory limit, whether the connections carry them out or, after a write, the
// loop.
func TestMemoryOfUnreadMultiReads(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("behind a write %v", late), func(t *testing.T) {
			o := Options{Config: testConfig(), FS: store.NewMem(1)}
			o.Config.Limits.ReplyMemoryMB = 16
			s := start(t, o)
			c := s.connect()
			c.listed("/many", 2000)
			q := lists("/many", 20) // 0.64 MB
			out := pipeline(100, wire.OpMultiRead, q)
			if late {
				out = append(request(0, wire.OpSetData, &wire.SetDataRequest{Path: "/many", Version: -1}), out...)
			}
			most := s.budget.total() + 2*int64(s.budget.multiReadMax())
			for range 30 {
				slow := s.connect()
				slow.nc.(*net.TCPConn).SetReadBuffer(4 << 10)
				slow.write(out)
				if n := s.budget.bytes.Load(); n > most {
					t.Fatalf("%d bytes wait, at most %d may", n, most)
				}
			}
			for range 200 {
				c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/many", Version: -1}, nil)
				if n := s.budget.bytes.Load(); n > most {
					t.Fatalf("%d bytes wait, at most %d may", n, most)
				}
			}
		})
	}
}
