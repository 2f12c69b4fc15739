package zab

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// behindMaster returns a world of three voters led by server 3 and an observer that server 1 serves.
func behindMaster(t *testing.T, set func(*world)) (w *world, master, leader, o *node) {
	t.Helper()
	w = newWorld(1, 3, 1)
	w.masters = true
	if set != nil {
		set(w)
	}
	master, leader, o = w.nodes[0], w.nodes[2], w.nodes[3]
	w.lead(leader)
	w.join(master, leader)
	w.join(w.nodes[1], leader)
	w.settle()
	w.joinAt(o, master, leader)
	w.settle()
	if !o.serving || w.wrong != "" {
		t.Fatalf("the observer does not serve: %s\n%s", w.wrong, strings.Join(w.output, "\n"))
	}
	return w, master, leader, o
}

// TestManyTransactionsPassAMaster: the follower passes on every transaction, also while its log in memory drops old ones.
func TestManyTransactionsPassAMaster(t *testing.T) {
	w, _, leader, o := behindMaster(t, nil)
	for range 3 * KeepMin {
		w.propose(leader)
		w.settle()
	}
	if w.wrong != "" || len(o.tree) != 3*KeepMin {
		t.Errorf("the observer has %d transactions; %s", len(o.tree), w.wrong)
	}
}

// TestMasterConfirmsTouches: a native observer hears that a session was confirmed when the leader has confirmed it to the
// observer's master, and not before.
func TestMasterConfirmsTouches(t *testing.T) {
	w, master, leader, o := behindMaster(t, nil)
	w.pass(200)
	w.settle()
	w.step(o, Touched{Sessions: []peerwire.TouchedSession{{Session: 7, TimeoutMS: 1000}}, Token: 5})
	touched := func() bool {
		for _, in := range leader.inputs {
			for _, s := range in.Touched {
				if s.Session == 7 {
					return true
				}
			}
		}
		return false
	}
	for range 10 {
		if o.confirmed == 5 && !touched() {
			t.Fatal("the touch was confirmed before the leader had it")
		}
		w.pass(50)
		for _, c := range w.links {
			w.deliver(c, true)
			w.deliver(c, false)
		}
	}
	w.pass(500)
	w.settle()
	if !touched() || o.confirmed != 5 {
		t.Errorf("touched %v, confirmed %d; %v", touched(), o.confirmed, master.learner.Observers())
	}
}

// TestMasterRefuses: a follower that serves observers closes links that break the protocol, with a reason.
func TestMasterRefuses(t *testing.T) {
	info := func(id int64) []byte {
		return wire.Append(nil, &peerwire.LearnerInfo{Server: peerwire.NoServer, Version: peerwire.QuorumVersion, ConfigVersion: id})
	}
	nine := func() *peerwire.QuorumPacket {
		return &peerwire.QuorumPacket{Type: peerwire.PacketObserverInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 9, Version: peerwire.QuorumVersion})}
	}
	for why, packets := range map[string][]*peerwire.QuorumPacket{
		"is a follower":                             {{Type: peerwire.PacketFollowerInfo}},
		"cannot be read":                            {{Type: peerwire.PacketObserverInfo, Data: []byte{1}}},
		"not possible behind":                       {{Type: peerwire.PacketObserverInfo, Data: info(0)}},
		"sent PING before it was synchronised":      {{Type: peerwire.PacketPing}},
		"sent REQUEST before it was synchronised":   {{Type: peerwire.PacketRequest}},
		"acknowledged an epoch before one was sent": {{Type: peerwire.PacketAckEpoch, Data: wire.Append(nil, &peerwire.EpochAck{})}},
		"later than epoch 1 of this server's leader": {{Type: peerwire.PacketObserverInfo, Zxid: wire.MakeZxid(9, 0),
			Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 9, Version: peerwire.QuorumVersion})}},
		"newer than": {{Type: peerwire.PacketObserverInfo,
			Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 9, Version: peerwire.QuorumVersion, ConfigVersion: 1 << 40})}},
		"claims the id 3":               {{Type: peerwire.PacketObserverInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 3, Version: peerwire.QuorumVersion})}},
		"claims the id 1":               {{Type: peerwire.PacketObserverInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: peerwire.QuorumVersion})}},
		"of the protocol":               {{Type: peerwire.PacketObserverInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 9, Version: peerwire.QuorumVersion - 1})}},
		"sent OBSERVERINFO twice":       {nine(), nine()},
		"epoch that cannot be read":     {nine(), {Type: peerwire.PacketAckEpoch, Data: []byte{1}}},
		"history 0x200000000 of":        {nine(), {Type: peerwire.PacketAckEpoch, Zxid: wire.MakeZxid(2, 0), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1})}},
		"of epoch 2, which epoch 1":     {nine(), {Type: peerwire.PacketAckEpoch, Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 2})}},
		"of epoch -2":                   {nine(), {Type: peerwire.PacketAckEpoch, Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: -2})}},
		"history 0xffffffffffffffff of": {nine(), {Type: peerwire.PacketAckEpoch, Zxid: -1, Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1})}},
	} {
		w, master, _, o := behindMaster(t, nil)
		master.learner.Step(w.now, Opened{99})
		for _, p := range packets {
			master.learner.Step(w.now, Received{99, p})
		}
		var text []string
		r := master.learner.Ready()
		for _, h := range r.Observations {
			text = append(text, h.String())
		}
		if !strings.Contains(strings.Join(text, " "), why) || len(r.Close) != 1 || r.Close[0] != 99 || r.GiveUp != "" {
			t.Errorf("%q: closed %v, reported %q", why, r.Close, text)
		}
		if n := len(master.learner.Observers()); n != 1 || !o.serving {
			t.Errorf("%q: %d observers", why, n)
		}
	}
}

// TestMasterRefusesAfterTheStart: the same, from an observer that serves, and from one that does not yet.
func TestMasterRefusesAfterTheStart(t *testing.T) {
	for _, c := range []struct {
		packet  *peerwire.QuorumPacket
		serving bool
		why     string // empty: allowed
	}{
		{&peerwire.QuorumPacket{Type: peerwire.PacketRequest, Data: []byte{1}}, true, "request that cannot be read"},
		{&peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Data: []byte{1}}, true, "revalidation that cannot be read"},
		{&peerwire.QuorumPacket{Type: peerwire.PacketPing, Data: []byte{1}}, true, "in a way that cannot be read"},
		{&peerwire.QuorumPacket{Type: peerwire.PacketRequest, Data: wire.Append(nil, &peerwire.ForwardedRequest{})}, false, "request before it was told to serve"},
		{&peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Data: wire.Append(nil, &peerwire.Revalidation{})}, false, "revalidation before it was told to serve"},
		{&peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Data: wire.Append(nil, &peerwire.Revalidation{Session: 5})}, true, ""},
		{&peerwire.QuorumPacket{Type: peerwire.PacketFitness}, true, ""},
		{&peerwire.QuorumPacket{Type: 99}, true, "packet 99, which is ignored"},
	} {
		w, master, _, _ := behindMaster(t, nil)
		r := master.learner
		k := r.master.servers[4]
		if !c.serving {
			k.state = linkSynced
		}
		r.Ready()
		r.Step(w.now, Received{k.id, c.packet})
		out := r.Ready()
		ignored := c.why == "" || strings.Contains(c.why, "ignored")
		if said := fmt.Sprint(out.Observations); !strings.Contains(said, c.why) || len(out.Close) == 0 != ignored || out.GiveUp != "" {
			t.Errorf("%v, serving %v: want %q, closed %v, said %s", c.packet.Type, c.serving, c.why, out.Close, said)
		}
		if c.why == "" && c.packet.Type == peerwire.PacketRevalidate {
			if len(out.Send) != 1 || out.Send[0].Packet.Zxid != k.origin().Zxid() || len(out.Inputs) != 1 || out.Inputs[0].Server != 4 || out.Inputs[0].Revalidation.Session != 5 {
				t.Errorf("the question is passed on as %+v, inputs %+v", out.Send, out.Inputs)
			}
		}
	}
}

// TestMasterAcceptsTheHistoryOfItsEpoch: an observer may have adopted the epoch of the leader already, or have promised it before, or have none.
func TestMasterAcceptsTheHistoryOfItsEpoch(t *testing.T) {
	for _, current := range []int32{peerwire.NoEpoch, 0, 1} {
		w, master, _, _ := behindMaster(t, nil)
		r := master.learner
		r.Step(w.now, Opened{99})
		r.Step(w.now, Received{99, &peerwire.QuorumPacket{Type: peerwire.PacketObserverInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 9, Version: peerwire.QuorumVersion})}})
		r.Step(w.now, Received{99, &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: current})}})
		if out := r.Ready(); len(out.Close) != 0 || len(r.Observers()) != 2 {
			t.Errorf("epoch %d: closed %v, %v", current, out.Close, out.Observations)
		}
	}
}

// TestMasterDropsSilentObservers: an observer that answers no ping is disconnected after syncLimit.
func TestMasterDropsSilentObservers(t *testing.T) {
	w, master, _, o := behindMaster(t, nil)
	o.learner = nil // it reads nothing any more
	for range 60 {
		w.pass(100)
		w.settle()
	}
	if n := len(master.learner.Observers()); n != 0 || !strings.Contains(strings.Join(w.output, " "), "observer 4 is disconnected: silent for") {
		t.Errorf("%d observers\n%s", n, strings.Join(w.output, "\n"))
	}
}

// TestObserverLeavesItsMaster: an observer whose tree differs tells its master, which ends the link unless its own tree is in doubt too, or the leader
// is an older one, which compares no trees. An older master, and a leader, are told nothing.
func TestObserverLeavesItsMaster(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(o, master *Learner)
		leaves bool
	}{
		"a right master": {func(_, _ *Learner) {}, true},
		"a master that differs": {func(_, master *Learner) {
			master.Step(master.now, TreeReport{TreeReport: peerwire.TreeReport{Differs: 5}})
		}, false},
		"a master that was found wrong": {func(_, master *Learner) {
			master.Step(master.now, TreeReport{TreeReport: peerwire.TreeReport{Wrong: true}})
		}, false},
		"a master that was confirmed": {func(_, master *Learner) {
			master.Step(master.now, TreeReport{TreeReport: peerwire.TreeReport{Differs: 5}})
			master.Step(master.now, TreeReport{})
		}, true},
		"an older leader": {func(_, master *Learner) { master.extension = peerwire.ExtensionDigest - 1 }, false},
		"an older master": {func(o, _ *Learner) { o.extension = peerwire.ExtensionDigest - 1 }, false},
		"the leader":      {func(o, _ *Learner) { o.opt.Master = o.opt.Leader }, false},
	} {
		w, master, _, o := behindMaster(t, nil)
		c.set(o.learner, master.learner)
		w.step(o, LeaveMaster{})
		w.settle()
		if leaves := len(master.learner.Observers()) == 0 && o.gaveUp != ""; leaves != c.leaves || master.learner.step != following {
			t.Errorf("%s: %v, %q", name, leaves, o.gaveUp)
		}
	}
	w, master, _, _ := behindMaster(t, nil)
	link := master.learner.master.order[0].id
	master.learner.Step(w.now, Received{link, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Data: wire.Append(nil, &peerwire.TreeReport{})}})
	if r := master.learner.Ready(); len(r.Close) > 0 {
		t.Error("the link ends although the report says nothing")
	}
	master.learner.Step(w.now, Received{link, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Data: []byte{0}}})
	if r := master.learner.Ready(); len(r.Close) != 1 || r.GiveUp != "" {
		t.Errorf("after a packet that cannot be read: closes %v, ends %q", r.Close, r.GiveUp)
	}
}

// TestMasterKeepsAnObserverForTheLimit: an observer stays that has been silent for exactly syncLimit, and leaves after that.
func TestMasterKeepsAnObserverForTheLimit(t *testing.T) {
	_, master, _, _ := behindMaster(t, nil)
	r := master.learner
	k := r.master.order[0]
	k.heard = r.now - r.opt.SyncLimit*r.opt.TickMS
	if r.master.checkLinks(); len(r.Observers()) != 1 {
		t.Error("disconnected at the limit")
	}
	k.heard--
	if r.master.checkLinks(); len(r.Observers()) != 0 {
		t.Error("connected after the limit")
	}
}

// TestMasterForgetsClosedLinks: an observer whose connection has ended is not counted any more.
func TestMasterForgetsClosedLinks(t *testing.T) {
	w, master, _, o := behindMaster(t, nil)
	master.learner.Step(w.now, Closed{Link: o.learner.opt.Link, Why: "end of file"})
	if all := master.learner.Observers(); len(all) != 0 {
		t.Errorf("it still serves %v", all)
	}
}

// TestMasterLimitsSynchronisations: a follower synchronises as many observers at a time as a leader does, and closes the links of more.
func TestMasterLimitsSynchronisations(t *testing.T) {
	for how, limit := range map[SyncMode]int{Diff: diffMax, Trunc: diffMax, Snap: snapMax} {
		for _, busy := range []int{limit - 1, limit} {
			_, master, _, _ := behindMaster(t, nil)
			r := master.learner
			k := r.master.order[0]
			for range busy {
				r.master.order = append(r.master.order, &observer{state: linkSyncing, how: how})
			}
			h := r.master.history()
			r.master.deliver(k, &h, plan{how: how})
			rd := r.Ready()
			if refused := len(rd.Close) == 1 && rd.Close[0] == k.id; refused != (busy == limit) || refused == (len(rd.Send) > 0) {
				t.Errorf("%v beside %d others: closes %v, sends %d packets", how, busy, rd.Close, len(rd.Send))
			}
		}
	}
}
