package zab

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// waits reports a session for which a client waits.
func waits(id wire.SessionID, token uint64) Touched {
	return Touched{Sessions: []peerwire.TouchedSession{{Session: id, TimeoutMS: 4000}}, Token: token, Waits: true}
}

// heard reports whether a leader has got the touch of a session from a server.
func (n *node) heard(id wire.SessionID, from ensemble.ServerID) bool {
	return slices.ContainsFunc(n.inputs, func(in Input) bool {
		return in.Server == from && slices.ContainsFunc(in.Touched, func(s peerwire.TouchedSession) bool { return s.Session == id })
	})
}

// onTheirWay returns the TOUCHes that are on their way to leaders.
func (w *world) onTheirWay() (all []*peerwire.QuorumPacket) {
	for _, c := range w.links {
		for _, p := range c.up {
			if p.p.Type == peerwire.PacketTouch {
				all = append(all, p.p)
			}
		}
	}
	return all
}

// separate loses everything between a learner and its leader from now on. Neither of them hears of that.
func (w *world) separate(n *node) {
	w.links = slices.DeleteFunc(w.links, func(c *testConn) bool { return c.lrn == n })
}

// TestTouchIsConfirmedAtOnce: a leader that has its lease confirms a session for which a client of a follower or of
// an observer waits without any ping. The leader has got the touch then.
func TestTouchIsConfirmedAtOnce(t *testing.T) {
	w := servingWorld(false)
	w.pass(1)
	for _, n := range []*node{w.nodes[0], w.nodes[3]} {
		l := w.nodes[2]
		rounds := l.leader.pings.last.n
		w.step(n, waits(7, 5))
		if n.confirmed != 0 {
			t.Fatal("confirmed before the leader was asked")
		}
		w.settle()
		if n.confirmed != 5 || !l.heard(7, n.id) || l.leader.pings.last.n != rounds {
			t.Errorf("server %d: confirmed %d, touched %v, %d rounds of pings", n.id, n.confirmed, l.heard(7, n.id), l.leader.pings.last.n-rounds)
		}
	}
}

// TestTouchPassesAMaster: the session of an observer is confirmed through its master without a ping, when the leader has got it.
func TestTouchPassesAMaster(t *testing.T) {
	w, _, leader, o := behindMaster(t, nil)
	w.pass(200)
	w.settle()
	rounds := leader.leader.pings.last.n
	w.step(o, waits(7, 5))
	w.settle()
	if o.confirmed != 5 || !leader.heard(7, 1) || leader.leader.pings.last.n != rounds || w.wrong != "" {
		t.Errorf("confirmed %d, touched %v, %d rounds of pings; %s", o.confirmed, leader.heard(7, 1), leader.leader.pings.last.n-rounds, w.wrong)
	}
}

// TestTouchesShareOneQuestion: a learner has one TOUCH unanswered at a time, and askEveryMS pass between two of
// them. The touches that come meanwhile are in the next one.
func TestTouchesShareOneQuestion(t *testing.T) {
	w := servingWorld(false)
	n := w.nodes[0]
	w.pass(1)
	before := n.learner.touches.reports
	for i := range uint64(50) {
		w.step(n, waits(wire.SessionID(i+1), i+1))
	}
	if asked := w.onTheirWay(); len(asked) != 1 {
		t.Fatalf("%d TOUCHes for 50 touches", len(asked))
	}
	w.now += 2 * askEveryMS
	w.step(n, Tick{})
	if asked := w.onTheirWay(); len(asked) != 1 {
		t.Fatalf("%d TOUCHes before the first one is answered", len(asked))
	}
	w.settle()
	if got := n.learner.touches.reports - before; n.confirmed != 50 || got != 2 {
		t.Fatalf("confirmed %d with %d TOUCHes", n.confirmed, got)
	}
	w.step(n, waits(51, 51))
	if n.learner.nextAsk() != w.now+askEveryMS || n.learner.Ready().Wake != w.now+askEveryMS {
		t.Errorf("asks again at %d, now %d", n.learner.nextAsk(), w.now)
	}
	w.now += askEveryMS - 1
	w.step(n, Tick{})
	if asked := w.onTheirWay(); len(asked) != 0 {
		t.Errorf("asks again after %d ms", askEveryMS-1)
	}
	w.now++
	w.step(n, Tick{})
	asked := w.onTheirWay()
	var touched peerwire.TouchedSessions
	if len(asked) != 1 || wire.Decode(asked[0].Data, &touched) != nil || len(touched.Sessions) != 1 {
		t.Fatalf("%d TOUCHes, the first one with %d sessions", len(asked), len(touched.Sessions))
	}
	w.settle()
	if n.confirmed != 51 || n.learner.nextAsk() != Never {
		t.Errorf("confirmed %d, asks again at %d", n.confirmed, n.learner.nextAsk())
	}
}

// TestNobodyWaitsForTouches: a learner whose clients wait for nothing sends no TOUCH.
func TestNobodyWaitsForTouches(t *testing.T) {
	w := servingWorld(false)
	n := w.nodes[0]
	w.pass(1)
	q := waits(7, 5)
	q.Waits = false
	w.step(n, q)
	if asked := w.onTheirWay(); len(asked) != 0 || n.learner.nextAsk() != Never {
		t.Errorf("%d TOUCHes, asks at %d", len(asked), n.learner.nextAsk())
	}
}

// TestTouchInAnAnswerIsAskedFor: the answer to a ping carries the session for which a client waits before the TOUCH can. The
// TOUCH then asks for the confirmation alone.
func TestTouchInAnAnswerIsAskedFor(t *testing.T) {
	w := servingWorld(false)
	n := w.nodes[0]
	w.pass(1)
	n.learner.Step(w.now, waits(7, 5))
	if sent := n.learner.Heartbeat(w.now, Arrived{n.learner.opt.Link, 1}); len(pings(sent)) != 1 {
		t.Fatalf("sent %v", sent)
	} else {
		w.send(n, sent[0])
	}
	w.nodes[2].leader.links[n.learner.opt.Link].unanswered.Push(pingRound{w.nodes[2].leader.pings.last.n, w.now}) // the ping that was answered
	w.ready(n)
	asked := w.onTheirWay()
	if len(asked) != 1 || len(asked[0].Data) != 0 {
		t.Fatalf("TOUCHes %v, want one without sessions", asked)
	}
	n.learner.early = 0
	w.settle()
	if n.confirmed != 5 || !w.nodes[2].heard(7, n.id) {
		t.Errorf("confirmed %d", n.confirmed)
	}
}

// TestOnlyLeadersThatKnowTouchesAreAsked: an older native leader and a compatible one get no TOUCH, and confirm sessions as
// before.
func TestOnlyLeadersThatKnowTouchesAreAsked(t *testing.T) {
	for _, plain := range []bool{false, true} {
		w := servingWorld(plain)
		n := w.nodes[0]
		if !plain {
			n.learner.extension = peerwire.ExtensionTouch - 1
		}
		w.pass(1)
		w.step(n, waits(7, 5))
		if asked := w.onTheirWay(); len(asked) != 0 {
			t.Errorf("plain %v: a TOUCH was sent", plain)
		}
		for range 3 {
			w.pass(500)
			w.settle()
		}
		if n.confirmed != 5 {
			t.Errorf("plain %v: confirmed %d", plain, n.confirmed)
		}
	}
}

// TestTouchWaitsForTheLease: a leader without its lease answers no TOUCH. It sends one round of pings at once, and
// no other one before a quorum has answered. The answer is enough for the confirmation.
func TestTouchWaitsForTheLease(t *testing.T) {
	w := servingWorld(false)
	n, l := w.nodes[0], w.nodes[2]
	w.now += 501 // nothing was sent meanwhile
	rounds := l.leader.pings.last.n
	w.step(n, waits(7, 5))
	link := w.link(n.learner.opt.Link)
	w.deliver(link, true)
	if got := l.leader.pings.last.n - rounds; got != 1 || len(link.down) != 1 || link.down[0].p.Type != peerwire.PacketPing {
		t.Fatalf("%d rounds of pings; the learner gets %d packets", got, len(link.down))
	}
	for range 4 {
		w.step(l, Touched{Waits: true}) // a client of the leader waits too
		w.step(n, waits(8, 6))
	}
	if n.confirmed != 0 || l.leader.Lease() >= w.now || l.leader.pings.last.n != rounds+1 {
		t.Fatalf("confirmed %d, lease until %d, now %d, %d rounds of pings", n.confirmed, l.leader.Lease(), w.now, l.leader.pings.last.n-rounds)
	}
	for range 2 { // the ping, its answer with the second touch, and the confirmation
		w.deliver(link, false)
		w.deliver(link, true)
	}
	if n.confirmed != 6 || l.leader.Lease() != w.now+500 || l.leader.pings.last.n != rounds+1 {
		t.Errorf("confirmed %d, lease until %d, now %d, %d rounds of pings", n.confirmed, l.leader.Lease(), w.now, l.leader.pings.last.n-rounds)
	}
}

// TestPartitionedLeaderConfirmsNoTouch: a leader that reaches only one of four followers confirms nothing when its
// lease is over, however long it is asked, and sends no more pings than the regular ones.
func TestPartitionedLeaderConfirmsNoTouch(t *testing.T) {
	w := newWorld(1, 5, 0)
	w.grow(1, 5, 1, 2, 3, 4)
	w.pass(100)
	w.settle()
	n, l := w.nodes[0], w.nodes[4]
	for _, o := range w.nodes[1:4] {
		w.separate(o)
	}
	end := l.leader.Lease()
	rounds, from, late := l.leader.pings.last.n, w.now, uint64(0)
	for token := uint64(1); w.now < from+4000; token++ {
		w.step(n, waits(wire.SessionID(token), token))
		w.settle()
		if n.confirmed > 0 && n.confirmed == token && w.now > end {
			t.Fatalf("confirmed at %d, the lease was over at %d", w.now, end)
		}
		if late == 0 && w.now > end {
			late = token
		}
		w.pass(10)
	}
	if late == 0 || n.confirmed == 0 || n.confirmed >= late || l.leader == nil {
		t.Errorf("confirmed up to %d, the first touch after the lease was %d", n.confirmed, late)
	}
	if got := l.leader.pings.last.n - rounds; got > 45 {
		t.Errorf("%d rounds of pings in 4 s", got)
	}
}

// TestTouchIsNoAnswerToAPing: a TOUCH does not renew the lease. The follower may not have received the ping that
// is on its way.
func TestTouchIsNoAnswerToAPing(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	w.pass(100)
	before := l.Lease()
	for _, id := range []ensemble.ServerID{1, 2} {
		k := l.linkOf(id)
		l.Step(w.now, Received{k.id, &peerwire.QuorumPacket{Type: peerwire.PacketTouch}})
		if k.unanswered.Len() != 1 || l.check() != nil {
			t.Errorf("server %d: %d pings are unanswered; %v", id, k.unanswered.Len(), l.check())
		}
	}
	if l.Lease() != before {
		t.Errorf("lease until %d, before %d", l.Lease(), before)
	}
}

// TestTouchIsConfirmedAfterTheEndOfItsSession: the end of a session, proposed before the touch arrives, reaches the learner before
// the confirmation.
func TestTouchIsConfirmedAfterTheEndOfItsSession(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	l.Ready()
	k := l.linkOf(1)
	z, _ := l.NextZxid()
	l.Step(w.now, Propose{&record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Session: 7, Type: wire.OpCloseSession}}})
	l.Step(w.now, Received{k.id, &peerwire.QuorumPacket{Type: peerwire.PacketTouch, Data: wire.Append(nil, &peerwire.TouchedSessions{
		Sessions: []peerwire.TouchedSession{{Session: 7, TimeoutMS: 4000}}})}})
	if got := sentTo(l, k.id); slices.Contains(got, peerwire.PacketTouch) {
		t.Fatalf("sent %v before the end of the session is committed", got)
	}
	l.Step(w.now, Synced{Zxid: z, Generation: l.Generation()})
	l.Step(w.now, Received{k.id, &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: z}})
	if got := sentTo(l, k.id); !slices.Equal(got, []peerwire.PacketType{peerwire.PacketCommit, peerwire.PacketTouch}) {
		t.Errorf("sent %v", got)
	}
}

// TestClientOfALeaderWaitsForItsLease: a leader whose own client waits for the lease pings its followers at once, also compatible ones.
func TestClientOfALeaderWaitsForItsLease(t *testing.T) {
	w := servingWorld(true)
	l := w.nodes[2]
	w.now += 501
	if w.now <= l.leader.Lease() {
		t.Fatal("the leader has its lease")
	}
	w.step(l, Touched{Waits: true})
	w.settle()
	if l.leader.Lease() != w.now+500 || l.leader.pings.wanted {
		t.Errorf("lease until %d, now %d", l.leader.Lease(), w.now)
	}
	rounds := l.leader.pings.last.n
	w.step(l, Touched{Waits: true})
	if l.leader.pings.last.n != rounds {
		t.Error("a leader that has its lease pings")
	}
}

// TestBadTouchesEndTheLink: a leader, and a follower that serves observers, end the link of a learner whose TOUCH they cannot read, or
// that sends one although it does not serve or has agreed on no extension.
func TestBadTouchesEndTheLink(t *testing.T) {
	touch := &peerwire.QuorumPacket{Type: peerwire.PacketTouch}
	unreadable := &peerwire.QuorumPacket{Type: peerwire.PacketTouch, Data: []byte{1, 2, 3}}
	for _, c := range []struct {
		plain bool
		state linkState
		p     *peerwire.QuorumPacket
		why   string
	}{
		{false, linkServing, unreadable, "cannot be read"},
		{false, linkSynced, touch, "before it was told to serve"},
		{true, linkServing, touch, "has agreed on no"},
		{false, linkServing, touch, ""},
	} {
		w := servingWorld(c.plain)
		l := w.nodes[2].leader
		l.Ready()
		k := l.linkOf(1)
		k.state = c.state
		l.Step(w.now, Received{k.id, c.p})
		out := l.Ready()
		if closed := slices.Contains(out.Close, k.id); closed != (c.why != "") || closed && !strings.Contains(out.Observations[0].String(), c.why) {
			t.Errorf("%q: closed %v, %v", c.why, out.Close, out.Observations)
		}
		if c.plain {
			continue // a follower of such a leader has no native observers
		}
		_, master, _, _ := behindMaster(t, nil)
		m := master.learner.master
		o := m.order[0]
		o.state = c.state
		master.learner.Step(w.now, Received{o.id, c.p})
		rd := master.learner.Ready()
		if closed := slices.Contains(rd.Close, o.id); closed != (c.why != "") || closed && !strings.Contains(rd.Observations[0].String(), c.why) {
			t.Errorf("observer, %q: closed %v, %v", c.why, rd.Close, rd.Observations)
		}
	}
}

// TestLeaderConfirmsNoMoreThanWasReported: a learner believes no confirmation of reports that it has not sent.
func TestLeaderConfirmsNoMoreThanWasReported(t *testing.T) {
	w := servingWorld(false)
	r := w.nodes[0].learner
	r.Step(w.now, waits(7, 5))
	r.Step(w.now, Received{r.opt.Link, &peerwire.QuorumPacket{Type: peerwire.PacketTouch, Data: wire.Append(nil, &peerwire.PingInfo{Confirmed: 1 << 40})}})
	if rd := r.Ready(); rd.Confirmed != 0 || r.check() != nil {
		t.Errorf("confirmed %d; %v", rd.Confirmed, r.check())
	}
}

// TestConfirmationCheckCanFail checks the check of the test ensemble: if pings are answered without the followers, a deposed leader
// confirms sessions, and the check reports that.
func TestConfirmationCheckCanFail(t *testing.T) {
	w := servingWorld(false)
	old, o := w.nodes[2], w.nodes[3]
	for _, n := range w.nodes[:2] {
		w.leave(n)
	}
	held := w.links // the observer's link, and the old leader's ends of the others
	w.links = nil
	w.grow(1, 2, 1)
	w.links = append(held, w.links...)
	w.faults.fakePings = true
	w.now += 1000
	w.step(o, waits(7, 5))
	w.deliver(w.link(o.learner.opt.Link), true)
	if old.leader == nil || w.wrong != "" {
		t.Fatal("the old leader has ended or confirms without a ping:", w.wrong)
	}
	w.settle()
	if !strings.Contains(w.wrong, "confirms sessions") {
		t.Errorf("not seen: %q", w.wrong)
	}
}

// TestObserversTouchesPrecedeItsSync: an observer without the extension, behind a follower of a compatible leader, takes the answer to its sync as
// the confirmation of what it has reported. ZooKeeper's leader answers a sync without a ping, so the follower sends it the touch
// before the sync. The leader does not take that report for the answer to a ping. The same sync confirms the
// session of a client of the follower itself, which was in the report.
func TestObserversTouchesPrecedeItsSync(t *testing.T) {
	w, master, leader, o := behindMaster(t, func(w *world) { w.plain = true })
	w.pass(500)
	w.settle()
	w.step(master, waits(8, 9))
	w.step(o, waits(7, 5))
	w.now += 100
	m := master.learner.master
	up, toObserver := w.link(master.learner.opt.Link), w.link(o.learner.opt.Link)
	unanswered := leader.leader.linkOf(1).unanswered.Len()
	m.order[0].pinged = 0
	m.ping(0) // the master pings the observer while the leader does not ping the master
	w.ready(master)
	w.deliver(toObserver, false)
	for range 2 { // the answer to the ping, and the sync behind it
		w.deliver(toObserver, true)
	}
	var touched peerwire.TouchedSessions
	if len(up.up) != 2 || up.up[0].p.Type != peerwire.PacketPing || up.up[0].p.Zxid != unaskedPing || up.up[1].p.Type != peerwire.PacketRequest ||
		wire.Decode(up.up[0].p.Data, &touched) != nil || len(touched.Sessions) != 2 {
		t.Fatalf("the leader gets %d packets, with the sessions %v", len(up.up), touched.Sessions)
	}
	w.deliver(up, true)
	if !leader.heard(7, 1) || !leader.heard(8, 1) || leader.leader.linkOf(1).unanswered.Len() != unanswered {
		t.Errorf("touched %v and %v, %d pings unanswered, want %d", leader.heard(7, 1), leader.heard(8, 1), leader.leader.linkOf(1).unanswered.Len(), unanswered)
	}
	if o.confirmed != 0 || master.confirmed != 0 {
		t.Error("confirmed before the sync was answered")
	}
	w.settle()
	if o.confirmed != 5 || master.confirmed != 9 || w.wrong != "" {
		t.Errorf("confirmed %d to the observer, %d to the follower; %s", o.confirmed, master.confirmed, w.wrong)
	}
}

// TestUnaskedPingIsNoAnswer: a compatible leader takes the sessions of a PING with which a follower reports them early, and does not count
// it as the answer to the ping that is on its way. A native follower has no such PING.
func TestUnaskedPingIsNoAnswer(t *testing.T) {
	for _, plain := range []bool{true, false} {
		w := servingWorld(plain)
		l := w.nodes[2].leader
		w.pass(500)
		l.Ready()
		k := l.linkOf(1)
		before, unanswered := l.Lease(), k.unanswered.Len()
		if unanswered == 0 {
			t.Fatal("no ping is on its way")
		}
		p := &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: unaskedPing, Data: wire.Append(nil, &peerwire.TouchedSessions{
			Sessions: []peerwire.TouchedSession{{Session: 7, TimeoutMS: 4000}}})}
		l.Step(w.now, Received{k.id, p})
		if rd := l.Ready(); len(rd.Inputs) != 1 || len(rd.Close) != 0 {
			t.Errorf("plain %v: inputs %v, closed %v", plain, rd.Inputs, rd.Close)
		}
		if plain != (k.unanswered.Len() == unanswered && l.Lease() == before) {
			t.Errorf("plain %v: %d pings unanswered, want %d; lease until %d, before %d", plain, k.unanswered.Len(), unanswered, l.Lease(), before)
		}
	}
}

// TestPingConfirmsUntilTheEndOfTheLease: a ping in the last millisecond of the lease confirms what a learner has reported. A later one
// repeats what was confirmed before.
func TestPingConfirmsUntilTheEndOfTheLease(t *testing.T) {
	for after, want := range map[int64]int64{0: 5, 1: 0} {
		w := servingWorld(false)
		l := w.nodes[2].leader
		k := l.linkOf(1)
		k.unconfirmed.Push(reports{5, l.log.applied})
		l.Ready()
		l.sendPings(l.Lease()+after, false)
		var confirmed []int64
		for _, m := range l.Ready().Send {
			var info peerwire.PingInfo
			if m.Link == k.id && wire.Decode(m.Packet.Data, &info) == nil {
				confirmed = append(confirmed, info.Confirmed)
			}
		}
		if !slices.Equal(confirmed, []int64{want}) {
			t.Errorf("%d ms after the lease: pings confirm %d, want %d", after, confirmed, want)
		}
	}
}
