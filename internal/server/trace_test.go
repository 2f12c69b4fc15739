package server

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/wire"
)

// TestTimeline: a transaction passed the stage at the time of the first mark whose zxid is not
// lower. Old marks are forgotten.
func TestTimeline(t *testing.T) {
	var l timeline
	z := func(n int) wire.Zxid { return wire.MakeZxid(1, uint32(n)) }
	if got := l.of(z(1)); got != 0 {
		t.Errorf("without marks: %d", got)
	}
	for _, m := range []mark{{z(3), 10}, {z(5), 10}, {z(9), 20}} {
		l.add(m.zxid, m.at)
	}
	for n, want := range map[int]int64{1: 10, 5: 10, 6: 20, 9: 20, 10: 0} {
		if got := l.of(z(n)); got != want {
			t.Errorf("transaction %d: %d, want %d", n, got, want)
		}
	}
	for n := range 3 * marksKept {
		l.add(z(10+n), int64(30+n))
	}
	if got := l.of(z(9)); got != 0 {
		t.Errorf("a forgotten transaction: %d", got)
	}
	if got := l.of(z(10 + 3*marksKept - 1)); got != int64(30+3*marksKept-1) || len(l.marks) > 2*marksKept {
		t.Errorf("the last transaction: %d, %d marks", got, len(l.marks))
	}
	l.add(z(4), 5000) // the history was truncated
	if got := l.of(z(4)); got != 5000 || len(l.marks) != 1 {
		t.Errorf("after a truncation: %d, %v", got, l.marks)
	}
}

// stagesOf checks that the stages of a trace follow each other and do not exceed its time, and
// returns their names. The fsync overlaps with the quorum.
func stagesOf(t *testing.T, x *Trace) []string {
	t.Helper()
	var names []string
	end := time.Duration(0)
	for _, s := range x.Stages {
		names = append(names, s.Name)
		if s.From < 0 || s.To < s.From || s.To > x.Took || s.Name != StageFsync && s.From != end {
			t.Errorf("%v takes %v: %s is from %v to %v", x, x.Took, s.Name, s.From, s.To)
		}
		if s.Name != StageFsync {
			end = s.To
		}
	}
	return names
}

// awaitTrace waits for a trace that fits.
func (r *running) awaitTrace(what string, fits func(*Trace) bool) *Trace {
	r.t.Helper()
	var found *Trace
	eventually(r.t, "a trace of "+what, func() bool {
		for _, x := range r.Traces(0, math.MaxInt) {
			if fits(&x) {
				found = &x
				return true
			}
		}
		return false
	})
	return found
}

// TestTraceOfAStandaloneServer shows the stages of a write, of a read that the reader of the
// connection carries out, and of a failed write, by session and cxid. Tracing is off at first, and off again
// when that is asked for.
func TestTraceOfAStandaloneServer(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	c.create("/before", "")
	if s.Tracing() || len(s.Traces(0, 10)) != 0 {
		t.Error("requests are traced although nobody has asked for that")
	}
	s.SetTracing(true)
	c.create("/a", "x")
	write := c.xid
	c.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}, &wire.DataResponse{})
	read := c.xid
	if h := c.call(wire.OpCreate, create("/a", ""), nil); h.Err != wire.ErrNodeExists {
		t.Fatalf("a second create: %v", h.Err)
	}
	failed := c.xid
	for xid, want := range map[int32]struct {
		op, path, stages string
		err              wire.Code
	}{
		write:  {"create", "/a", "decode queue propose fsync quorum apply reply", wire.OK},
		read:   {"getData", "/a", "decode apply reply", wire.OK},
		failed: {"create", "/a", "decode queue apply reply", wire.ErrNodeExists},
	} {
		x := s.awaitTrace(want.op, func(x *Trace) bool { return x.Cxid == xid && x.Session == c.session.Session })
		got := strings.Join(stagesOf(t, x), " ")
		if xid == failed { // a failed write takes a transaction too, or none
			got = strings.Replace(got, "propose fsync quorum ", "", 1)
		}
		if x.Operation != want.op || x.Path != want.path || got != want.stages || x.Err != want.err || x.Took <= 0 || x.Server != 1 {
			t.Errorf("request %d: %+v with stages %s", xid, x, got)
		}
	}
	s.SetTracing(false)
	n := len(s.Traces(0, 100))
	c.create("/c", "")
	if len(s.Traces(0, 100)) != n {
		t.Error("a request is traced although tracing is off")
	}
}

// TestTracesAreBounded shows that only the last requests are kept, and how a reader continues
// where it stopped.
func TestTracesAreBounded(t *testing.T) {
	o := testConfig()
	o.Tracing.Enabled, o.Tracing.Kept = true, 10
	s := start(t, Options{Config: o})
	c := s.connect()
	for i := range 30 {
		c.create(fmt.Sprintf("/n%d", i), "")
	}
	s.awaitTrace("the last request", func(x *Trace) bool { return x.Path == "/n29" })
	all := s.Traces(0, 100)
	if len(all) != 10 || all[9].Path != "/n29" || all[0].Number != all[9].Number-9 {
		t.Fatalf("%d traces, from %d", len(all), all[0].Number)
	}
	if rest := s.Traces(all[6].Number, 2); len(rest) != 2 || rest[0].Number != all[7].Number {
		t.Errorf("after %d: %v", all[6].Number, rest)
	}
	if again := s.Traces(math.MaxUint64, 100); len(again) != 10 {
		t.Errorf("after a number of an earlier process: %d traces", len(again))
	}
}

// TestTracesOfAnEnsemble shows that the follower of a client and the leader both describe a
// write, with the same session and cxid.
func TestTracesOfAnEnsemble(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) { c.Tracing.Enabled = true }
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	f := g.follower()
	eventually(t, "all learners are synchronised", func() bool { return l.figure("synced_followers") == 2 })
	c := f.connect()
	c.create("/a", "x")
	is := func(x *Trace) bool { return x.Session == c.session.Session && x.Cxid == c.xid }
	x := f.awaitTrace("the follower", is)
	if got := stagesOf(t, x); !slices.Contains(got, StagePropose) || !slices.Contains(got, StageQuorum) || x.Forwarded {
		t.Errorf("the follower: %+v", x)
	}
	y := l.awaitTrace("the leader", is)
	if got := stagesOf(t, y); !y.Forwarded || y.Zxid != x.Zxid || len(y.Acks) < 2 || !slices.Contains(got, StageQuorum) {
		t.Errorf("the leader: %+v, the follower %+v", y, x)
	}
}

// lines returns the lines that contain all words.
func (b *logBook) lines(words ...string) (found []string) {
	for line := range strings.Lines(b.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

// TestSlowOperationNamesThePeer: with one follower dead, each write needs the other follower. The
// leader's log names the server whose disk is slow: that follower or the leader itself. If the client
// is connected to the follower, the follower's log names its leader, and the leader logs what it has
// seen of the request.
func TestSlowOperationNamesThePeer(t *testing.T) {
	const threshold, slow = 150 * time.Millisecond, 400 * time.Millisecond
	g, book := newTestEnsemble(t, 3, 0, false), &logBook{}
	g.book = book
	g.change = func(c *config.Config) { c.Tracing.SlowAfter = threshold }
	paces := map[*testServer]*atomic.Int64{}
	for _, m := range g.servers {
		paces[m] = new(atomic.Int64)
		m.fs = &slowFS{m.fs, paces[m]}
		g.start(m)
	}
	l := g.settled()
	f := g.follower()
	for _, m := range g.servers {
		if m != l && m != f {
			g.kill(m)
		}
	}
	own, other := l.connect(), f.connect()
	logged := func(what string, words ...string) {
		t.Helper()
		eventually(t, what, func() bool { return len(book.lines(words...)) > 0 })
	}
	leads, follows := fmt.Sprintf("server=%d ", l.id), fmt.Sprintf("server=%d ", f.id)
	peer := func(m *testServer) string { return fmt.Sprintf("peer=%d", m.id) }

	paces[f].Store(int64(slow))
	own.create("/slow-peer", "")
	logged("the leader names the follower", leads, "slow operation: ", "path=/slow-peer ", "slowest=quorum", peer(f), "acks: ", fmt.Sprintf("cxid=%d ", own.xid))
	paces[f].Store(0)
	own.create("/settled", "") // the follower's disk has done what it began while it was slow
	paces[l].Store(int64(slow))
	own.create("/slow-disk", "")
	logged("the leader names its own disk", leads, "path=/slow-disk ", "slowest=fsync", peer(l))
	other.create("/from-follower", "")
	logged("the follower names its leader", follows, "path=/from-follower ", peer(l))
	logged("the leader has seen the request", leads, "forwarded=true", fmt.Sprintf("session=0x%x cxid=%d ", int64(other.session.Session), other.xid))
	if n := l.figure("slow_operations"); n < 3 {
		t.Errorf("slow_operations of the leader is %v", n)
	}
}

// TestSlowOperationsAreBounded shows that the log names only some of many slow operations,
// and that the threshold 0 disables this.
func TestSlowOperationsAreBounded(t *testing.T) {
	book, o := &logBook{}, testConfig()
	o.Tracing.SlowAfter = time.Nanosecond
	s := start(t, Options{Config: o, Log: slog.New(slog.NewTextHandler(book, nil))})
	c := s.connect()
	for i := range 5 * slowMax {
		c.create(fmt.Sprintf("/n%d", i), "")
		c.data(fmt.Sprintf("/n%d", i))
	}
	eventually(t, "all are counted", func() bool { return s.figure("slow_operations") >= 10*slowMax })
	if n := len(book.lines("slow operation: ")); n == 0 || n > 2*slowMax {
		t.Errorf("%d lines for %v slow operations", n, s.figure("slow_operations"))
	}
	off := testConfig()
	off.Tracing.SlowAfter = 0
	s.Reload(off)
	before := s.figure("slow_operations")
	c.create("/after", "")
	if s.figure("slow_operations") != before {
		t.Error("a request counts as slow although the threshold is 0")
	}
}
