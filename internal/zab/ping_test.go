package zab

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// pings returns the links on which messages send pings, in order.
func pings(send []Message) (links []LinkID) {
	for _, m := range send {
		if m.Packet.Type == peerwire.PacketPing {
			links = append(links, m.Link)
		}
	}
	return links
}

// TestHeartbeatBetweenTwoSteps: a leader whose driver is busy sends each round of pings once, when it is
// due, and after everything that was queued before. The next step may have an earlier time, and still
// checks the links.
func TestHeartbeatBetweenTwoSteps(t *testing.T) {
	w := servingWorld(false)
	n := w.nodes[2]
	l := n.leader
	w.pass(100)
	w.settle()
	at := l.NextHeartbeat()
	if at <= w.now || at > w.now+100 {
		t.Fatalf("the next round is due at %d, now %d", at, w.now)
	}
	if send, _ := l.Heartbeat(at - 1); send != nil {
		t.Fatalf("sent before it is due: %v", send)
	}
	z, _ := l.NextZxid()
	l.Step(w.now, Propose{Txn: &record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpError}, Body: &record.ErrorTxn{}}})
	proposals := len(l.ready.Send)
	send, due := l.Heartbeat(at + 30)
	if due != at || len(pings(send)) != 3 || len(send) != proposals+3 || send[0].Packet.Type != peerwire.PacketProposal {
		t.Fatalf("sent %v, due at %d, want %d", send, due, at)
	}
	if again, _ := l.Heartbeat(at + 129); again != nil {
		t.Errorf("the round is sent twice: %v", again)
	}
	if got := l.NextHeartbeat(); got != at+130 {
		t.Errorf("the next round is due at %d, want %d", got, at+130)
	}
	for _, m := range send {
		w.send(n, m)
	}
	w.ready(n)
	w.settle()
	if l.Lease() != at+30+500 {
		t.Errorf("lease until %d, pings sent at %d", l.Lease(), at+30)
	}
	silent := l.order[0]
	silent.heard = w.now - l.opt.SyncLimit*l.opt.TickMS - 1
	w.now = at + 100
	l.Step(w.now, Tick{})
	rd := l.Ready()
	if len(rd.Close) != 1 || rd.Close[0] != silent.id {
		t.Errorf("a silent learner is not given up: %v", rd.Close)
	}
	if sent := pings(rd.Send); sent != nil || rd.Wake != l.NextHeartbeat() {
		t.Errorf("pings again: %v; wakes at %d, the next round is due at %d", sent, rd.Wake, l.NextHeartbeat())
	}
}

// TestReadySaysWhenPingsWereDue: the Ready with the pings of a late tick says when they were due;
// a Ready with pings for a sync does not.
func TestReadySaysWhenPingsWereDue(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	w.pass(100)
	w.settle()
	due := l.NextHeartbeat()
	l.Step(due+70, Tick{})
	if rd := l.Ready(); rd.HeartbeatDue != due || len(pings(rd.Send)) != 3 {
		t.Errorf("due at %d: %v say %d", due, rd.Send, rd.HeartbeatDue)
	}
	l.Step(due+71, Sync{Token: 1})
	if rd := l.Ready(); rd.HeartbeatDue != 0 {
		t.Errorf("pings that are not due say %d", rd.HeartbeatDue)
	}
}

// TestNoHeartbeatWithoutATerm: no ping is due before the synchronisation or after the term.
func TestNoHeartbeatWithoutATerm(t *testing.T) {
	w := newWorld(1, 3, 0)
	w.grow(1, 3, 1, 2)
	l := w.nodes[2].leader
	l.Step(w.now, Leave{Why: "test"})
	if send, _ := l.Heartbeat(w.now + 1000); send != nil || l.NextHeartbeat() != Never {
		t.Errorf("sent %v, next at %d", send, l.NextHeartbeat())
	}
}

// TestBusyLearnerAnswersPings: a learner whose driver is busy answers each ping once, in whatever order
// Heartbeat and Step are called. A later Step processes the content of the ping. An answer contains the
// sessions that were touched so far.
func TestBusyLearnerAnswersPings(t *testing.T) {
	w := servingWorld(false)
	n, l := w.nodes[0], w.nodes[2].leader
	r := n.learner
	link := r.opt.Link
	w.step(n, Touched{Sessions: []peerwire.TouchedSession{{Session: 7, TimeoutMS: 4000}}, Token: 5})
	if send := r.Heartbeat(w.now, Arrived{Link: link}); send != nil {
		t.Fatalf("answers pings that have not arrived: %v", send)
	}
	if send := r.Heartbeat(w.now, Arrived{Link: link + 1000, Pings: 1}); send != nil {
		t.Fatalf("answers pings of another link: %v", send)
	}
	send := r.Heartbeat(w.now, Arrived{link, 2})
	if len(pings(send)) != 2 {
		t.Fatalf("2 pings have arrived: %v", send)
	}
	var touched peerwire.TouchedSessions
	if err := wire.Decode(send[0].Packet.Data, &touched); err != nil || len(touched.Sessions) != 1 {
		t.Errorf("%+v, %v", touched, err)
	}
	if again := r.Heartbeat(w.now, Arrived{link, 2}); again != nil {
		t.Errorf("answered twice: %v", again)
	}
	if more := r.Heartbeat(w.now, Arrived{link, 3}); len(pings(more)) != 1 {
		t.Errorf("another one has arrived: %v", more)
	}
	ping := func(confirmed int64) []LinkID {
		p := &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: l.proposed, Data: wire.Append(nil, &peerwire.PingInfo{Confirmed: confirmed})}
		r.Step(w.now, Received{link, p})
		return pings(r.Ready().Send)
	}
	before := r.touches.reports - 3
	for range 3 {
		if r.touches.confirmed == 5 {
			t.Error("confirmed before the leader has said so")
		}
		if sent := ping(before); sent != nil {
			t.Errorf("the ping is answered again: %v", sent)
		}
	}
	if sent := ping(before + 1); len(sent) != 1 || r.touches.confirmed != 5 {
		t.Errorf("the fourth ping: %v, confirmed %d", sent, r.touches.confirmed)
	}
	if send := r.Heartbeat(w.now+r.opt.busyMax()+1, Arrived{link, 1}); send != nil {
		t.Errorf("answers a ping later than busyMax after its last Step: %v", send)
	}
	if send := r.Heartbeat(w.now+r.opt.busyMax(), Arrived{link, 1}); len(pings(send)) != 1 {
		t.Errorf("does not answer a ping busyMax after its last Step: %v", send)
	}
	r.Step(w.now, Leave{Why: "test"})
	if send := r.Heartbeat(w.now, Arrived{link, 2}); send != nil {
		t.Errorf("answers after the end of its term: %v", send)
	}
}

// TestBusyCompatibleLearnerWaits: a learner answers early neither to a compatible leader nor before
// UPTODATE.
func TestBusyCompatibleLearnerWaits(t *testing.T) {
	w := servingWorld(true)
	r := w.nodes[0].learner
	if send := r.Heartbeat(w.now, Arrived{r.opt.Link, 1}); send != nil {
		t.Errorf("answers a compatible leader early: %v", send)
	}
	w = servingWorld(false)
	r = w.nodes[0].learner
	r.step = adopted
	if send := r.Heartbeat(w.now, Arrived{r.opt.Link, 1}); send != nil {
		t.Errorf("answered before UPTODATE: %v", send)
	}
}

// TestCompatibleLearnersArePingedEveryHalfTick: the heartbeats of native learners bring a compatible one no further pings.
func TestCompatibleLearnersArePingedEveryHalfTick(t *testing.T) {
	for compatible, want := range map[bool]int{true: 2, false: 10} {
		w := servingWorld(compatible)
		l := w.nodes[2].leader
		sent := map[LinkID]int{}
		for ms := int64(100); ms <= l.opt.TickMS; ms += 100 {
			l.Step(w.now+ms, Tick{})
			for _, link := range pings(l.Ready().Send) {
				sent[link]++
			}
		}
		for link, n := range sent {
			if n != want {
				t.Errorf("compatible %v: %d pings in a tick on link %d, want %d", compatible, n, link, want)
			}
		}
		if len(sent) != 3 {
			t.Errorf("compatible %v: pings on %d links", compatible, len(sent))
		}
	}
}

// TestUnansweredPingsAreBounded: a leader sends no more pings to a learner that owes it 256 answers, until one comes.
func TestUnansweredPingsAreBounded(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	l.opt.SyncLimit = 1000 // or it closes the link before
	k := l.linkOf(1)
	l.Ready()
	sent := 0
	for range 400 {
		l.Step(l.now+l.opt.HeartbeatMS, Tick{})
		for _, m := range l.Ready().Send {
			if m.Link == k.id && m.Packet.Type == peerwire.PacketPing {
				sent++
			}
		}
		for _, o := range l.order { // the others answer
			if o != k {
				o.heard = l.now
			}
		}
	}
	if sent > 256 || k.unanswered.Len() != 256 || !l.Serving() {
		t.Errorf("%d pings sent, %d unanswered, serves: %v", sent, k.unanswered.Len(), l.Serving())
	}
	l.Step(l.now, Received{k.id, pack(peerwire.PacketPing, "0", nil)})
	l.Step(l.now+l.opt.HeartbeatMS, Tick{})
	if n := k.unanswered.Len(); n != 256 {
		t.Errorf("%d unanswered after one answer and one more ping", n)
	}
}
