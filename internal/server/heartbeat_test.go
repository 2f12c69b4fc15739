package server

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// TestHeartbeatsInALongBatch: a leader pings its followers while its loop is busy with
// one long batch, as long as the work yields. Messages that were sent earlier on a link
// stay before the ping.
func TestHeartbeatsInALongBatch(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	l := g.settled()
	var follower *testServer
	for _, m := range g.servers {
		if m != l {
			follower = m
		}
	}
	answered := follower.member.stats.pingAnswer
	eventually(t, "a follower answers", func() bool { return answered.Figures().Count > 0 })
	pinged := make(chan bool)
	l.inbox.ask(func(lp *loop) {
		before := answered.Figures().Count
		for end := time.Now().Add(eventTimeout); answered.Figures().Count < before+3 && time.Now().Before(end); {
			lp.sendHeartbeats() // Prepare and Apply call this during long work
			runtime.Gosched()
		}
		pinged <- answered.Figures().Count >= before+3
	})
	if !<-pinged {
		t.Error("a follower was not pinged while the leader's loop was busy")
	}
	if late := l.member.stats.pingLate.Figures(); late.Count == 0 {
		t.Error("the leader does not report how late its pings are")
	}
	l.stats.reset()
	if late := l.member.stats.pingLate.Figures(); late.Max > 1000 {
		t.Errorf("after a reset the latest ping is %v ms late", late.Max)
	}
	if again := g.settled(); again != l {
		t.Errorf("server %d leads", again.id)
	}
}

// TestHeartbeatsInALongTransaction: the tree yields while it ends a session with many
// ephemerals, on the leader and on a follower. During that the leader pings, and the
// follower answers pings.
func TestHeartbeatsInALongTransaction(t *testing.T) {
	const ephemerals, some = 10_000, 500
	g := newTestEnsemble(t, 3, 0, false)
	hooks := map[*testServer]*atomic.Pointer[func()]{}
	for _, m := range g.servers {
		hook := &atomic.Pointer[func()]{}
		hooks[m] = hook
		g.hooks.Yielded = func() {
			if f := hook.Load(); f != nil {
				(*f)()
			}
		}
		g.start(m)
	}
	l := g.settled()
	f := g.follower()
	answered := func() int64 { return f.member.stats.pingAnswer.Figures().Count }
	l.connect().create("/many", "")
	for _, busy := range []*testServer{l, f} {
		c := l.connectFor(time.Minute)
		for range ephemerals / some {
			ops := make([]wire.Op, some)
			for i := range ops {
				q := create("/many/n", "")
				q.Flags = wire.FlagEphemeralSequential
				ops[i] = wire.Op{Type: wire.OpCreate, Request: q}
			}
			c.must(wire.OpMulti, &wire.MultiRequest{Ops: ops}, &wire.MultiResponse{})
		}
		g.equal()
		yields, beats, inside := 0, int64(0), false
		loops := make(chan *loop, 1)
		busy.inbox.ask(func(lp *loop) { loops <- lp })
		lp := <-loops
		hook := func() { // on the loop
			if inside {
				return
			}
			if yields++; beats >= 3 {
				return
			}
			inside = true
			before := answered()
			for end := time.Now().Add(eventTimeout); answered() == before && time.Now().Before(end); {
				lp.sendHeartbeats()
				runtime.Gosched()
			}
			beats += answered() - before
			inside = false
		}
		hooks[busy].Store(&hook)
		c.must(wire.OpCloseSession, nil, nil)
		g.equal()
		hooks[busy].Store(nil)
		counts := make(chan [2]int64, 1)
		busy.inbox.ask(func(*loop) { counts <- [2]int64{int64(yields), beats} })
		if n := <-counts; n[0] < ephemerals/2048 || n[1] < 3 {
			t.Errorf("server %d, which leads: %v, yields %d times; the follower answers %d pings meanwhile", busy.id, busy == l, n[0], n[1])
		}
		if again := g.settled(); again != l {
			t.Fatalf("server %d leads", again.id)
		}
	}
}

// TestPingsBeforeServiceAreNotAwaited: a learner answers no pings before it serves, and
// does not report later that its answer was late.
func TestPingsBeforeServiceAreNotAwaited(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	m := g.settled()
	ping := []*peerwire.QuorumPacket{{Type: peerwire.PacketPing}}
	for _, c := range []struct {
		st   *replica.Status
		want bool
	}{
		{nil, false},
		{&replica.Status{Role: peerwire.Following}, false},
		{&replica.Status{Role: peerwire.Leading, Serving: true}, false},
		{&replica.Status{Role: peerwire.Following, Serving: true}, true},
	} {
		alike := &member{srv: m.Server, stats: m.member.stats}
		alike.status.Store(c.st)
		alike.arrived(ping)
		if got := alike.pinged.Load() != 0; got != c.want {
			t.Errorf("%+v: awaited %v", c.st, got)
		}
	}
}
