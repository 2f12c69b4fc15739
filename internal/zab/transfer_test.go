package zab

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// named returns the last leadership transfer that was sent on a link; nil if there was none.
func named(r *Ready, link LinkID) *peerwire.Handover {
	var found *peerwire.Handover
	for _, m := range r.Send {
		if m.Link == link && m.Packet.Type == peerwire.PacketHandOver {
			found = new(peerwire.Handover)
			if err := wire.Decode(m.Packet.Data, found); err != nil {
				panic(err)
			}
		}
	}
	return found
}

// acknowledge gives the leader an ACK of a server.
func acknowledge(l *Leader, now int64, id ensemble.ServerID, z wire.Zxid) {
	l.Step(now, Received{l.servers[id].id, &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: z}})
}

// TestTransferWaitsForEverything: after a leadership transfer has begun, the leader proposes nothing. It
// names the next leader only when everything is committed and is on that server's disk.
func TestTransferWaitsForEverything(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	first, _ := l.NextZxid()
	l.Step(w.now, Propose{w.txn(first)})
	l.Step(w.now, Propose{w.txn(first + 1)})
	l.Ready()
	l.Step(w.now, TransferLeadership{To: 1})
	if _, can := l.NextZxid(); can || !l.Transferring() {
		t.Fatal("the leader still proposes during the transfer")
	}
	l.Step(w.now, Synced{first + 1, l.generation})
	acknowledge(l, w.now, 1, first)
	acknowledge(l, w.now, 2, first+1) // everything is committed, but server 1 lacks the last transaction
	r := l.Ready()
	if len(r.Commit) != 2 || r.GiveUp != "" || r.Successor != nil {
		t.Fatalf("commits %d, ends %q", len(r.Commit), r.GiveUp)
	}
	link := l.servers[1].id
	others := []LinkID{l.servers[2].id, l.servers[4].id}
	acknowledge(l, w.now+7, 1, first+1)
	r = l.Ready()
	want := Successor{From: 3, Leader: 1, Zxid: first + 1, Epoch: 1, HeldMS: 7, Avoid: true}
	if r.Successor == nil || *r.Successor != want || r.GiveUp == "" || len(r.Close) != 3 {
		t.Fatalf("%+v, %q, want %+v", r.Successor, r.GiveUp, want)
	}
	if h := named(&r, link); h == nil || h.Leader != 1 || r.Send[0].Link != link {
		t.Errorf("the HANDOVER for server 1 is not the first packet: %+v", r.Send)
	}
	for _, k := range others {
		if h := named(&r, k); h == nil || h.Leader != 1 {
			t.Errorf("link %d gets no HANDOVER that names server 1", k)
		}
	}
	if _, can := l.NextZxid(); can || l.Serving() || l.Lease() >= w.now {
		t.Error("the leader still proposes, serves or has a lease after the transfer")
	}
}

// TestSuccessorIsAccepted: the named server leads a new epoch with the whole history.
func TestSuccessorIsAccepted(t *testing.T) {
	w := servingWorld(false)
	for range 5 {
		w.propose(w.nodes[2])
	}
	w.step(w.nodes[2], TransferLeadership{To: 2})
	w.settle()
	for _, n := range w.nodes {
		if n.leader != nil || n.learner != nil || !strings.Contains(n.gaveUp, "leadership to server 2") {
			t.Fatalf("server %d: %q", n.id, n.gaveUp)
		}
	}
	w.lead(w.nodes[1])
	for _, i := range []int{0, 2, 3} {
		w.join(w.nodes[i], w.nodes[1])
	}
	w.settle()
	if w.leaders[2] != 2 || w.wrong != "" || len(w.nodes[1].tree) != len(w.history) {
		t.Errorf("leaders %v, %s", w.leaders, w.wrong)
	}
}

// TestTransferEnds: a leadership transfer always ends the term, if necessary without naming a server.
func TestTransferEnds(t *testing.T) {
	begin := func() (*world, *Leader) {
		w := servingWorld(false)
		l := w.nodes[2].leader
		z, _ := l.NextZxid()
		l.Step(w.now, Propose{w.txn(z)})
		l.Step(w.now, TransferLeadership{To: 1})
		l.Ready()
		return w, l
	}
	w, l := begin()
	if r := l.Ready(); r.Wake > w.now+transferMax {
		t.Errorf("wakes at %d", r.Wake)
	}
	l.Step(w.now+transferMax, Tick{})
	if r := l.Ready(); r.GiveUp == "" || r.Successor != nil {
		t.Errorf("after transferMax: %q, %+v", r.GiveUp, r.Successor)
	}
	w, l = begin() // the server that was to be named is lost, so another one takes its place
	z := l.log.last
	l.Step(w.now, Closed{l.servers[1].id, "gone"})
	l.Step(w.now, Synced{z, l.generation})
	acknowledge(l, w.now, 2, z)
	if r := l.Ready(); r.Successor == nil || r.Successor.Leader != 2 {
		t.Errorf("server 1 is lost, want server 2 named: %q, %+v", r.GiveUp, r.Successor)
	}
	w, l = begin()
	l.Step(w.now, Closed{l.servers[1].id, "gone"})
	l.Step(w.now, Closed{l.servers[2].id, "gone"})
	if r := l.Ready(); r.GiveUp == "" || r.Successor != nil {
		t.Errorf("no server can lead next, want no name: %q, %+v", r.GiveUp, r.Successor)
	}
}

// TestSuccessor shows which servers can be named, and which cannot.
func TestSuccessor(t *testing.T) {
	for _, c := range []struct {
		what    string
		to      ensemble.ServerID
		leaving bool
		change  func(w *world, l *Leader)
		want    ensemble.ServerID
		err     string
	}{
		{"the fittest", peerwire.NoServer, true, nil, 2, ""},
		{"a named one", 1, true, nil, 1, ""},
		{"itself", 3, false, nil, 0, "it leads"},
		{"an observer", 4, false, nil, 0, "no vote"},
		{"a stranger", 9, false, nil, 0, "no vote"},
		{"one that has more", peerwire.NoServer, false, func(w *world, l *Leader) {
			l.servers[1].durable++
		}, 1, ""},
		{"one that is not there", 1, false, func(w *world, l *Leader) {
			l.Step(w.now, Closed{l.servers[1].id, "gone"})
		}, 0, "does not follow"},
		{"one that does not know it", 1, false, func(w *world, l *Leader) { l.servers[1].canTransfer = false }, 0, "does not support"},
		{"the other of one that does not", peerwire.NoServer, false, func(w *world, l *Leader) { l.servers[2].canTransfer = false }, 1, ""},
		{"no quorum without the leader", peerwire.NoServer, true, func(w *world, l *Leader) { l.servers[2].canTransfer = false }, 0, "no quorum"},
		{"nobody", peerwire.NoServer, false, func(w *world, l *Leader) { l.servers[1].canTransfer, l.servers[2].canTransfer = false, false }, 0, "no other server"},
		{"a silent one", 1, false, func(w *world, l *Leader) { l.servers[1].heard -= 501 }, 0, "silent for 501 ms"},
		{"a slow disk", 1, false, func(w *world, l *Leader) {
			l.servers[1].watched, l.servers[1].watchedAt = 5, w.now-251
		}, 0, "has not acknowledged"},
		{"one that should not lead", 1, false, func(w *world, l *Leader) { l.servers[1].unfit = "its disk is full" }, 0, "server 1 should not lead: its disk is full"},
		{"the other of one that should not", peerwire.NoServer, false, func(w *world, l *Leader) { l.servers[2].unfit = "x" }, 1, ""},
		{"the best of those that should not", peerwire.NoServer, true, func(w *world, l *Leader) { l.servers[1].unfit, l.servers[2].unfit = "x", "y" }, 2, ""},
		{"the other of one that was tried", peerwire.NoServer, false, func(_ *world, l *Leader) { l.opt.Tried = map[ensemble.ServerID]bool{2: true} }, 1, ""},
		{"one that was tried rather than one that should not", peerwire.NoServer, false, func(_ *world, l *Leader) {
			l.opt.Tried, l.servers[1].unfit = map[ensemble.ServerID]bool{2: true}, "x"
		}, 2, ""},
		{"the best if all were tried", peerwire.NoServer, false, func(_ *world, l *Leader) { l.opt.Tried = map[ensemble.ServerID]bool{1: true, 2: true} }, 2, ""},
		{"one that was tried, by name", 2, false, func(_ *world, l *Leader) { l.opt.Tried = map[ensemble.ServerID]bool{2: true} }, 2, ""},
		{"before it serves", peerwire.NoServer, false, func(_ *world, l *Leader) { l.phase = synchronising }, 0, "does not lead"},
	} {
		w := servingWorld(false)
		l := w.nodes[2].leader
		for _, k := range l.order {
			k.heard = l.now
		}
		if c.change != nil {
			c.change(w, l)
		}
		got, err := l.Successor(c.to, c.leaving)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: server %d, %v; want %d, %q", c.what, got, err, c.want, c.err)
		}
		if l.Step(w.now, TransferLeadership{To: c.to, Leaving: c.leaving}); l.Transferring() != (c.err == "") {
			t.Errorf("%s: begun %v", c.what, l.Transferring())
		}
	}
	l := servingWorld(true).nodes[2].leader
	if _, err := l.Successor(peerwire.NoServer, false); err == nil {
		t.Error("a successor is named among compatible peers")
	}
}

// TestTransferIsNegotiated: a learner that has not negotiated leadership transfer ignores the packet. A
// packet that cannot be decoded, or that comes before the history is complete, names no leader.
func TestTransferIsNegotiated(t *testing.T) {
	packet := func(z wire.Zxid, to ensemble.ServerID) *peerwire.QuorumPacket {
		return &peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Zxid: z, Data: wire.Append(nil, &peerwire.Handover{Leader: to})}
	}
	for _, c := range []struct {
		what         string
		hands        bool
		p            *peerwire.QuorumPacket
		ends, trusts bool
	}{
		{"agreed", true, packet(0, 2), true, true},
		{"not agreed", false, packet(0, 2), false, false},
		{"unreadable", true, &peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Data: []byte{1}}, true, false},
		{"what is not here", true, packet(zx("1.9"), 2), true, false},
		{"no voter", true, packet(0, 4), true, false},
	} {
		w := servingWorld(false)
		r := w.nodes[0].learner
		if !c.hands {
			r.extension = peerwire.ExtensionHandOver - 1
		}
		take(r, c.p)
		out := r.Ready()
		if (out.GiveUp != "") != c.ends || (out.Successor != nil) != c.trusts {
			t.Errorf("%s: %q, %+v", c.what, out.GiveUp, out.Successor)
		}
	}
	// The smaller of the two protocol versions counts.
	for version, want := range map[int32]bool{1: false, 2: true, 3: true} {
		w := newWorld(1, 3, 0)
		l := NewLeader(0, LeaderOptions{TermStart: w.terms(w.nodes[2])}, w.nodes[2].log)
		l.Step(0, Opened{1})
		data := wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: peerwire.QuorumVersion})
		data = wire.Append(data, &peerwire.Extension{Version: version})
		l.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: data}})
		if k := l.links[1]; !k.native || k.canTransfer != want {
			t.Errorf("version %d: %v %v", version, k.native, k.canTransfer)
		}
	}
}

// TestTransferSaysWhetherToAvoidTheLeader: a leader that stops or gives way to a preferred server
// may lead again at any time. After an operator's transfer, or if its disk does not answer, it is to be
// avoided. A packet of a version that does not say so means the former.
func TestTransferSaysWhetherToAvoidTheLeader(t *testing.T) {
	for _, c := range []struct {
		e     TransferLeadership
		avoid bool
	}{
		{TransferLeadership{To: 1}, true},
		{TransferLeadership{To: 1, Stalled: true}, true},
		{TransferLeadership{To: 1, Leaving: true}, false},
		{TransferLeadership{To: 1, Planned: true}, false},
	} {
		w := servingWorld(false)
		l := w.nodes[2].leader
		link := l.servers[1].id
		l.Step(w.now, c.e)
		r := l.Ready()
		if h := named(&r, link); h == nil || h.Avoid != c.avoid || r.Successor.Avoid != c.avoid {
			t.Errorf("%+v: %+v, %+v", c.e, h, r.Successor)
		}
	}
	var h peerwire.Handover
	for data, want := range map[string]bool{"\x00\x00\x00\x00\x00\x00\x00\x02": false, "\x00\x00\x00\x00\x00\x00\x00\x02\x01": true} {
		if err := wire.Decode([]byte(data), &h); err != nil || h.Leader != 2 || h.Avoid != want {
			t.Errorf("%x: %+v, %v", data, h, err)
		}
	}
}

// TestFit: a learner is fit to lead since its first heartbeat while it serves, and anew after each
// silence, late ACK or sleep of the leader.
func TestFit(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	at := w.now
	pass := func(ms int64) {
		for end := at + ms; at < end; {
			at += l.opt.HeartbeatMS
			for _, k := range l.order {
				k.heard = at
			}
			l.Step(at, Tick{})
			l.Ready()
		}
	}
	pass(1000)
	if fit := l.FitMS(1); fit < 800 || fit > 1100 {
		t.Errorf("fit for %d ms after 1 s", fit)
	}
	if l.FitMS(4) != 0 || l.FitMS(3) != 0 || l.FitMS(9) != 0 {
		t.Error("an observer, the leader or a stranger is fit")
	}
	for what, unfit := range map[string]func(){
		"a late ACK": func() {
			z, _ := l.NextZxid()
			l.Step(at, Propose{w.txn(z)})
			acknowledge(l, at, 2, z)
			pass(transferMax + 200)
			acknowledge(l, at, 1, z)
		},
		"silence": func() {
			at += l.opt.LeaseMS + 1
			l.Step(at, Tick{})
		},
		"sleep": func() { l.Step(at, Slept{MS: 10}) },
	} {
		pass(1000)
		unfit()
		if fit := l.FitMS(1); fit != 0 {
			t.Errorf("fit for %d ms after %s", fit, what)
		}
		pass(500)
		if fit := l.FitMS(1); fit == 0 || fit > 500 {
			t.Errorf("fit for %d ms, 500 ms after %s", fit, what)
		}
	}
	l.Step(at, Closed{l.servers[1].id, "gone"})
	if l.FitMS(1) != 0 {
		t.Error("a learner that is gone is fit")
	}
}
