package zab

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// leaderOfFive returns leader 5 of five voters. Its log ends at 1.2, and its disk has carried out all
// duties.
func leaderOfFive(t *testing.T) *Leader {
	t.Helper()
	g := logOf(t, "1.1", "1.2")
	l := NewLeader(0, LeaderOptions{CompatibleOnly: true, TermStart: TermStart{
		ID: 5, Accepted: 1, Current: 1, Committed: configuration(zx("1.0"), "1 2 3 4 5"),
		TickMS: 1000, InitLimit: 10, SyncLimit: 5,
	}}, g)
	l.Step(0, Synced{g.Last(), l.generation})
	return l
}

// introduce connects a server on a link, with the epoch that it has accepted.
func introduce(l *Leader, link LinkID, id ensemble.ServerID, accepted wire.Epoch) {
	l.Step(0, Opened{link})
	l.Step(0, Received{link, &peerwire.QuorumPacket{
		Type: peerwire.PacketFollowerInfo, Zxid: wire.MakeZxid(accepted, 0),
		Data: wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion, ConfigVersion: l.committed.Version()}),
	}})
}

// promiseOn makes a server answer with its history. The epoch is NoEpoch if the server had accepted the
// new epoch before.
func promiseOn(l *Leader, link LinkID, current int32, last string) {
	l.Step(0, Received{link, &peerwire.QuorumPacket{
		Type: peerwire.PacketAckEpoch, Zxid: zx(last), Data: wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: current}),
	}})
}

// joined reports whether discovery is over.
func joined(l *Leader) bool { return l.Ready().Joined }

// TestAcceptedEpochIsLostWithItsLink: if a voter's link ends before there is a quorum, the
// epoch that it has sent does not count.
func TestAcceptedEpochIsLostWithItsLink(t *testing.T) {
	l := leaderOfFive(t)
	introduce(l, 1, 1, 4)
	l.Step(0, Closed{1, "reset"})
	introduce(l, 2, 2, 1)
	if l.phase != discovering {
		t.Fatal("the epoch is fixed although only two of five servers are connected")
	}
	introduce(l, 3, 3, 1)
	if l.phase != promising || l.epoch != 5 {
		t.Errorf("phase %d, epoch %d", l.phase, l.epoch)
	}
}

// TestPromiseIsLostWithItsLink: a voter promises the epoch, loses its disk and comes
// back. It counts only after it has promised again.
func TestPromiseIsLostWithItsLink(t *testing.T) {
	l := leaderOfFive(t)
	introduce(l, 1, 1, 1)
	introduce(l, 2, 2, 1)
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	promiseOn(l, 1, 1, "1.2")
	l.Step(0, Closed{1, "reset"})
	introduce(l, 3, 1, 0) // the disk is empty
	promiseOn(l, 2, 1, "1.2")
	if joined(l) {
		t.Fatal("a promise counts although its link has ended and the voter lost its disk")
	}
	promiseOn(l, 3, 0, "0.0")
	if !joined(l) {
		t.Error("the new promise does not count")
	}
}

// TestPromiseIsNotRepeated: a voter that comes back on another link says that it had accepted the epoch
// before. It may have accepted it for another leader, so this is not a promise to the present one. If a
// quorum of promises is no longer possible, the term ends.
func TestPromiseIsNotRepeated(t *testing.T) {
	l := leaderOfFive(t)
	introduce(l, 1, 1, 1)
	introduce(l, 2, 2, 1)
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	promiseOn(l, 1, 1, "1.2")
	l.Step(0, Closed{1, "reset"})
	introduce(l, 3, 1, 2)
	promiseOn(l, 3, peerwire.NoEpoch, "1.2")
	promiseOn(l, 2, 1, "1.2")
	if joined(l) {
		t.Fatal("discovery is over although only two of five servers have promised")
	}
	l.Step(leftMinMS+200, Tick{})
	if why := l.Ready().GiveUp; why == "" {
		t.Error("the leader waits for a promise that cannot come")
	}
}

// TestHistoryIsLostWithItsLink: a voter acknowledges the leader's history, but its link ends before the
// leader is established. Its acknowledgement does not count.
func TestHistoryIsLostWithItsLink(t *testing.T) {
	l := leaderOfFive(t)
	introduce(l, 1, 1, 1)
	introduce(l, 2, 2, 1)
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	promiseOn(l, 1, 1, "1.2")
	promiseOn(l, 2, 1, "1.2")
	l.Step(0, Received{1, pack(peerwire.PacketAck, "2.0", nil)})
	l.Step(0, Received{2, pack(peerwire.PacketAck, "2.0", nil)})
	l.Step(0, Closed{1, "reset"})
	l.Step(0, Saved{Current: 2, Generation: l.generation})
	if l.Serving() {
		t.Fatal("the leader is established by the ACK of a learner whose link has ended")
	}
	introduce(l, 3, 1, 2)
	promiseOn(l, 3, peerwire.NoEpoch, "1.2")
	l.Step(0, Received{3, pack(peerwire.PacketAck, "2.0", nil)})
	if !l.Serving() {
		t.Error("not established when the learner is back")
	}
}

// TestLeaderThatDoesNotAnswerIsGivenUp: a learner waits DiscoverMS for the epoch, and a leader waits
// twice as long for a quorum. If DiscoverMS is 0, both wait for initLimit.
func TestLeaderThatDoesNotAnswerIsGivenUp(t *testing.T) {
	for _, c := range []struct{ discover, learner, leader int64 }{{0, 10_000, 10_000}, {1000, 1000, 2000}, {8000, 8000, 10_000}} {
		terms := TermStart{ID: 1, Accepted: 1, Current: 1, Committed: configuration(zx("1.0"), "1 2 3"),
			TickMS: 1000, InitLimit: 10, SyncLimit: 5, DiscoverMS: c.discover}
		r := NewLearner(0, LearnerOptions{Link: 1, Leader: 3, TermStart: terms}, logOf(t, "1.1", ""))
		r.Step(c.learner, Tick{})
		if why := r.Ready().GiveUp; why != "" {
			t.Errorf("discovery %d: the learner gives up: %s", c.discover, why)
		}
		r.Step(c.learner+1, Tick{})
		if why := r.Ready().GiveUp; !strings.Contains(why, "silent") {
			t.Errorf("discovery %d: the learner waits on after %d ms", c.discover, c.learner)
		}
		l := NewLeader(0, LeaderOptions{TermStart: terms}, logOf(t, "1.1", ""))
		l.Step(c.leader-1, Tick{})
		if why := l.Ready().GiveUp; why != "" {
			t.Errorf("discovery %d: the leader gives up: %s", c.discover, why)
		}
		l.Step(c.leader, Tick{})
		if why := l.Ready().GiveUp; why == "" {
			t.Errorf("discovery %d: the leader waits on after %d ms", c.discover, c.leader)
		}
	}
}
