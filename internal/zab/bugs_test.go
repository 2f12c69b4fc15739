package zab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// The tests of this file are named after known bugs of other servers. Bugs about the choice of
// synchronisation are rows of TestChoiceOfSynchronisation, and those about the order of durable steps are
// in TestCrashBetweenAnyTwoSteps.

// packets returns the packets that were sent on a link, each as its type and its dotted zxid.
func packets(sent []Message) string {
	var out []string
	for _, m := range sent {
		out = append(out, m.Packet.Type.String()+" "+dotted(m.Packet.Zxid))
	}
	return strings.Join(out, ", ")
}

func pack(kind peerwire.PacketType, zxid string, x *record.Txn) *peerwire.QuorumPacket {
	p := &peerwire.QuorumPacket{Type: kind, Zxid: zx(zxid)}
	if x != nil {
		p.Data = x.Append(nil)
	}
	return p
}

// soloLearner returns a learner with a snapshot at base and a log with these entries. It has told the
// leader where the log ends, so the leader's next packet begins the synchronisation.
func soloLearner(t *testing.T, base, entries string, observer bool) *Learner {
	t.Helper()
	m := newWorld(1, 3, 0).members
	g := logOf(t, base, entries)
	r := NewLearner(0, LearnerOptions{Link: 1, Leader: 3, Observer: observer, CompatibleOnly: true, TermStart: TermStart{
		ID: 1, Accepted: 1, Current: 1, Committed: m, TickMS: 1000, InitLimit: 10, SyncLimit: 5,
	}}, g)
	take(r, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: zx("2.0"), Data: wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})})
	r.Step(0, Saved{Accepted: 2, Generation: r.generation})
	if got := packets(r.Ready().Send); !strings.HasSuffix(got, "ACKEPOCH "+dotted(g.Last())) {
		t.Fatal("no ACKEPOCH with the end of the log:", got)
	}
	return r
}

func take(r *Learner, ps ...*peerwire.QuorumPacket) {
	for _, p := range ps {
		r.Step(0, Received{1, p})
	}
}

// carryDisk carries out the waiting duties of the disk, and returns the packets that are then sent.
func carryDisk(r *Learner) (sent []Message, all []Ready) {
	for range 4 {
		out := r.Ready()
		sent, all = append(sent, out.Send...), append(all, out)
		if out.Install != nil {
			r.Step(0, Installed{out.Install.Zxid, out.Generation})
		}
		r.Step(0, Synced{r.log.Last(), out.Generation})
		if out.SaveCurrent != 0 {
			r.Step(0, Saved{Current: out.SaveCurrent, Generation: out.Generation})
		}
	}
	return sent, all
}

func one(z string) *record.Txn { return txns(z)[0] }

// TestZK4394CommitBetweenNewLeaderAndUpToDate: a commit between these two packets, of a
// proposal before or after NEWLEADER, is applied after UPTODATE.
func TestZK4394CommitBetweenNewLeaderAndUpToDate(t *testing.T) {
	for _, early := range []bool{true, false} {
		r := soloLearner(t, "1.5", "", false)
		take(r, pack(peerwire.PacketDiff, "1.5", nil))
		if early {
			take(r, pack(peerwire.PacketProposal, "2.1", one("2.1")))
		}
		take(r, pack(peerwire.PacketNewLeader, "2.0", nil))
		if !early {
			take(r, pack(peerwire.PacketProposal, "2.1", one("2.1")))
		}
		sent, all := carryDisk(r)
		if got := packets(sent); got != "ACK 2.0" || len(all[0].Append) != 0 {
			t.Fatalf("sent %s, appended %v", got, all[0].Append)
		}
		take(r, pack(peerwire.PacketProposal, "2.2", one("2.2")), pack(peerwire.PacketCommit, "2.1", nil), pack(peerwire.PacketUpToDate, "0", nil))
		out := r.Ready()
		if got := strings.Join(zxids(out.Append), " "); got != "2.1 2.2" {
			t.Errorf("appended %s", got)
		}
		if got := strings.Join(zxids(out.Commit), " "); got != "2.1" || out.Established == nil {
			t.Errorf("applied %s, established %v", got, out.Established)
		}
		r.Step(0, Synced{zx("2.2"), out.Generation})
		if got := packets(r.Ready().Send); got != "ACK 2.1, ACK 2.2" {
			t.Errorf("sent %s", got)
		}
	}
}

// TestZK4685ProposalAckBeforeNewLeaderAck: a follower of an old version acknowledges
// transactions of its synchronisation before NEWLEADER. The leader ignores these ACKs.
func TestZK4685ProposalAckBeforeNewLeaderAck(t *testing.T) {
	w := newWorld(1, 3, 0)
	g := logOf(t, "1.1", "1.2 1.3")
	l := establishedLeader(t, 3, 2, w.members, g)
	greet(l, 1, 1, "1.2", false)
	if got := packets(l.Ready().Send); !strings.HasSuffix(got, "DIFF 1.3, PROPOSAL 1.3, COMMIT 1.3, NEWLEADER 2.0") {
		t.Fatal(got)
	}
	for _, z := range []string{"1.3", "2.0", "1.3", "2.0"} {
		l.Step(0, Received{1, pack(peerwire.PacketAck, z, nil)})
	}
	if got := packets(l.Ready().Send); got != "UPTODATE "+dotted(-1) || l.links[1] == nil {
		t.Errorf("sent %s, link %v", got, l.links[1])
	}
}

// greet plays a learner's part of discovery, up to its ACKEPOCH.
func greet(l *Leader, id LinkID, server ensemble.ServerID, last string, observer bool) {
	info := &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: server, Version: peerwire.QuorumVersion})}
	if observer {
		info.Type = peerwire.PacketObserverInfo
	}
	l.Step(l.now, Opened{id})
	l.Step(l.now, Received{id, info})
	l.Step(l.now, Received{id, &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: zx(last), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: 1})}})
}

// TestZK4925NoHoleInTheCommittedLog: a learner keeps the transactions of its
// synchronisation, so that it can pass them on; a gap ends the term.
func TestZK4925NoHoleInTheCommittedLog(t *testing.T) {
	for _, c := range []struct {
		opening peerwire.PacketType
		at      string
	}{{peerwire.PacketDiff, "1.7"}, {peerwire.PacketSnap, "1.5"}, {peerwire.PacketTrunc, "1.5"}} {
		r := soloLearner(t, "1.4", "1.5", false)
		take(r, pack(c.opening, c.at, nil))
		for _, z := range []string{"1.6", "1.7", "2.1"} {
			take(r, pack(peerwire.PacketProposal, z, one(z)), pack(peerwire.PacketCommit, z, nil))
		}
		take(r, pack(peerwire.PacketNewLeader, "2.0", nil))
		carryDisk(r)
		if got := strings.Join(zxids(r.log.between(zx("1.5"), r.log.last)), " "); got != "1.6 1.7 2.1" {
			t.Errorf("%v: remembers %s", c.opening, got)
		}
		r = soloLearner(t, "1.4", "1.5", false)
		take(r, pack(c.opening, c.at, nil), pack(peerwire.PacketProposal, "1.7", one("1.7")))
		out := r.Ready()
		if !strings.Contains(out.GiveUp, "does not follow") {
			t.Errorf("%v: a gap: %q", c.opening, out.GiveUp)
		}
		if snap := c.opening == peerwire.PacketSnap; out.Again == snap { // another snapshot would not help
			t.Errorf("%v: asks for a snapshot: %v", c.opening, out.Again)
		}
	}
}

// TestZK4712LeaderForgetsItsHistory: a leader sends less history than it had when it was elected. The learner loses nothing, and asks for a
// snapshot.
func TestZK4712LeaderForgetsItsHistory(t *testing.T) {
	for _, c := range []struct {
		elected string
		sent    []*peerwire.QuorumPacket
		asks    bool
	}{
		{"1.7", []*peerwire.QuorumPacket{pack(peerwire.PacketTrunc, "1.5", nil)}, true},
		{"1.6", []*peerwire.QuorumPacket{pack(peerwire.PacketTrunc, "1.5", nil)}, true},
		{"2.0", []*peerwire.QuorumPacket{pack(peerwire.PacketTrunc, "1.5", nil)}, true},
		{"1.5", []*peerwire.QuorumPacket{pack(peerwire.PacketTrunc, "1.5", nil)}, false},
		{"0", []*peerwire.QuorumPacket{pack(peerwire.PacketTrunc, "1.5", nil)}, false},
		{"1.7", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.6", nil)}, true},
		{"1.8", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.7", nil), pack(peerwire.PacketProposal, "1.7", one("1.7")), pack(peerwire.PacketCommit, "1.7", nil)}, true},
		{"1.7", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.7", nil), pack(peerwire.PacketProposal, "1.7", one("1.7"))}, true},
		{"1.7", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.7", nil), pack(peerwire.PacketProposal, "1.7", one("1.7")), pack(peerwire.PacketCommit, "1.7", nil)}, false},
		{"2.0", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.6", nil)}, false},
		{"1.8", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "2.1", nil), pack(peerwire.PacketProposal, "2.1", one("2.1")), pack(peerwire.PacketCommit, "2.1", nil)}, true},
		{"1.5", []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.8", nil), pack(peerwire.PacketProposal, "1.8", one("1.8"))}, true},
		{"1.7", []*peerwire.QuorumPacket{pack(peerwire.PacketSnap, "1.6", nil)}, false},
	} {
		name := fmt.Sprintf("elected with %s, %s", c.elected, c.sent[0].Type)
		r := soloLearner(t, "1.4", "1.5 1.6", false)
		r.opt.Elected = zx(c.elected)
		take(r, append(c.sent, pack(peerwire.PacketNewLeader, "2.0", nil))...)
		out := r.Ready()
		if out.Again != c.asks || (out.GiveUp != "") != c.asks {
			t.Errorf("%s: %+v", name, out)
		}
		if !c.asks {
			continue
		}
		if out.Truncate != nil || len(out.Append) > 0 || r.log.Last() != zx("1.6") {
			t.Errorf("%s: the log has changed: %+v, it ends at %v", name, out, r.log.Last())
		}
		o := r.opt
		o.Accepted = 2
		again := NewLearner(0, o, r.log)
		take(again, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: zx("2.0"), Data: wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})})
		sent := again.Ready().Send
		var ack peerwire.EpochAck
		last := sent[len(sent)-1].Packet
		if err := wire.Decode(last.Data, &ack); err != nil || last.Type != peerwire.PacketAckEpoch || last.Zxid != 0 || ack.CurrentEpoch != peerwire.NoEpoch {
			t.Errorf("%s: the next promise is %+v of epoch %d, %v", name, last, ack.CurrentEpoch, err)
		}
	}
}

// TestZK3642SnapshotInterrupted: a snapshot without a NEWLEADER changes nothing: not the
// log, not the tree, not what the next leader gets.
func TestZK3642SnapshotInterrupted(t *testing.T) {
	r := soloLearner(t, "1.4", "1.5", false)
	take(r, pack(peerwire.PacketSnap, "1.9", nil), pack(peerwire.PacketProposal, "2.1", one("2.1")), pack(peerwire.PacketCommit, "2.1", nil))
	r.Step(0, Closed{1, "reset"})
	out := r.Ready()
	if out.Install != nil || out.Commit != nil || out.GiveUp == "" || r.log.Last() != zx("1.5") {
		t.Errorf("%+v, log ends at %v", out, r.log.Last())
	}
}

// TestZK5094TruncationInterrupted: if a truncation is not followed by NEWLEADER, the log
// in memory and the log on disk end at the same zxid.
func TestZK5094TruncationInterrupted(t *testing.T) {
	r := soloLearner(t, "1.4", "1.5 1.6 1.7", false)
	r.log.MarkApplied(zx("1.6"))
	take(r, pack(peerwire.PacketTrunc, "1.5", nil))
	r.Step(0, Closed{1, "reset"})
	out := r.Ready()
	if out.Truncate == nil || *out.Truncate != (Truncate{zx("1.5"), true}) || r.log.Last() != zx("1.5") || r.log.Applied() != zx("1.5") {
		t.Errorf("%+v, log ends at %v, applied %v", out.Truncate, r.log.Last(), r.log.Applied())
	}
}

// TestZK4837TruncationBelowTheSnapshot: a truncation that would end below the newest snapshot on disk
// leaves the log unchanged, and the leader sends a snapshot.
func TestZK4837TruncationBelowTheSnapshot(t *testing.T) {
	w := newWorld(1, 3, 0)
	situations[Trunc](w)
	n := w.nodes[0]
	n.disk.snapshot, n.disk.base = slices.Concat(n.disk.snapshot, n.disk.log), n.disk.last()
	n.disk.log, n.disk.synced = nil, 0
	w.start(n)
	w.join(n, w.nodes[2])
	w.settle()
	if !strings.Contains(n.gaveUp, "not in the log") || n.log.Last() != n.disk.base || !n.log.wantsSnapshot {
		t.Fatalf("gave up %q, log ends at %v, disk at %v", n.gaveUp, n.log.Last(), n.disk.base)
	}
	w.join(n, w.nodes[2])
	w.settle()
	if w.wrong != "" || !n.serving || n.learner.how != Snap {
		t.Errorf("%s, %+v", w.wrong, n.learner)
	}
	w.together()
	if w.wrong != "" {
		t.Error(w.wrong)
	}
}

// TestZK4882DiskErrorIsNoHole: if the disk refuses a duty, the role ends, and the log in
// memory ends where the log on disk does.
func TestZK4882DiskErrorIsNoHole(t *testing.T) {
	r := soloLearner(t, "1.5", "", false)
	take(r, pack(peerwire.PacketDiff, "1.5", nil), pack(peerwire.PacketNewLeader, "2.0", nil))
	carryDisk(r)
	take(r, pack(peerwire.PacketUpToDate, "0", nil))
	for _, z := range []string{"2.1", "2.2", "2.3"} {
		take(r, pack(peerwire.PacketProposal, z, one(z)))
	}
	r.Step(0, Synced{zx("2.1"), r.generation})
	r.Step(0, Refused{zx("2.1"), r.generation, "no space"})
	out := r.Ready()
	if out.GiveUp != "the disk: no space" || r.log.Last() != zx("2.1") {
		t.Errorf("gave up %q, log ends at %v", out.GiveUp, r.log.Last())
	}
}

// TestZK2247LeaderThatCannotWriteResigns: a leader whose disk refuses a write ends its term. It also
// closes its learners' links, so that they look for a leader at once.
func TestZK2247LeaderThatCannotWriteResigns(t *testing.T) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.1", ""))
	greet(l, 1, 1, "1.1", false)
	l.Step(0, Propose{one("2.1")})
	l.Ready()
	l.Step(0, Refused{zx("1.1"), l.generation, "no space"})
	if out := l.Ready(); out.GiveUp == "" || len(out.Close) != 1 || l.log.Last() != zx("1.1") {
		t.Errorf("%q, %v, %v", out.GiveUp, out.Close, l.log.Last())
	}
}

// TestZK4541StaleSyncedIsDropped: a Synced of an earlier generation is ignored.
func TestZK4541StaleSyncedIsDropped(t *testing.T) {
	r := soloLearner(t, "1.4", "1.5 1.6", false)
	old := r.generation
	take(r, pack(peerwire.PacketTrunc, "1.5", nil), pack(peerwire.PacketNewLeader, "2.0", nil))
	r.Ready()
	r.Step(0, Synced{zx("1.6"), old})
	if out := r.Ready(); out.SaveCurrent != 0 || r.generation == old {
		t.Errorf("a Synced of an earlier generation has an effect: %+v", out)
	}
	r.Step(0, Synced{zx("1.5"), r.generation})
	if out := r.Ready(); out.SaveCurrent != 2 {
		t.Errorf("%+v", out)
	}
}

// TestZK2355UnreadableProposalEndsTheTerm: a proposal that cannot be decoded is not
// skipped.
func TestZK2355UnreadableProposalEndsTheTerm(t *testing.T) {
	r := soloLearner(t, "1.5", "", false)
	p := pack(peerwire.PacketProposal, "2.1", one("2.1"))
	p.Data = p.Data[:len(p.Data)-1]
	take(r, pack(peerwire.PacketDiff, "1.5", nil), p)
	if got := r.Ready().GiveUp; !strings.Contains(got, "cannot be read") {
		t.Error(got)
	}
}

// TestZK2845LoggedTailCounts: transactions that were logged and not committed count in the vote, in
// ACKEPOCH, and in what a new leader commits. This also holds if the process is not restarted.
func TestZK2845LoggedTailCounts(t *testing.T) {
	w := newWorld(1, 3, 0)
	w.grow(2, 3, 1, 2)
	w.propose(w.nodes[2])
	for _, c := range w.links {
		w.deliver(c, false) // the PROPOSAL arrives, no ACK returns
	}
	for _, n := range w.nodes[:2] {
		for len(n.writer) > 0 {
			w.diskStep(n)
		}
	}
	for _, c := range w.links {
		c.up = nil
	}
	for _, n := range w.nodes {
		w.part(n)
	}
	w.crash(w.nodes[2], 0)
	if n := w.nodes[1]; n.log.Applied() != zx("1.2") || n.log.Last() != zx("1.3") {
		t.Fatalf("applied %v, log ends at %v", n.log.Applied(), n.log.Last())
	}
	w.grow(1, 2, 1)
	if len(w.history) != 4 || w.wrong != "" {
		t.Errorf("%d shown, %s", len(w.history), w.wrong)
	}
}

// TestZK3104NewLeaderBehindTheWholeHistory: NEWLEADER comes after the whole history, because a link keeps
// the order of its packets.
func TestZK3104NewLeaderBehindTheWholeHistory(t *testing.T) {
	g := NewLog(zx("1.3"), 0)
	for _, x := range txns("1.4 1.5") {
		if err := g.Append(x); err != nil {
			t.Fatal(err)
		}
	}
	l := NewLeader(0, LeaderOptions{TermStart: TermStart{ID: 3, Accepted: 1, Current: 1, Committed: newWorld(1, 3, 0).members, TickMS: 1000, InitLimit: 10, SyncLimit: 5}}, g)
	info := &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: peerwire.QuorumVersion})}
	l.Step(0, Opened{1})
	l.Step(0, Received{1, info})
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	l.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Data: wire.Append(nil, &peerwire.EpochAck{})}})
	sent := l.Ready().Send
	if got := packets(sent); got != "LEADERINFO 2.0, SNAP 1.3, PROPOSAL 1.4, COMMIT 1.4, PROPOSAL 1.5, COMMIT 1.5, NEWLEADER 2.0" || !sent[1].Snapshot {
		t.Error(got)
	}
}

// TestZabSpecProposalTwice (findings 2 and 3 of the specification): a learner accepts the same proposal
// before and after NEWLEADER.
func TestZabSpecProposalTwice(t *testing.T) {
	r := soloLearner(t, "1.5", "", false)
	p := pack(peerwire.PacketProposal, "2.1", one("2.1"))
	take(r, pack(peerwire.PacketDiff, "1.5", nil), p, pack(peerwire.PacketNewLeader, "2.0", nil), p)
	carryDisk(r)
	take(r, p, pack(peerwire.PacketCommit, "2.1", nil), pack(peerwire.PacketUpToDate, "0", nil), p, pack(peerwire.PacketCommit, "2.1", nil))
	if out := r.Ready(); out.GiveUp != "" || len(out.Append) != 1 || len(out.Commit) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestZabSpecAttachedBeforeNewLeader (finding 1): a learner receives the transactions that are proposed
// and committed while it is being synchronised.
func TestZabSpecAttachedBeforeNewLeader(t *testing.T) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 1).members, logOf(t, "1.1", ""))
	greet(l, 1, 1, "1.1", false)
	greet(l, 2, 2, "1.1", false)
	greet(l, 4, 4, "1.1", true)
	l.Step(0, Received{2, pack(peerwire.PacketAck, "2.0", nil)})
	l.Ready()
	l.Step(0, Propose{one("2.1")})
	l.Step(0, Synced{zx("2.1"), l.generation})
	l.Step(0, Received{2, pack(peerwire.PacketAck, "2.1", nil)})
	l.Step(0, Received{1, pack(peerwire.PacketAck, "2.0", nil)})
	got := map[LinkID][]Message{}
	for _, m := range l.Ready().Send {
		got[m.Link] = append(got[m.Link], m)
	}
	up := ", UPTODATE " + dotted(-1)
	if packets(got[1]) != "PROPOSAL 2.1, COMMIT 2.1"+up || packets(got[4]) != "INFORM 2.1" {
		t.Errorf("late follower: %s; observer: %s", packets(got[1]), packets(got[4]))
	}
}

// TestZK1277CounterEnds: no zxid has a counter above the last one of an epoch. Everything
// proposed is committed, then the term ends, and the counter of the next epoch begins with 1.
func TestZK1277CounterEnds(t *testing.T) {
	w := newWorld(1, 3, 0)
	w.keep = func(o *LeaderOptions) { o.CounterMax = 16 }
	w.grow(0, 3, 1, 2)
	n := 0
	for w.propose(w.nodes[2]) {
		n++
	}
	w.settle()
	if n != 16 || len(w.history) != 16 || !strings.Contains(w.nodes[2].gaveUp, "used up") {
		t.Fatalf("%d proposed, %d shown, gave up %q", n, len(w.history), w.nodes[2].gaveUp)
	}
	w.grow(1, 3, 1, 2)
	if last := w.history[len(w.history)-1].Zxid; last != zx("2.1") || w.wrong != "" {
		t.Errorf("%v, %s", last, w.wrong)
	}
	full := establishedLeader(t, 3, 2, w.members, NewLog(zx("1.1"), 0))
	full.proposed = wire.MakeZxid(2, 0xfffffffd)
	if z, ok := full.NextZxid(); z.Counter() != 0xfffffffe || !ok {
		t.Error(z, ok)
	}
	full.proposed = wire.MakeZxid(2, 0xfffffffe)
	if z, ok := full.NextZxid(); ok {
		t.Error(z, "is given out")
	}
}

// TestSpecLeaderRefusesVoterWithLaterEpoch: a leader refuses a voter whose history is of a later epoch
// than the term's, so that the voter loses no history that the leader lacks.
func TestSpecLeaderRefusesVoterWithLaterEpoch(t *testing.T) {
	for _, c := range []struct {
		epoch int32
		last  string
		want  string
	}{
		{1, "1.6", "is ahead"}, {2, "1.1", "is ahead"}, {1, "9.1", "cannot follow"}, {7, "1.1", "cannot follow"},
		{-2, "1.1", "cannot follow"}, {1, "1.5", ""}, {0, "0", ""},
	} {
		l := NewLeader(0, LeaderOptions{TermStart: TermStart{ID: 3, Accepted: 2, Current: 1, Committed: newWorld(1, 5, 0).members, TickMS: 1000, InitLimit: 10, SyncLimit: 5}}, NewLog(zx("1.5"), 0))
		for i := range LinkID(2) {
			l.Step(0, Opened{i + 1})
			l.Step(0, Received{i + 1, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: ensemble.ServerID(i + 1), Version: peerwire.QuorumVersion})}})
		}
		l.Step(0, Saved{Accepted: 3, Generation: l.generation})
		l.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: zx(c.last), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: c.epoch})}})
		got := ""
		for _, h := range l.Ready().Observations {
			got += h.String()
		}
		if closed := l.links[1] == nil; closed != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("history %s of epoch %d: %q", c.last, c.epoch, got)
		}
	}
}

// TestHungLogReadEndsInASnapshot: the leader's disk does not answer when the log is read for a learner. The learner gets a snapshot,
// which needs no disk, so that the others can be a quorum without the leader. A late answer changes nothing.
func TestHungLogReadEndsInASnapshot(t *testing.T) {
	for _, c := range []struct{ tick, limit int64 }{{2000, readLogMax}, {200, 1000}} { // the learner waits for 10 ticks
		hungLogRead(t, c.tick, c.limit)
	}
}

func hungLogRead(t *testing.T, tick, limit int64) {
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, logOf(t, "1.5", "1.6"))
	l.opt.DiskLog, l.opt.TickMS, l.opt.InitLimit, l.opt.SyncLimit = true, tick, 10, 50
	greet(l, 2, 2, "1.6", false)
	l.Step(0, Received{2, pack(peerwire.PacketAck, "2.0", nil)})
	l.Ready()
	greet(l, 1, 1, "1.2", false)
	out := l.Ready()
	if len(out.ReadLog) != 1 || strings.Contains(packets(out.Send), "SNAP") {
		t.Fatalf("%+v, %s", out.ReadLog, packets(out.Send))
	}
	l.Step(limit, Tick{})
	if got := packets(l.Ready().Send); strings.Contains(got, "SNAP") {
		t.Fatalf("too early: %s", got)
	}
	l.Step(limit+tick, Tick{})
	if got := packets(l.Ready().Send); !strings.Contains(got, "SNAP 1.6, NEWLEADER 2.0") {
		t.Fatalf("sent %s", got)
	}
	l.Step(limit+tick+1, LogRead{Link: 1, Txns: []*record.Txn{one("1.3"), one("1.4"), one("1.5")}, OK: true})
	if out := l.Ready(); len(out.Send) > 0 || l.links[1].how != Snap {
		t.Errorf("after the late answer: %s", packets(out.Send))
	}
}
