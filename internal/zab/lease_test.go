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

// servingWorld returns an ensemble of three servers that all serve, led by server 3.
func servingWorld(plain bool) *world {
	w := newWorld(1, 3, 1)
	w.plain = plain
	w.grow(1, 3, 1, 2, 4)
	w.pass(100)
	w.settle()
	return w
}

// TestLeaseNeedsAnAnsweredPing: the leader may confirm sessions until the last ping that
// a quorum has answered is older than the lease, and no longer.
func TestLeaseNeedsAnAnsweredPing(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	sent := l.pings.last.at
	if l.Lease() != sent+500 || w.now > l.Lease() {
		t.Fatalf("lease until %d, ping sent at %d, now %d", l.Lease(), sent, w.now)
	}
	for _, n := range w.nodes[:2] { // both followers stop answering
		n.learner.step = ended
	}
	w.nodes[3].learner.heardNow()
	for range 20 {
		w.pass(50)
		w.settle() // the observer still answers, but it does not count
	}
	if l.Lease() != sent+500 {
		t.Errorf("lease until %d with no voter answering since %d", l.Lease(), sent)
	}
	// The lease is shorter than the time after which followers give up the leader.
	r := servingWorld(false).nodes[0].learner
	if r.leaderTimeout() <= 500 {
		t.Errorf("a follower gives up after %d ms", r.leaderTimeout())
	}
	alone := newWorld(1, 1, 0)
	alone.grow(1, 1)
	if got := alone.nodes[0].leader.Lease(); got != Never {
		t.Errorf("alone: %d", got)
	}
}

// TestLeaseEndsWithASleep: pings sent before the computer was suspended do not renew the
// lease, whenever they are answered.
func TestLeaseEndsWithASleep(t *testing.T) {
	w := servingWorld(false)
	n := w.nodes[2]
	w.pass(100) // pings are on their way
	w.step(n, Slept{5000})
	for range 2 {
		if l := n.leader.Lease(); w.now <= l {
			t.Errorf("lease until %d, now %d", l, w.now)
		}
		w.settle()
	}
	w.pass(100)
	w.settle()
	if l := n.leader.Lease(); w.now > l {
		t.Errorf("lease until %d, now %d, and a quorum has answered since", l, w.now)
	}
}

// TestTouchesAreConfirmed: a touch is confirmed to a learner once the leader has it and
// holds the lease; under a compatible leader, once a sync that was sent after it is
// answered.
func TestTouchesAreConfirmed(t *testing.T) {
	for _, plain := range []bool{false, true} {
		w := servingWorld(plain)
		n := w.nodes[0]
		s := peerwire.TouchedSession{Session: 7, TimeoutMS: 4000}
		w.step(n, Touched{Sessions: []peerwire.TouchedSession{s, {Session: 8, TimeoutMS: 1}, s}, Token: 5})
		if n.confirmed != 0 {
			t.Fatal("confirmed at once")
		}
		w.nodes[2].inputs = nil
		w.pass(500) // the time in which the leader pings a peer of either kind
		w.settle()
		w.pass(100)
		w.settle()
		w.pass(100)
		w.settle()
		if n.confirmed != 5 {
			t.Errorf("plain %v: confirmed %d, want 5", plain, n.confirmed)
		}
		i := slices.IndexFunc(w.nodes[2].inputs, func(in Input) bool { return in.Touched != nil })
		if i < 0 || len(w.nodes[2].inputs[i].Touched) != 2 || w.nodes[2].inputs[i].Server != 1 {
			t.Errorf("plain %v: the leader got %+v", plain, w.nodes[2].inputs)
		}
	}
}

// TestNoConfirmationWithoutLease: a leader that no quorum answers confirms nothing.
func TestNoConfirmationWithoutLease(t *testing.T) {
	w := servingWorld(false)
	w.nodes[1].learner.step = ended // this learner does not answer
	n, l := w.nodes[0], w.nodes[2]
	w.step(n, Touched{Sessions: []peerwire.TouchedSession{{Session: 7, TimeoutMS: 1}}, Token: 5})
	l.leader.opt.LeaseMS = -1000 // the lease of every answer has ended already
	for range 10 {
		w.pass(100)
		w.settle()
	}
	if n.confirmed != 0 {
		t.Errorf("confirmed %d", n.confirmed)
	}
}

// TestSyncWaitsForCommitsAndAPing: a sync is answered when everything proposed before it is committed and
// a quorum has answered a ping that was sent after it. Each sync is answered once and in order, and many
// syncs share a ping.
func TestSyncWaitsForCommitsAndAPing(t *testing.T) {
	w := servingWorld(true)
	l := w.nodes[2]
	w.propose(l)
	before := l.leader.pings.last.n
	for i := range uint64(3) {
		w.step(l, Sync{Token: i + 1})
	}
	f := Forward{Request: peerwire.ForwardedRequest{Session: 1, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"})}}
	w.step(w.nodes[0], Sync{Token: 8, Request: f})
	w.step(w.nodes[3], Sync{Token: 9, Request: f})
	if len(l.syncs) != 0 || l.leader.pings.last.n > before+1 {
		t.Fatalf("syncs %v are answered before a ping was answered; %d rounds of pings", l.syncs, l.leader.pings.last.n-before)
	}
	w.settle()
	if !slices.Equal(l.syncs, []uint64{1, 2, 3}) || !slices.Equal(w.nodes[0].syncs, []uint64{8}) || !slices.Equal(w.nodes[3].syncs, []uint64{9}) {
		t.Errorf("leader %v, follower %v, observer %v", l.syncs, w.nodes[0].syncs, w.nodes[3].syncs)
	}
	if n := l.leader.pings.last.n - before; n > 3 {
		t.Errorf("%d rounds of pings for 5 syncs", n)
	}
}

// TestSyncBeforeTheFirstTransaction: a sync before the first transaction of a term waits only for
// an answered ping.
func TestSyncBeforeTheFirstTransaction(t *testing.T) {
	w := newWorld(1, 3, 0)
	w.grow(0, 3, 1, 2)
	w.step(w.nodes[2], Sync{Token: 1})
	w.settle()
	if !slices.Equal(w.nodes[2].syncs, []uint64{1}) {
		t.Error("not answered")
	}
}

// TestDeposedLeaderAnswersNoSync: once the followers follow another leader, the old one
// answers neither syncs nor revalidations (etcd 20418).
func TestDeposedLeaderAnswersNoSync(t *testing.T) {
	w := servingWorld(false)
	old := w.nodes[2]
	for _, n := range w.nodes[:2] {
		w.leave(n)
	}
	w.links = nil // the old leader has not noticed that its links are gone
	w.grow(1, 2, 1)
	old.syncs = nil
	if old.leader != nil {
		w.step(old, Sync{Token: 1})
		w.settle()
	}
	w.pass(8000)
	w.settle()
	if len(old.syncs) != 0 || !strings.Contains(old.gaveUp, "no quorum is connected") {
		t.Errorf("answered %v, gave up %q", old.syncs, old.gaveUp)
	}
}

// TestSyncCheckCanFail checks the check of the test ensemble: if pings are answered without the
// followers, a deposed leader answers a sync, and the check reports that.
func TestSyncCheckCanFail(t *testing.T) {
	w := servingWorld(false)
	for _, n := range w.nodes[:2] {
		w.leave(n)
	}
	old := w.nodes[2]
	w.faults.fakePings = true
	held := w.links // the old leader's ends of the links stay open
	w.links = nil
	w.grow(1, 2, 1)
	w.links = append(held, w.links...)
	w.sync(old)
	w.settle()
	if !strings.Contains(w.wrong, "answered a sync") {
		t.Errorf("not seen: %q", w.wrong)
	}
}

// TestSilentLeaderIsLeft: learners leave a silent native leader soon, after three times the longest gap
// between its packets. They leave a compatible or slow leader after syncLimit.
func TestSilentLeaderIsLeft(t *testing.T) {
	for _, c := range []struct {
		plain    bool
		gap      int64 // seen before
		min, max int64
	}{{false, 100, 1000, 1100}, {false, 700, 2000, 2400}, {false, 4000, 4900, 5100}, {true, 100, 5000, 5100}} {
		w := servingWorld(c.plain)
		n := w.nodes[0]
		if c.gap > 100 {
			n.learner.silence.note(w.now, c.gap)
		}
		w.nodes[2].leader.phase = over
		from := n.learner.heard
		for n.learner != nil && w.now-from < 20_000 {
			w.pass(50)
			w.settle()
		}
		if took := w.now - from; took < c.min || took > c.max || !strings.Contains(n.gaveUp, "silent") {
			t.Errorf("plain %v, gap %d: left after %d ms: %s", c.plain, c.gap, took, n.gaveUp)
		}
	}
}

// TestSilenceForgetsOldGaps: gaps between packets that are older than a minute do not count.
func TestSilenceForgetsOldGaps(t *testing.T) {
	var s silence
	s.note(5_000, 900)
	s.note(50_000, 100)
	if s.worst() != 900 {
		t.Error("forgotten too early:", s.worst())
	}
	s.note(66_000, 100)
	if s.worst() != 100 {
		t.Error("not forgotten:", s.worst())
	}
	s.note(1_000_000, 50)
	if s.worst() != 50 {
		t.Error("not forgotten after long:", s.worst())
	}
}

// TestRevalidationAndForwarding: a learner's questions about sessions, and its requests, reach the leader
// with the learner's id, and the answers come back.
func TestRevalidationAndForwarding(t *testing.T) {
	w := servingWorld(false)
	n := w.nodes[0]
	n.learner.Step(w.now, Revalidate{peerwire.Revalidation{Session: 7, TimeoutMS: 4000}})
	n.learner.Step(w.now, Forward{peerwire.ForwardedRequest{Session: 7, Cxid: 3, Op: wire.OpDelete, Body: []byte{1}}, []wire.ID{{Scheme: "ip", ID: "::1"}}})
	w.ready(n)
	var answers []peerwire.Revalidated
	for range 20 {
		for _, c := range w.links {
			w.deliver(c, true)
			for len(c.down) > 0 {
				p := c.down[0]
				c.down = c.down[1:]
				c.lrn.learner.Step(w.now, Received{c.id, p.p})
				r := c.lrn.learner.Ready()
				answers = append(answers, r.Revalidated...)
				w.write(c.lrn, &r)
				for _, m := range r.Send {
					w.send(c.lrn, m)
				}
			}
		}
		for _, s := range w.nodes {
			w.diskStep(s)
		}
	}
	if len(answers) != 1 || answers[0] != (peerwire.Revalidated{Session: 7, Valid: true}) {
		t.Errorf("answers %v", answers)
	}
	i := slices.IndexFunc(w.nodes[2].inputs, func(in Input) bool { return in.Request != nil })
	if i < 0 {
		t.Fatal("no request arrived")
	}
	in := w.nodes[2].inputs[i]
	if in.Request.Session != 7 || in.Request.Cxid != 3 || string(in.Request.Body) != "\x01" || in.Server != 1 || len(in.Identities) != 1 {
		t.Errorf("%+v %+v", in, in.Request)
	}
}

// sentTo returns the packets that were sent on a link, except pings.
func sentTo(l *Leader, link LinkID) (types []peerwire.PacketType) {
	for _, m := range l.Ready().Send {
		if m.Link == link && m.Packet.Type != peerwire.PacketPing {
			types = append(types, m.Packet.Type)
		}
	}
	return types
}

// answeredOnce makes a learner answer pings until no sync waits, and checks that its sync got one answer.
func (w *world) answeredOnce(t *testing.T, l *Leader, k *link) {
	t.Helper()
	for i := 0; l.PendingSyncs() > 0 && i < 3; i++ {
		l.Step(w.now, Received{k.id, &peerwire.QuorumPacket{Type: peerwire.PacketPing}})
	}
	if got := sentTo(l, k.id); !slices.Equal(got, []peerwire.PacketType{peerwire.PacketSync}) {
		t.Errorf("sent %v after the pings were answered, want one SYNC", got)
	}
}

// TestSyncKeepsItsPlaceAmongCommits: a compatible follower's sync is answered after the commit of
// everything that was proposed before the sync, and before the next commit. If a commit came before the
// answer, the follower would take the answer for that of another sync, and its client would wait for
// ever.
func TestSyncKeepsItsPlaceAmongCommits(t *testing.T) {
	w := servingWorld(true)
	l := w.nodes[2].leader
	l.Ready()
	k := l.linkOf(1)
	propose := func() wire.Zxid {
		z, _ := l.NextZxid()
		l.Step(w.now, Propose{&record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpError}, Body: &record.ErrorTxn{}}})
		return z
	}
	l.Step(w.now, Sync{Link: k.id}) // no proposal is outstanding
	propose()
	l.Step(w.now, Sync{Link: k.id})
	last := propose()
	l.Step(w.now, Sync{Link: k.id})
	l.Step(w.now, Synced{Zxid: last, Generation: l.Generation()})
	l.Step(w.now, Received{k.id, &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: last}})
	want := []peerwire.PacketType{peerwire.PacketProposal, peerwire.PacketProposal, peerwire.PacketSync, peerwire.PacketCommit, peerwire.PacketSync, peerwire.PacketCommit}
	if got := sentTo(l, k.id); !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	w.answeredOnce(t, l, k)
}

// TestSyncOfCompatiblePeerWaitsForAPing: a deposed leader does not answer the sync of a compatible
// follower either. Such a follower may have connected to the deposed leader again.
func TestSyncOfCompatiblePeerWaitsForAPing(t *testing.T) {
	w := servingWorld(true)
	l := w.nodes[2].leader
	l.Ready()
	k := l.linkOf(1)
	l.Step(w.now, Sync{Link: k.id})
	for _, m := range l.Ready().Send {
		if m.Packet.Type == peerwire.PacketSync {
			t.Error("the sync is answered before a quorum has answered a ping")
		}
	}
	w.answeredOnce(t, l, k)
}

// TestSyncDoesNotWaitForTheNextRound: compatible followers are pinged rarely, so a sync
// pings them at once.
func TestSyncDoesNotWaitForTheNextRound(t *testing.T) {
	w := servingWorld(true)
	l := w.nodes[2]
	for range 3 { // rounds in which no ping to a compatible follower is due
		w.pass(l.leader.opt.HeartbeatMS)
		w.settle()
	}
	l.syncs = nil
	w.step(l, Sync{Token: 1})
	w.settle()
	if !slices.Equal(l.syncs, []uint64{1}) {
		t.Errorf("answered %v, pings %+v", l.syncs, l.leader.pings)
	}
}

// TestLeaderThatAllHaveLeftEndsAtOnce: a term ends as soon as the servers whose links remain are no
// quorum. The end of the link of an observer, or of a server that is not a member, does not end the term.
func TestLeaderThatAllHaveLeftEndsAtOnce(t *testing.T) {
	for _, c := range []struct {
		leave []int
		ends  bool
	}{
		{[]int{1}, false}, {[]int{2}, false}, {[]int{4}, false}, {[]int{1, 4}, false}, {[]int{1, 2}, true}, {[]int{4, 2, 1}, true},
	} {
		w := servingWorld(false)
		l := w.nodes[2]
		for i, id := range c.leave {
			if l.leader == nil {
				t.Errorf("%v: it ended when %v had left", c.leave, c.leave[:i])
			}
			w.leave(w.nodes[id-1])
			w.settle()
		}
		if ended := strings.Contains(l.gaveUp, "no quorum is connected any more"); ended != c.ends || ended != (l.leader == nil) {
			t.Errorf("%v have left: it gave up %q", c.leave, l.gaveUp)
		}
	}
}

// TestLeaderThatAllHaveLeftBeforeItServes: if all servers leave a leader before it serves, its term ends
// after a short time and not after initLimit, because servers that have left it during discovery cannot
// join it again.
func TestLeaderThatAllHaveLeftBeforeItServes(t *testing.T) {
	for _, promised := range []bool{false, true} {
		for _, back := range []bool{false, true} {
			l := NewLeader(0, LeaderOptions{TermStart: TermStart{
				ID: 3, Accepted: 1, Current: 1, Committed: newWorld(1, 3, 0).members, TickMS: 2000, InitLimit: 10, SyncLimit: 5,
			}}, logOf(t, "1.1", ""))
			step := func(now int64, e Event) string {
				l.Step(now, e)
				return l.Ready().GiveUp
			}
			follow := func(now int64, link LinkID) {
				info := wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: peerwire.QuorumVersion})
				step(now, Opened{link})
				step(now, Received{link, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: info}})
			}
			follow(0, 1)
			step(0, Saved{Accepted: 2, Generation: l.Generation()})
			if promised {
				step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: zx("1.1"), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1})}})
			}
			if want := map[bool]phase{false: promising, true: synchronising}[promised]; l.phase != want {
				t.Fatalf("phase %v, want %v", l.phase, want)
			}
			if why := step(10, Closed{Link: 1}); why != "" {
				t.Errorf("it ended at once: %s", why)
			}
			if back {
				follow(20, 2)
			}
			var why string
			for now := int64(100); now <= 1500 && why == ""; now += 100 {
				why = step(now, Tick{})
			}
			if ended := why != ""; ended == back {
				t.Errorf("promised %v, back %v: gave up %q", promised, back, why)
			}
		}
	}
}

// TestEveryAnswerAgesWithASleep: of two followers that are needed for a quorum, one has answered a ping before the computer was
// suspended, and the other one answers it afterwards. That does not renew the lease, whichever of them it is.
func TestEveryAnswerAgesWithASleep(t *testing.T) {
	for _, early := range []LinkID{1, 2} {
		late := 3 - early
		l := establishedLeader(t, 3, 2, configuration(0, "1 2 3 4 5"), logOf(t, "1.1", ""))
		for _, id := range []ensemble.ServerID{1, 2} {
			greet(l, LinkID(id), id, "1.1", false)
			ack(l, "2.0", LinkID(id))
			l.linkOf(id).native = true
		}
		answer := func(link LinkID) Received { return Received{link, pack(peerwire.PacketPing, "0", nil)} }
		for i, c := range []struct {
			now   int64
			event Event
			want  int64
		}{
			{1000, Tick{}, -1},
			{1010, answer(early), -1},
			{1020, answer(late), 1000 + 500},
			{1100, Tick{}, 1000 + 500},
			{1110, answer(early), 1000 + 500},
			{1150, Slept{5000}, 1000 - 5000 + 500},
			{1200, Tick{}, 1000 - 5000 + 500},
			{1210, answer(late), 1100 - 5000 + 500},
			{1220, answer(early), 1100 - 5000 + 500},
			{1230, answer(late), 1200 + 500},
		} {
			if l.Step(c.now, c.event); l.Lease() != c.want {
				t.Errorf("link %d is late: event %d, %T at %d: lease until %d, want %d", late, i, c.event, c.now, l.Lease(), c.want)
			}
		}
	}
}
