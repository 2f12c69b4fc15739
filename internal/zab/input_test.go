package zab

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// TestLeaderRefuses: a packet that breaks the protocol closes the learner's link, with a
// reason; the leader goes on.
func TestLeaderRefuses(t *testing.T) {
	info := func(id ensemble.ServerID, version int32, config int64) []byte {
		return wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: version, ConfigVersion: config})
	}
	hello := func(data []byte, zxid wire.Zxid) *peerwire.QuorumPacket {
		return &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: zxid, Data: data}
	}
	for _, c := range []struct {
		why    string
		greet  bool // the packet comes after a correct introduction
		packet *peerwire.QuorumPacket
	}{
		{"first packet cannot be read", false, hello([]byte{1, 2, 3}, 0)},
		{"protocol", false, hello(info(1, 0, 0), 0)},
		{"this server's id", false, hello(info(3, peerwire.QuorumVersion, 0), 0)},
		{"no server can have", false, hello(info(1, peerwire.QuorumVersion, 0), math.MinInt64)},
		{"no server can have", false, hello(info(1, peerwire.QuorumVersion, 0), wire.MakeZxid(EpochMax+1, 0))},
		{"too far ahead of epoch 1", false, hello(info(1, peerwire.QuorumVersion, 0), wire.MakeZxid(2+epochAhead, 0))},
		{"newer than", false, hello(info(1, peerwire.QuorumVersion, math.MaxInt64), 0)},
		{"before one was sent", false, pack(peerwire.PacketAckEpoch, "0", nil)},
		{"before anything was sent", false, pack(peerwire.PacketAck, "2.1", nil)},
		{"before it was synchronised", false, pack(peerwire.PacketRequest, "0", nil)},
		{"before it was synchronised", false, pack(99, "0", nil)},
		{"twice", true, hello(info(1, peerwire.QuorumVersion, 0), 0)},
		{"never proposed", true, pack(peerwire.PacketAck, "2.9", nil)},
		{"cannot be read", true, pack(peerwire.PacketRequest, "0", nil)},
		{"cannot be read", true, pack(peerwire.PacketRevalidate, "0", nil)},
		{"was not sent", true, pack(peerwire.PacketPing, "0", nil)},
		{"cannot serve", true, pack(peerwire.PacketRelay, "0", nil)},
		{"cannot serve", true, &peerwire.QuorumPacket{Type: peerwire.PacketRelay, Zxid: peerwire.Origin{Server: 4}.Zxid()}},
		{"", true, pack(99, "0", nil)},
		{"", true, pack(peerwire.PacketAck, "1.1", nil)},
	} {
		l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.1", ""))
		if c.greet {
			greet(l, 1, 1, "1.1", false)
			l.Step(0, Received{1, pack(peerwire.PacketAck, "2.0", nil)})
		} else {
			l.Step(0, Opened{1})
		}
		l.Ready()
		l.Step(0, Received{1, c.packet})
		out := l.Ready()
		said := fmt.Sprint(out.Observations)
		if refused := len(out.Close) == 1; refused != (c.why != "") || !strings.Contains(said, c.why) || !l.Serving() {
			t.Errorf("%v: want %q, closed %v, said %s", c.packet, c.why, out.Close, said)
		}
	}
}

// TestTwoServersWithOneID: while a server answers, a second server with its id is refused. The first refusal may be of
// the same server, whose old connection is not closed yet. Once the old connection is heard from later, there are two
// servers. Once the first one is silent, the newer connection counts.
func TestTwoServersWithOneID(t *testing.T) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.1", ""))
	greet(l, 1, 1, "1.1", false)
	l.Step(0, Received{1, pack(peerwire.PacketAck, "2.0", nil)})
	l.linkOf(1).native = true
	l.Ready()
	claim := func(at int64, link LinkID, why string) {
		t.Helper()
		l.now = at
		greet(l, link, 1, "1.1", false)
		out := l.Ready()
		if len(out.Close) != 1 || out.Close[0] != link || l.linkOf(1).id != 1 || !strings.Contains(fmt.Sprint(out.Observations), why) {
			t.Errorf("at %d closed %v: %v", at, out.Close, out.Observations)
		}
		for _, o := range out.Observations {
			if lost, ok := o.(LearnerLost); ok && lost.Returns == strings.Contains(why, "two servers") {
				t.Errorf("at %d: %+v", at, lost)
			}
		}
	}
	claim(100, 2, "former connection is not closed yet")
	l.linkOf(1).heard = 150 // what the old connection sent before it was closed
	claim(349, 3, "former connection is not closed yet")
	l.linkOf(1).heard = 350
	claim(400, 4, "two servers have this myid")
	l.now = 550
	greet(l, 5, 1, "1.1", false)
	if out := l.Ready(); len(out.Close) != 1 || out.Close[0] != 1 || l.linkOf(1).id != 5 {
		t.Errorf("closed %v: %v", out.Close, out.Observations)
	}
}

// TestNewerConnectionCounts checks that a newer connection of a server replaces an older one that has not
// begun to serve.
func TestNewerConnectionCounts(t *testing.T) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.1", ""))
	greet(l, 1, 1, "1.1", false)
	greet(l, 2, 1, "1.1", false)
	if out := l.Ready(); len(out.Close) != 1 || out.Close[0] != 1 || l.linkOf(1).id != 2 {
		t.Errorf("closed %v", out.Close)
	}
	l.Step(0, Received{1, pack(peerwire.PacketAck, "2.0", nil)}) // a packet of the old connection that is read late
	if l.linkOf(1).state != linkSyncing {
		t.Error("a packet of the closed connection has an effect")
	}
}

// TestStrangersDoNotRaiseTheEpoch: one message of a server that is not a member must not use
// up epochs. A member's message raises the epoch, because a member never follows a leader
// in an epoch that it has already promised.
func TestStrangersDoNotRaiseTheEpoch(t *testing.T) {
	for server, want := range map[ensemble.ServerID]wire.Epoch{9: 2, 2: 1001} {
		l := NewLeader(0, LeaderOptions{TermStart: TermStart{
			ID: 3, Accepted: 1, Current: 1, Committed: newWorld(1, 3, 0).members, TickMS: 1000, InitLimit: 10, SyncLimit: 5,
		}}, logOf(t, "1.1", ""))
		for i, id := range []ensemble.ServerID{server, 1} {
			accepted := wire.MakeZxid(1000, 0)
			if id == 1 {
				accepted = wire.MakeZxid(1, 0)
			}
			l.Step(0, Opened{LinkID(i + 1)})
			l.Step(0, Received{LinkID(i + 1), &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: accepted,
				Data: wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion})}})
		}
		if got := l.Ready().SaveAccepted; got != want {
			t.Errorf("with server %d the epoch becomes %d, want %d", server, got, want)
		}
	}
}

// TestEpochsAreNotUsedUp: in one term a member can raise the epoch by at most epochAhead, so it takes
// tens of thousands of terms to use up all epochs in a member's name. A member that is farther
// ahead joins in a later term.
func TestEpochsAreNotUsedUp(t *testing.T) {
	const week, step = 7 * 24 * 3600 / 10, EpochMax / 30_000
	above := map[ensemble.ServerID]wire.Epoch{}
	raises := func(id ensemble.ServerID, accepted wire.Epoch) bool {
		l := NewLeader(0, LeaderOptions{Above: above[id], TermStart: TermStart{
			ID: 3, Accepted: 7, Current: 1, Committed: newWorld(1, 3, 0).members, TickMS: 1000, InitLimit: 10, SyncLimit: 5,
		}}, logOf(t, "1.1", ""))
		l.Step(0, Opened{1})
		l.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: wire.MakeZxid(accepted, 0),
			Data: wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion})}})
		out := l.Ready()
		above[id] = max(above[id], out.Above)
		return out.SaveAccepted == accepted+1
	}
	if !raises(1, 7+week) {
		t.Errorf("a member that is %d epochs ahead does not raise the epoch", week)
	}
	for terms := wire.Epoch(1); !raises(1, EpochMax/100); terms++ {
		if above[1] > 7+terms*step || above[1] < 7+terms*week {
			t.Fatalf("after %d terms the next epoch must be above %d", terms, above[1])
		}
	}
	if raises(9, EpochMax/100) || above[9] != 0 {
		t.Error("a server that is no member raises the epoch")
	}
}

// TestTooManyObservers: observers beyond the limit are refused; voters are not.
func TestTooManyObservers(t *testing.T) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.1", ""))
	for i := range LinkID(12) {
		greet(l, 10+i, ensemble.ServerID(20+i), "0", true)
	}
	greet(l, 1, 1, "0", false)
	out := l.Ready()
	if len(out.Close) != 2 || l.linkOf(1) == nil {
		t.Errorf("closed %v", out.Close)
	}
}

// TestLearnerThatDoesNotAcknowledgeIsClosed checks that the link of a learner that acknowledges nothing
// is closed, whatever else the learner sends.
func TestLearnerThatDoesNotAcknowledgeIsClosed(t *testing.T) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.1", ""))
	for i := range LinkID(2) {
		greet(l, i+1, ensemble.ServerID(i+1), "1.1", false)
		l.Step(0, Received{i + 1, pack(peerwire.PacketAck, "2.0", nil)})
	}
	l.Step(0, Propose{one("2.1")})
	l.Step(0, Received{2, pack(peerwire.PacketAck, "2.1", nil)})
	for now := int64(0); now < 12_000; now += 500 {
		for i := range LinkID(2) {
			l.Step(now, Received{i + 1, pack(99, "0", nil)})
		}
		l.Step(now, Tick{})
	}
	if l.linkOf(1) != nil || l.linkOf(2) == nil || !l.Serving() {
		t.Errorf("1: %v, 2: %v", l.linkOf(1), l.linkOf(2))
	}
}

// somePacket draws a packet of any type. Its zxid is near a limit that the machine checks, and its data
// is correct, cut off or random.
func somePacket(t *rapid.T) *peerwire.QuorumPacket {
	z := rapid.SampledFrom([]wire.Zxid{0, -1, 1, zx("1.5"), zx("1.6"), zx("2.0"), zx("2.1"), zx("2.2"), zx("3.0"), zx("3.1"), math.MinInt64, math.MaxInt64}).Draw(t, "zxid")
	data := rapid.SampledFrom([][]byte{
		nil, {}, {1, 2, 3}, one("2.1").Append(nil), (&record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpError}, Body: &record.ErrorTxn{}}).Append(nil),
		wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: peerwire.QuorumVersion}),
		wire.Append(wire.Append(nil, &peerwire.LearnerInfo{Server: 2, Version: peerwire.QuorumVersion}), &peerwire.Extension{Version: 1}),
		wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion}), wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1}),
		wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: peerwire.NoEpoch}), wire.Append(nil, &peerwire.ForwardedRequest{Session: 1, Op: wire.OpSync}),
		wire.Append(nil, &peerwire.Activation{Leader: 1, Txn: one("2.1").Append(nil)}), wire.Append(nil, &peerwire.Revalidation{Session: 1}),
		wire.Append(nil, &peerwire.TouchedSessions{Sessions: []peerwire.TouchedSession{{Session: 1, TimeoutMS: 1}}}), []byte("version=1"),
		wire.Append(nil, &peerwire.PingInfo{Confirmed: 2}),
	}).Draw(t, "data")
	kind := rapid.OneOf(rapid.IntRange(-1, 20), rapid.IntRange(int(peerwire.PacketHandOver), int(peerwire.PacketTouch)+1)).Draw(t, "type")
	return &peerwire.QuorumPacket{Type: peerwire.PacketType(kind), Zxid: z, Data: data}
}

// TestNoPacketPanics gives both machines any packets that a peer may send, while the disk
// answers and time passes.
func TestNoPacketPanics(t *testing.T) {
	m := newWorld(1, 3, 0).members
	terms := TermStart{ID: 3, Accepted: 1, Current: 1, Committed: m, TickMS: 1000, InitLimit: 10, SyncLimit: 5}
	rapid.Check(t, func(t *rapid.T) {
		g := NewLog(zx("1.4"), 0)
		_ = g.Append(one("1.5"))
		var step func(int64, Event)
		var ready func() Ready
		if rapid.Bool().Draw(t, "leader") {
			l := NewLeader(0, LeaderOptions{TermStart: terms, DiskLog: true}, g)
			step, ready = l.Step, l.Ready
		} else {
			r := NewLearner(0, LearnerOptions{TermStart: terms, Link: 1, Leader: 1, Reconfig: rapid.Bool().Draw(t, "reconfig")}, g)
			step, ready = r.Step, r.Ready
		}
		now := int64(0)
		for link := range LinkID(3) {
			step(0, Opened{link})
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			now += rapid.Int64Range(0, 300).Draw(t, "ms")
			step(now, Received{LinkID(rapid.IntRange(0, 2).Draw(t, "link")), somePacket(t)})
			step(now, Tick{})
			step(now, Touched{Sessions: []peerwire.TouchedSession{{Session: 1, TimeoutMS: 1}}, Waits: rapid.Bool().Draw(t, "waits")})
			out := ready()
			if out.GiveUp != "" && out.Wake != Never {
				t.Fatal("the machine gave up, but Wake is not Never")
			}
			for _, q := range out.ReadLog {
				step(now, LogRead{Link: q.Link, OK: true})
			}
			if in := out.Install; in != nil {
				step(now, Installed{in.Zxid, out.Generation})
			}
			step(now, Synced{g.Last(), out.Generation})
			step(now, Saved{out.SaveAccepted, out.SaveCurrent, out.Generation})
		}
	})
}
