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

// configuration returns a membership of the named servers. Those after the character | are
// observers.
func configuration(version wire.Zxid, servers string) *ensemble.Membership {
	voters, observers, _ := strings.Cut(servers, "|")
	d := ensemble.Definition{}
	add := func(ids string, role ensemble.Role) {
		for _, f := range strings.Fields(ids) {
			i := num(f)
			d.Servers = append(d.Servers, ensemble.Server{
				ID: ensemble.ServerID(i), Role: role, Addresses: []ensemble.Address{{Host: "h", QuorumPort: i, ElectionPort: 100 + i}},
			})
		}
	}
	add(voters, ensemble.Participant)
	add(observers, ensemble.Observer)
	m, err := ensemble.New(d)
	if err != nil {
		panic(err)
	}
	return m.WithVersion(int64(version))
}

// reconfiguration returns the transaction that proposes a membership.
func reconfiguration(zxid, servers string) *record.Txn {
	m := configuration(zx(zxid), servers)
	return &record.Txn{
		TxnHeader: record.TxnHeader{Session: 1, Zxid: zx(zxid), Type: wire.OpReconfig},
		Body:      &record.SetDataTxn{Path: "/zookeeper/config", Data: []byte(m.String()), Version: 1},
	}
}

// betweenTwo returns leader 3 at the start of its term. Its log contains the reconfiguration from 1 2 3
// to 3 4 5, and it is not known whether that was committed.
func betweenTwo(t *testing.T) *Leader {
	t.Helper()
	g := logOf(t, "1.1", "1.2")
	l := NewLeader(0, LeaderOptions{TermStart: TermStart{
		ID: 3, Accepted: 1, Current: 1, Committed: configuration(zx("1.0"), "1 2 3"), LastSeen: configuration(zx("1.2"), "3 4 5"),
		TickMS: 1000, InitLimit: 10, SyncLimit: 5,
	}}, g)
	l.Step(0, Synced{g.Last(), l.generation})
	return l
}

func hello(l *Leader, id ensemble.ServerID) {
	l.Step(0, Opened{LinkID(id)})
	l.Step(0, Received{LinkID(id), &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion})}})
}

func promise(l *Leader, id ensemble.ServerID) {
	l.Step(0, Received{LinkID(id), &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: zx("1.2"), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1})}})
}

func ack(l *Leader, zxid string, ids ...LinkID) {
	for _, id := range ids {
		l.Step(l.now, Received{id, pack(peerwire.PacketAck, zxid, nil)})
	}
}

// TestDiscoveryAsksBothConfigurations: both quorums of discovery are quorums of the committed and of
// the proposed configuration, in whatever order the servers come. After the second one Joined is set once.
func TestDiscoveryAsksBothConfigurations(t *testing.T) {
	for _, order := range [][]ensemble.ServerID{{4, 5, 1}, {1, 2, 4}} {
		l := betweenTwo(t)
		hello(l, order[0])
		hello(l, order[1])
		if out := l.Ready(); out.SaveAccepted != 0 || l.Epoch() != 0 {
			t.Fatalf("%v: servers of one configuration fix the epoch", order)
		}
		hello(l, order[2])
		if out := l.Ready(); out.SaveAccepted != 2 || out.Joined {
			t.Fatalf("%v: quorums of both configurations have named their epochs: %+v", order, out)
		}
		l.Step(0, Saved{Accepted: 2, Generation: l.generation})
		promise(l, order[0])
		promise(l, order[1])
		if out := l.Ready(); out.Joined || out.SaveCurrent != 0 {
			t.Fatalf("%v: promises of servers of one configuration end discovery", order)
		}
		promise(l, order[2])
		if out := l.Ready(); !out.Joined || out.SaveCurrent != 2 {
			t.Fatalf("%v: quorums of both configurations have promised: %+v", order, out)
		}
	}
}

// TestCommittedByTheNewConfigurationAlone: leader 3 has committed the reconfiguration to 3 4 5 and a write
// that only 3 and 4 have, and has died before anybody was told. A server of the old configuration that has
// the reconfiguration in its log does not take the write from 4.
func TestCommittedByTheNewConfigurationAlone(t *testing.T) {
	l := betweenTwo(t)
	l.opt.ID, l.self = 1, 1
	hello(l, 2)
	hello(l, 4)
	hello(l, 5)
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	promise(l, 2)
	l.Step(0, Received{4, &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: zx("1.3"), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1})}})
	promise(l, 5)
	out := l.Ready()
	if out.Joined || out.SaveCurrent != 0 || !slices.Contains(out.Close, LinkID(4)) {
		t.Errorf("the term goes on without the write: %+v", out)
	}
	for _, m := range out.Send {
		if m.Packet.Type == peerwire.PacketTrunc {
			t.Error("the write is cut off")
		}
	}
}

// TestEstablishedLeaderWithoutAVote: a new leader that completes a reconfiguration in which it has no vote
// commits its log, tells the learners, and ends its term.
func TestEstablishedLeaderWithoutAVote(t *testing.T) {
	l := betweenTwo(t)
	l.opt.ID, l.self = 1, 1
	l.log.Configure(l.committed)
	l.log.Propose(l.lastSeen)
	for _, id := range []ensemble.ServerID{2, 4, 5} {
		hello(l, id)
	}
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	for _, id := range []ensemble.ServerID{2, 4, 5} {
		promise(l, id)
	}
	l.Step(0, Saved{Current: 2, Generation: l.generation})
	l.Ready()
	ack(l, "2.0", 2, 4, 5)
	out := l.Ready()
	_, proposes := l.NextZxid()
	told := 0
	for _, m := range out.Send {
		if m.Packet.Type == peerwire.PacketUpToDate {
			told++
		}
	}
	if out.Established == nil || !strings.Contains(out.GiveUp, "no vote") || told != 3 || proposes {
		t.Errorf("%+v, told %d", out, told)
	}
	if committed, proposed := l.log.Memberships(); committed.Version() != int64(zx("1.2")) || proposed != nil {
		t.Errorf("committed %v, proposed %v", committed, proposed)
	}
}

// TestMembershipsFollowTheLog: the proposed membership is that of the last reconfiguration in the log.
func TestMembershipsFollowTheLog(t *testing.T) {
	start := func(reconfigurations ...string) *Log {
		g := NewLog(0, KeepMin)
		g.Configure(configuration(0, "1 2 3"))
		for _, z := range reconfigurations {
			if err := g.Append(reconfiguration(z, "1 2")); err != nil {
				t.Fatal(err)
			}
		}
		return g
	}
	append := func(g *Log, z string) {
		if err := g.Append(reconfiguration(z, "1 2 3 4")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name                string
		do                  func() *Log
		committed, proposed string
	}{
		{"nothing", func() *Log { return start() }, "0", ""},
		{"one", func() *Log { return start("1.1") }, "0", "1.1"},
		{"a second one, so the first is committed", func() *Log { return start("1.1", "1.2") }, "1.1", "1.2"},
		{"committed", func() *Log { g := start("1.1"); g.Configure(configuration(zx("1.1"), "1 2")); return g }, "1.1", ""},
		{"an older one is ignored", func() *Log {
			g := start()
			g.Configure(configuration(zx("2.1"), "1 2"))
			g.Configure(configuration(zx("1.9"), "1 2"))
			append(g, "1.1")
			return g
		}, "2.1", ""},
		{"cut off", func() *Log { g := start("1.1"); g.truncate(0); return g }, "0", ""},
		{"cut behind", func() *Log { g := start("1.1"); append(g, "1.2"); g.truncate(zx("1.1")); return g }, "1.1", ""},
		{"cut off, which the disk refuses", func() *Log {
			g := start("1.1")
			g.cut(0, 2)
			g.Refuse(Refused{Zxid: zx("1.1"), Generation: 1})
			return g
		}, "0", "1.1"},
		{"cut off and another one committed, which the disk refuses", func() *Log {
			g := start("1.1")
			g.cut(0, 2)
			g.Configure(configuration(zx("2.0"), "1 2"))
			g.Refuse(Refused{Zxid: zx("1.1"), Generation: 1})
			return g
		}, "2.0", ""},
		{"not durable", func() *Log { g := start("1.1"); g.Refuse(Refused{Generation: 1}); return g }, "0", ""},
		{"replaced by a snapshot", func() *Log { g := start("1.1"); g.install(zx("1.5"), nil, 2); return g }, "0", ""},
		{"in a snapshot", func() *Log {
			g := start()
			g.install(zx("1.5"), nil, 2)
			g.Propose(configuration(zx("1.3"), "1 2"))
			return g
		}, "0", "1.3"},
		{"an earlier one is ignored", func() *Log {
			g := start()
			g.Propose(configuration(zx("1.3"), "1 2"))
			g.Propose(configuration(zx("1.2"), "1 2 3"))
			return g
		}, "0", "1.3"},
		{"versions of epochs prove nothing", func() *Log {
			g := start()
			g.Propose(configuration(zx("1.0"), "1 2"))
			g.Propose(configuration(zx("2.0"), "1 2 3"))
			return g
		}, "0", "2.0"},
		{"not tracked", func() *Log { g := NewLog(0, KeepMin); append(g, "1.1"); return g }, "", ""},
	} {
		version := func(m *ensemble.Membership) wire.Zxid {
			if m == nil {
				return -1
			}
			return wire.Zxid(m.Version())
		}
		want := func(z string) wire.Zxid {
			switch z {
			case "":
				return -1
			case "0":
				return 0
			}
			return zx(z)
		}
		committed, proposed := c.do().Memberships()
		if version(committed) != want(c.committed) || version(proposed) != want(c.proposed) {
			t.Errorf("%s: committed %v, proposed %v", c.name, version(committed), version(proposed))
		}
	}
}

// TestBothConfigurationsAdoptTheHistory: if a new leader does not know whether a
// reconfiguration was committed, it needs a quorum of each configuration. The term then
// begins with the new one.
func TestBothConfigurationsAdoptTheHistory(t *testing.T) {
	for _, order := range [][]LinkID{{1, 2, 4}, {4, 5, 1}} {
		l := betweenTwo(t)
		for _, id := range []ensemble.ServerID{1, 2, 4, 5} {
			hello(l, id)
		}
		l.Step(0, Saved{Accepted: 2, Generation: l.generation})
		for _, id := range []ensemble.ServerID{1, 2, 4, 5} {
			promise(l, id)
		}
		i := slices.IndexFunc(l.ready.Send, func(m Message) bool { return m.Packet.Type == peerwire.PacketNewLeader })
		if text := string(l.Ready().Send[i].Packet.Data); text != configuration(zx("1.2"), "3 4 5").String() {
			t.Errorf("the term begins with %q", text)
		}
		l.Step(0, Saved{Current: 2, Generation: l.generation})
		ack(l, "2.0", order[:2]...)
		if l.Serving() {
			t.Fatalf("established by 3 and %v alone", order[:2])
		}
		ack(l, "2.0", order[2])
		out := l.Ready()
		if !l.Serving() || out.Established.Members.Version() != int64(zx("1.2")) || l.committed != out.Established.Members || l.lastSeen != nil {
			t.Errorf("%v: serving %v, %+v", order, l.Serving(), out.Established)
		}
	}
}

// reconfiguring returns leader 3 of the voters 1 2 3 and the observer 6. The servers 1 2 4 5 6 are
// synchronised and serve.
func reconfiguring(t *testing.T) *Leader {
	t.Helper()
	l := establishedLeader(t, 3, 2, configuration(zx("1.0"), "1 2 3 | 6"), logOf(t, "1.1", ""))
	for _, id := range []LinkID{1, 2, 4, 5} {
		greet(l, id, ensemble.ServerID(id), "1.1", false)
	}
	greet(l, 6, 6, "1.1", true)
	ack(l, "2.0", 1, 2, 4, 5, 6)
	l.Ready()
	return l
}

// offer proposes a transaction, which is at once durable on the leader.
func offer(l *Leader, x *record.Txn) {
	l.Step(l.now, Propose{x})
	l.Step(l.now, Synced{x.Zxid, l.generation})
}

// TestReconfigurationIsCommittedByBoth: from its proposal on, a reconfiguration and everything after it
// need a quorum of each membership; from its commit on, only of the new one. Each kind of learner is told
// by the packet for its kind.
func TestReconfigurationIsCommittedByBoth(t *testing.T) {
	for _, c := range []struct{ one, other LinkID }{{1, 4}, {4, 1}} {
		l := reconfiguring(t)
		offer(l, reconfiguration("2.1", "3 4 5 | 6"))
		offer(l, one("2.2"))
		ack(l, "2.2", c.one)
		if out := l.Ready(); len(out.Commit) != 0 {
			t.Fatalf("committed by 3 and %d alone", c.one)
		}
		ack(l, "2.1", c.other)
		out := l.Ready()
		want := "2.1"
		if c.one == 4 {
			want = "2.1 2.2" // 3 and 4 are a quorum of the new membership
		}
		if got := strings.Join(zxids(out.Commit), " "); got != want {
			t.Errorf("committed %s, want %s", got, want)
		}
		if len(out.Reconfigured) != 1 || out.Reconfigured[0].Leader != 3 || out.Reconfigured[0].Zxid != zx("2.1") || !l.Serving() {
			t.Errorf("%+v", out.Reconfigured)
		}
		for _, m := range out.Send {
			var a peerwire.Activation
			switch m.Packet.Type {
			case peerwire.PacketCommitActivate, peerwire.PacketInformActivate:
				if err := wire.Decode(m.Packet.Data, &a); err != nil || a.Leader != 3 || (m.Link == 6) != (m.Packet.Type == peerwire.PacketInformActivate) {
					t.Errorf("link %d: %v, leader %d, %v", m.Link, m.Packet, a.Leader, err)
				}
			case peerwire.PacketCommit, peerwire.PacketInform:
				if m.Packet.Zxid == zx("2.1") {
					t.Errorf("link %d: %v", m.Link, m.Packet)
				}
			}
		}
		ack(l, "2.2", 1, 2)
		if c.one == 1 && l.log.Applied() != zx("2.1") {
			t.Error("removed servers still decide")
		}
		ack(l, "2.2", 4)
		if l.log.Applied() != zx("2.2") {
			t.Error("a quorum of the new configuration does not decide")
		}
	}
}

// TestBothConfigurationsMustBeHeard: during a reconfiguration the leader gives up when a
// quorum of either membership is silent.
func TestBothConfigurationsMustBeHeard(t *testing.T) {
	for _, c := range []struct {
		heard   []LinkID
		serving bool
	}{{[]LinkID{1, 2}, false}, {[]LinkID{4, 5}, false}, {[]LinkID{1, 4}, true}} {
		l := reconfiguring(t)
		offer(l, reconfiguration("2.1", "3 4 5 | 6"))
		for _, k := range l.order {
			k.watched = 0 // this test does not check the time limit for acknowledgements
		}
		for now := int64(0); now <= 14_000; now += 500 {
			for _, id := range c.heard {
				l.Step(now, Received{id, pack(99, "0", nil)})
			}
			l.Step(now, Tick{})
		}
		if l.Serving() != c.serving {
			t.Errorf("heard from 3 and %v: serving %v", c.heard, l.Serving())
		}
	}
}

// TestRemovedLeaderDesignatesSuccessor: a leader without a vote in the new configuration names the new
// voter that has acknowledged most as its successor, tells all learners, and ends its term.
func TestRemovedLeaderDesignatesSuccessor(t *testing.T) {
	l := reconfiguring(t)
	offer(l, reconfiguration("2.1", "1 2 4 | 6"))
	offer(l, one("2.2"))
	ack(l, "2.2", 4)
	ack(l, "2.1", 1)
	ack(l, "2.1", 2)
	out := l.Ready()
	if len(out.Reconfigured) != 1 || out.Reconfigured[0].Leader != 4 || !strings.Contains(out.GiveUp, "server 4 leads") || len(out.Close) != 5 {
		t.Errorf("%+v, %q, closed %v", out.Reconfigured, out.GiveUp, out.Close)
	}
	told := 0
	for _, m := range out.Send {
		var a peerwire.Activation
		if m.Packet.Type != peerwire.PacketCommitActivate && m.Packet.Type != peerwire.PacketInformActivate {
			continue
		}
		if told++; wire.Decode(m.Packet.Data, &a) != nil || a.Leader != 4 {
			t.Errorf("link %d is told that %d leads", m.Link, a.Leader)
		}
	}
	if told != 5 {
		t.Errorf("%d were told", told)
	}
}

// TestNewLearnerGetsCommittedConfiguration: a learner that is synchronised during a
// reconfiguration gets the committed configuration, and the proposed one only with its
// commit. Otherwise it would count itself in a membership that may never be committed.
func TestNewLearnerGetsCommittedConfiguration(t *testing.T) {
	l := reconfiguring(t)
	offer(l, reconfiguration("2.1", "3 4 5 | 6"))
	l.Ready()
	greet(l, 7, 7, "1.1", false)
	for _, m := range l.Ready().Send {
		if m.Packet.Type == peerwire.PacketNewLeader && string(m.Packet.Data) != configuration(zx("1.0"), "1 2 3 | 6").String() {
			t.Errorf("NEWLEADER carries %q", m.Packet.Data)
		}
	}
}

// TestLeaseOfALeaderIsBounded: whatever lease a leader claims, it is not negative and not longer than half of syncLimit, and the
// leader's timeout is not shorter than silenceMin and not longer than syncLimit.
func TestLeaseOfALeaderIsBounded(t *testing.T) {
	for _, c := range []struct {
		leaseMS     int32
		lease, want int64
	}{{500, 500, 1000}, {700, 700, 1400}, {0, 0, 1000}, {-1 << 31, 0, 1000}, {1<<31 - 1, 2500, 5000}} {
		r := NewLearner(0, LearnerOptions{Link: 1, Leader: 3, TermStart: TermStart{
			ID: 1, Accepted: 1, Current: 1, Committed: newWorld(1, 3, 0).members, TickMS: 1000, InitLimit: 10, SyncLimit: 5,
		}}, logOf(t, "1.5", ""))
		data := wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})
		data = wire.Append(data, &peerwire.Extension{Version: peerwire.ExtensionVersion, LeaseMS: c.leaseMS})
		take(r, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: zx("2.0"), Data: data})
		r.Step(0, Saved{Accepted: 2, Generation: r.generation})
		take(r, pack(peerwire.PacketDiff, "1.5", nil), pack(peerwire.PacketNewLeader, "2.0", nil))
		carryDisk(r)
		take(r, pack(peerwire.PacketUpToDate, "0", nil))
		if got := r.leaderTimeout(); !r.Native() || got != c.want || r.silence.floor > 5000 || r.silence.floor < 0 {
			t.Errorf("lease %d: given up after %d ms, want %d", c.leaseMS, got, c.want)
		}
		if got := r.LeaseMS(); got != c.lease {
			t.Errorf("lease %d: %d, want %d", c.leaseMS, got, c.lease)
		}
	}
}

// TestPromotedObserversCount: an observer counts if the proposed membership gives it a vote and it is
// native. Otherwise a server that takes part as an observer does not count, even if it is a voter.
func TestPromotedObserversCount(t *testing.T) {
	for _, c := range []struct {
		server           ensemble.ServerID
		observer, native bool
		counts           bool
	}{
		{4, false, false, true},
		{4, true, true, true},
		{4, true, false, false},
		{2, true, true, false},
	} {
		l := betweenTwo(t)
		info := &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: c.server, Version: peerwire.QuorumVersion})}
		if c.observer {
			info.Type = peerwire.PacketObserverInfo
		}
		l.Step(0, Opened{1})
		l.Step(0, Received{1, info})
		l.linkOf(c.server).native = c.native
		if got := l.acksOf(c.server) != nil; got != c.counts {
			t.Errorf("%+v: counts %v", c, got)
		}
		if got := l.mayTakePart(c.server); got != c.counts {
			t.Errorf("%+v: may take part %v", c, got)
		}
	}
}

// TestLeaderUnderAnotherMembership: a leader goes on if it has a vote and the same quorum address.
func TestLeaderUnderAnotherMembership(t *testing.T) {
	l := reconfiguring(t)
	for text, want := range map[string]bool{
		"server.3=h:3:103:participant":         true,
		"server.3=h:3:104:participant;9":       true,
		"server.3=h:4:103:participant":         false,
		"server.3=g:3:103:participant":         false,
		"server.3=h:3:103|i:3:103:participant": false,
		"server.3=h:3:103:observer":            false,
		"server.4=h:3:103:participant":         false,
	} {
		m, err := ensemble.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Leads(m); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestQuorumOfANewMembership: only this leader and followers that were told to serve count, whether or not
// they have a vote now.
func TestQuorumOfANewMembership(t *testing.T) {
	l := reconfiguring(t)
	greet(l, 7, 7, "1.1", false)
	for servers, want := range map[string]bool{"3": true, "3 4": true, "3 4 7": true, "3 7": false, "3 6": false, "3 8 9": false, "4 5": true} {
		if got := l.QuorumOf(configuration(0, servers)); got != want {
			t.Errorf("%s: %v", servers, got)
		}
	}
	ack(l, "2.0", 7)
	if !l.QuorumOf(configuration(0, "3 7")) {
		t.Error("a server that has caught up does not count")
	}
}

// TestLeaderSavesTheProposal: a leader makes a proposed membership durable, too.
func TestLeaderSavesTheProposal(t *testing.T) {
	l := reconfiguring(t)
	offer(l, one("2.1"))
	if out := l.Ready(); out.LastSeen != nil {
		t.Error("a write proposes a membership")
	}
	offer(l, reconfiguration("2.2", "3 4 5"))
	if out := l.Ready(); out.LastSeen == nil || out.LastSeen.Version() != int64(zx("2.2")) {
		t.Errorf("%v", out.LastSeen)
	}
	l.log.Configure(l.committed)
	l.log.Propose(l.lastSeen)
	ack(l, "2.2", 1, 2, 4, 5)
	if committed, proposed := l.log.Memberships(); committed.Version() != int64(zx("2.2")) || proposed != nil {
		t.Errorf("committed %v, proposed %v", committed, proposed)
	}
}

// TestObserverIsNotDesignated: an observer that the new membership makes a voter is not named as the next
// leader, because it does not acknowledge.
func TestObserverIsNotDesignated(t *testing.T) {
	l := reconfiguring(t)
	l.lastSeen = configuration(zx("2.1"), "1 6")
	l.linkOf(1).durable, l.linkOf(6).durable = zx("2.1"), zx("2.2")
	if got := l.designate(zx("2.1")); got != 1 {
		t.Errorf("names server %d", got)
	}
}

// TestMembersOfBoth: the servers of the committed and of the proposed membership are members.
func TestMembersOfBoth(t *testing.T) {
	l := betweenTwo(t)
	for id, want := range map[ensemble.ServerID]bool{1: true, 3: true, 5: true, 6: false} {
		if got := l.isMember(id); got != want {
			t.Errorf("server %d: %v", id, got)
		}
	}
}
