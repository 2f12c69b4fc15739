package zab

import (
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// servingLearner returns a learner that serves. Its log ends at 1.5.
func servingLearner(t *testing.T) *Learner {
	t.Helper()
	r := soloLearner(t, "1.5", "", false)
	take(r, pack(peerwire.PacketDiff, "1.5", nil), pack(peerwire.PacketNewLeader, "2.0", nil))
	carryDisk(r)
	take(r, pack(peerwire.PacketUpToDate, "0", nil))
	if r.Ready(); !r.Serving() {
		t.Fatal("the learner does not serve")
	}
	return r
}

// TestLearnerLeavesALeaderWithAnotherHistory: the term ends with the first packet that does not follow
// what the learner has, and this packet changes neither the log nor the tree. The learner does not wait
// for a later packet, and does not guess what the leader means.
func TestLearnerLeavesALeaderWithAnotherHistory(t *testing.T) {
	joined := func(t *testing.T) *Learner { return soloLearner(t, "1.4", "1.5", false) }
	diff := pack(peerwire.PacketDiff, "1.5", nil)
	first, second, third := pack(peerwire.PacketProposal, "2.1", one("2.1")), pack(peerwire.PacketProposal, "2.2", one("2.2")), pack(peerwire.PacketProposal, "2.3", one("2.3"))
	for _, c := range []struct {
		name    string
		learner func(*testing.T) *Learner
		before  []*peerwire.QuorumPacket // allowed
		last    *peerwire.QuorumPacket   // ends the term
		why     string
	}{
		{"NEWLEADER of an earlier epoch", joined, []*peerwire.QuorumPacket{diff}, pack(peerwire.PacketNewLeader, "1.0", nil), "sent NEWLEADER"},
		{"NEWLEADER of a later epoch", joined, []*peerwire.QuorumPacket{diff}, pack(peerwire.PacketNewLeader, "3.0", nil), "sent NEWLEADER"},
		{"NEWLEADER with the zxid of a transaction", joined, []*peerwire.QuorumPacket{diff}, pack(peerwire.PacketNewLeader, "2.1", nil), "sent NEWLEADER"},
		{"commit of what was never proposed", joined, []*peerwire.QuorumPacket{diff}, pack(peerwire.PacketCommit, "2.1", nil), "committed"},
		{"commit of the second before the first", joined, []*peerwire.QuorumPacket{diff, first, second}, pack(peerwire.PacketCommit, "2.2", nil), "committed"},
		{"truncation behind the end of the log", joined, nil, pack(peerwire.PacketTrunc, "1.6", nil), "not in the log"},
		{"serving: proposal after a gap", servingLearner, []*peerwire.QuorumPacket{first}, third, "proposed"},
		{"serving: commit of what was never proposed", servingLearner, []*peerwire.QuorumPacket{first}, pack(peerwire.PacketCommit, "2.2", nil), "committed"},
		{"serving: commit of the second before the first", servingLearner, []*peerwire.QuorumPacket{first, second}, pack(peerwire.PacketCommit, "2.2", nil), "committed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.learner(t)
			take(r, c.before...)
			if out := r.Ready(); out.GiveUp != "" {
				t.Fatalf("left too early: %s", out.GiveUp)
			}
			end := r.log.Last()
			take(r, c.last)
			out := r.Ready()
			if !strings.Contains(out.GiveUp, c.why) || len(out.Close) != 1 {
				t.Errorf("gave up %q, closed %v, want the reason %q", out.GiveUp, out.Close, c.why)
			}
			if len(out.Append)+len(out.Commit) != 0 || out.Truncate != nil || out.Sync || r.log.Last() != end {
				t.Errorf("the packet had an effect: %+v, log ends at %v", out, r.log.Last())
			}
		})
	}
}

// TestSyncsAreAnsweredInOrder: an answer to a sync belongs to the oldest sync that waits, because the
// answers do not say to which sync they belong. This includes the syncs that confirm touches.
func TestSyncsAreAnsweredInOrder(t *testing.T) {
	r := servingLearner(t)
	r.opt.CompatibleOnly = false // the learner itself asks a compatible leader to confirm touches
	f := Forward{Request: peerwire.ForwardedRequest{Session: 1, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"})}}
	r.Step(0, Sync{Token: 1, Request: f})
	r.Step(0, Touched{Sessions: []peerwire.TouchedSession{{Session: 7, TimeoutMS: 4000}}, Token: 9})
	take(r, pack(peerwire.PacketPing, "0", nil))
	r.Step(0, Sync{Token: 2, Request: f})
	r.Ready()
	for i, want := range []struct{ sync, confirmed uint64 }{{1, 0}, {0, 9}, {2, 9}} {
		take(r, pack(peerwire.PacketSync, "0", nil))
		out := r.Ready()
		var sync uint64
		if len(out.Syncs) == 1 {
			sync = out.Syncs[0]
		}
		if sync != want.sync || out.Confirmed != want.confirmed {
			t.Errorf("answer %d: syncs %v, confirmed %d, want %+v", i+1, out.Syncs, out.Confirmed, want)
		}
	}
}

// TestTruncationIsConfirmedByItsOwnAnswer: a refused truncation is undone, whatever the disk has answered
// to earlier duties. An answer to the truncation or to a later duty says that the disk has truncated.
func TestTruncationIsConfirmedByItsOwnAnswer(t *testing.T) {
	const cut = 5 // the generation of the truncation
	for answered, want := range map[uint64]string{0: "1.3", cut - 1: "1.3", cut: "1.2", cut + 1: "1.2"} {
		g := logOf(t, "1.1", "1.2 1.3")
		g.cut(zx("1.2"), cut)
		g.confirm(answered)
		if g.Refuse(Refused{Zxid: zx("1.3"), Generation: cut}); g.Last() != zx(want) {
			t.Errorf("answer to generation %d, then a refusal: the log ends at %v, want %s", answered, g.Last(), want)
		}
	}
}

// TestLearnerLeavesALeaderThatBreaksTheProtocol: a learner gives up with a reason when the leader's first packet is no epoch that it can follow, when
// the synchronisation does not begin as it must, when a transaction comes under another zxid, and when it is told to serve too early.
func TestLearnerLeavesALeaderThatBreaksTheProtocol(t *testing.T) {
	joining := func(native bool) *Learner {
		return NewLearner(0, LearnerOptions{Link: 1, Leader: 3, NativeOnly: native, TermStart: TermStart{
			ID: 1, Accepted: 1, Current: 1, Committed: newWorld(1, 3, 0).members, TickMS: 1000, InitLimit: 10, SyncLimit: 5,
		}}, logOf(t, "1.1", "1.2"))
	}
	offer := func(z wire.Zxid, version int32) *peerwire.QuorumPacket {
		return &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: z, Data: wire.Append(nil, &peerwire.LeaderInfo{Version: version})}
	}
	ready := func(t *testing.T) *Learner { return soloLearner(t, "1.4", "1.5", false) }
	for _, c := range []struct {
		why     string // empty: the learner goes on
		learner *Learner
		packets []*peerwire.QuorumPacket
	}{
		{"sent DIFF instead of its epoch", joining(false), []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.2", nil)}},
		{"epoch cannot be read", joining(false), []*peerwire.QuorumPacket{{Type: peerwire.PacketLeaderInfo, Zxid: zx("2.0"), Data: []byte{1}}}},
		{"offers epoch 4294967295", joining(false), []*peerwire.QuorumPacket{offer(-1, peerwire.QuorumVersion)}},
		{"offers epoch 2 in version 0xffff", joining(false), []*peerwire.QuorumPacket{offer(zx("2.0"), peerwire.QuorumVersion-1)}},
		{"", joining(false), []*peerwire.QuorumPacket{offer(wire.MakeZxid(EpochMax, 0), peerwire.QuorumVersion)}},
		{"is older than 1", joining(false), []*peerwire.QuorumPacket{offer(zx("0.0"), peerwire.QuorumVersion)}},
		{"", joining(false), []*peerwire.QuorumPacket{offer(zx("1.0"), peerwire.QuorumVersion)}},
		{"is a ZooKeeper server", joining(true), []*peerwire.QuorumPacket{offer(zx("2.0"), peerwire.QuorumVersion)}},
		{"before its epoch was promised", joining(false), []*peerwire.QuorumPacket{offer(zx("2.0"), peerwire.QuorumVersion), pack(peerwire.PacketDiff, "1.2", nil)}},
		{"instead of DIFF, TRUNC or SNAP", ready(t), []*peerwire.QuorumPacket{pack(peerwire.PacketUpToDate, "0", nil)}},
		{"instead of DIFF, TRUNC or SNAP of its epoch", ready(t), []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "3.1", nil)}},
		{"instead of DIFF, TRUNC or SNAP of its epoch", ready(t), []*peerwire.QuorumPacket{{Type: peerwire.PacketSnap, Zxid: -1}}},
		{"", ready(t), []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.5", nil)}},
		{"before the history was acknowledged", ready(t), []*peerwire.QuorumPacket{pack(peerwire.PacketDiff, "1.5", nil), pack(peerwire.PacketUpToDate, "0", nil)}},
		{"sent transaction 0x200000001 as 0x200000002", servingLearner(t), []*peerwire.QuorumPacket{pack(peerwire.PacketProposal, "2.2", one("2.1"))}},
		{"of epoch 2 sent transaction 0x300000001", servingLearner(t), []*peerwire.QuorumPacket{pack(peerwire.PacketProposal, "3.1", one("3.1"))}},
		{"cannot be read", servingLearner(t), []*peerwire.QuorumPacket{{Type: peerwire.PacketProposal, Zxid: zx("2.1"), Data: []byte{1}}}},
		{"answer about a session cannot be read", servingLearner(t), []*peerwire.QuorumPacket{{Type: peerwire.PacketRevalidate, Data: []byte{1}}}},
	} {
		take(c.learner, c.packets...)
		out := c.learner.Ready()
		if !strings.Contains(out.GiveUp, c.why) || (out.GiveUp == "") != (c.why == "") || len(out.Close) == 1 != (c.why != "") {
			t.Errorf("%v: gives up %q and closes %v, want %q", c.packets[len(c.packets)-1], out.GiveUp, out.Close, c.why)
		}
	}
}

// TestUnexpectedPacketsAreReported: a learner ignores a packet that means nothing to it, and says so.
func TestUnexpectedPacketsAreReported(t *testing.T) {
	for _, kind := range []peerwire.PacketType{99, peerwire.PacketSync, peerwire.PacketFollowerInfo} {
		r := servingLearner(t)
		take(r, pack(kind, "0", nil))
		out := r.Ready()
		if want := (Unexpected{"leader 3", kind}); out.GiveUp != "" || len(out.Observations) != 1 || out.Observations[0] != Observation(want) {
			t.Errorf("%v: gives up %q, reports %v", kind, out.GiveUp, out.Observations)
		}
	}
}
