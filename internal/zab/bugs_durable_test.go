package zab

import (
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
)

// The tests of this file are named after known bugs of other servers: bugs about what is on the disk when
// a server promises something, and bugs about the choice of synchronisation.

// atNewLeader returns a learner that has received two committed transactions, one that is not committed
// yet, and NEWLEADER.
func atNewLeader(t *testing.T) (*Learner, Ready) {
	t.Helper()
	r := soloLearner(t, "1.5", "", false)
	take(r, pack(peerwire.PacketDiff, "1.7", nil))
	for _, z := range []string{"1.6", "1.7"} {
		take(r, pack(peerwire.PacketProposal, z, one(z)), pack(peerwire.PacketCommit, z, nil))
	}
	take(r, pack(peerwire.PacketNewLeader, "2.0", nil), pack(peerwire.PacketProposal, "2.1", one("2.1")))
	return r, r.Ready()
}

// TestZK3911HistoryIsLoggedBeforeItIsAcknowledged: transactions before NEWLEADER are
// logged when NEWLEADER comes, not only after UPTODATE.
func TestZK3911HistoryIsLoggedBeforeItIsAcknowledged(t *testing.T) {
	_, out := atNewLeader(t)
	if got := strings.Join(zxids(out.Append), " "); got != "1.6 1.7" || !out.Sync {
		t.Errorf("appends %q, fsync %v", got, out.Sync)
	}
	if len(out.Send) != 0 {
		t.Errorf("sends %s", packets(out.Send))
	}
}

// TestZK3023AcknowledgementWaitsForTheSync: the ACK of NEWLEADER waits until the whole
// history is durable, not only a part.
func TestZK3023AcknowledgementWaitsForTheSync(t *testing.T) {
	r, _ := atNewLeader(t)
	r.Step(0, Synced{zx("1.6"), r.generation})
	r.Step(0, Saved{Current: 2, Generation: r.generation})
	if out := r.Ready(); out.SaveCurrent != 0 || len(out.Send) != 0 {
		t.Errorf("after a part of the log is durable: epoch %d, sends %s", out.SaveCurrent, packets(out.Send))
	}
	r.Step(0, Synced{zx("1.7"), r.generation})
	if out := r.Ready(); out.SaveCurrent != 2 || len(out.Send) != 0 {
		t.Errorf("after the whole log is durable: epoch %d, sends %s", out.SaveCurrent, packets(out.Send))
	}
	r.Step(0, Saved{Current: 2, Generation: r.generation})
	if got := packets(r.Ready().Send); got != "ACK 2.0" {
		t.Errorf("after the epoch: sends %q", got)
	}
}

// TestZK4643EpochBehindTheLog: a learner crashes after each duty of its disk. Its epoch
// is never on the disk without the history of that epoch, so it cannot win an election
// with an incomplete history.
func TestZK4643EpochBehindTheLog(t *testing.T) {
	for how, situation := range situations {
		for after := 0; ; after++ {
			w := newWorld(1, 3, 0)
			situation(w)
			n, l := w.nodes[0], w.nodes[2]
			if how == Diff { // only a term that is new to the learner has a new epoch to save
				w.part(w.nodes[1])
				w.part(l)
				w.grow(1, 3, 2)
			}
			if w.join(n, l); n.disk.current == l.disk.current {
				t.Fatalf("%v: the learner has epoch %d on its disk already", how, n.disk.current)
			}
			if w.actions(after) < after {
				break
			}
			w.crash(n, 0)
			if n.disk.current == l.disk.current && n.disk.last() < l.log.Applied() {
				t.Fatalf("%v, %d steps: epoch %d is on the disk, the log ends at %v", how, after, n.disk.current, n.disk.last())
			}
		}
	}
}

// TestZK4646AcknowledgedHistorySurvives: once a learner has sent the ACK of NEWLEADER,
// a crash of the learner loses nothing of that history.
func TestZK4646AcknowledgedHistorySurvives(t *testing.T) {
	for how, situation := range situations {
		w := newWorld(1, 3, 0)
		situation(w)
		n, l := w.nodes[0], w.nodes[2]
		w.join(n, l)
		history := l.log.Applied()
		acked := func() bool {
			up := w.links[len(w.links)-1].up
			return len(up) > 0 && up[len(up)-1].p.Type == peerwire.PacketAck
		}
		for !acked() && w.actions(1) == 1 {
			continue
		}
		if !acked() {
			t.Fatalf("%v: no ACK", how)
		}
		w.crash(n, 0)
		w.start(n)
		if n.log.Last() < history || n.cur != l.cur || w.wrong != "" {
			t.Errorf("%v: log ends at %v, acknowledged %v; epoch %d; %s", how, n.log.Last(), history, n.cur, w.wrong)
		}
	}
}

// TestZK4785OutstandingIsAcknowledgedWhenDurable: transactions that were uncommitted when
// the learner was synchronised are acknowledged once they are durable.
func TestZK4785OutstandingIsAcknowledgedWhenDurable(t *testing.T) {
	r, _ := atNewLeader(t)
	r.Step(0, Synced{zx("1.7"), r.generation})
	r.Step(0, Saved{Current: 2, Generation: r.generation})
	take(r, pack(peerwire.PacketUpToDate, "0", nil))
	sent, out := packets(r.ready.Send), r.Ready()
	if sent != "ACK 2.0, ACK 2.0" || strings.Join(zxids(out.Append), " ") != "2.1" {
		t.Errorf("sends %s, appends %v", sent, zxids(out.Append))
	}
	r.Step(0, Synced{zx("1.7"), r.generation})
	if got := packets(r.Ready().Send); got != "" {
		t.Errorf("sends %s before the fsync", got)
	}
	r.Step(0, Synced{zx("2.1"), r.generation})
	if got := packets(r.Ready().Send); got != "ACK 2.1" {
		t.Errorf("sends %q after it", got)
	}
}

// choice returns what a leader decides for a learner whose log ends at peer. The leader's memory holds
// remembered, and its disk holds log.
func choice(remembered, log, peer string) string {
	h := history{committed: txns(remembered), disk: log != ""}
	h.newest = h.committed[len(h.committed)-1].Zxid
	h.last, h.tree = h.newest, h.newest
	p := choose(&h, zx(peer))
	if !p.ask {
		return short(p)
	}
	var read []*record.Txn
	met := false
	for _, x := range txns(log) {
		if met {
			read = append(read, x)
		}
		met = met || x.Zxid == zx(peer)
	}
	return short(chooseRead(&h, zx(peer), read, met))
}

// TestZK2418GapBetweenLogAndMemory: a learner gets no transactions from the disk if
// there is a gap between the log on disk and the log in memory.
func TestZK2418GapBetweenLogAndMemory(t *testing.T) {
	for log, want := range map[string]string{
		"1.2 1.3":         "SNAP(1.7)",
		"1.2":             "SNAP(1.7)",
		"1.2 1.3 1.4":     "DIFF(1.7) 1.3 1.4 1.5 1.6 1.7",
		"1.2 1.3 1.4 1.5": "DIFF(1.7) 1.3 1.4 1.5 1.6 1.7",
	} {
		if got := choice("1.5 1.6 1.7", log, "1.2"); got != want {
			t.Errorf("log of %s: %s, want %s", log, got, want)
		}
	}
}

// TestZK2846LogOfAnotherHistory: transactions from the disk are sent only if they directly follow the
// learner's last transaction.
func TestZK2846LogOfAnotherHistory(t *testing.T) {
	for _, c := range []struct{ remembered, log, peer, want string }{
		{"2.1 2.2", "1.7 1.8 2.1", "1.9", "SNAP(2.2)"},         // the log on disk lacks the learner's last transaction
		{"1.7 1.8", "1.2 1.3 1.5 1.6", "1.3", "SNAP(1.8)"},     // the log on disk has a gap after the learner's last transaction
		{"1.7 1.8", "1.3 1.5 1.6", "1.3", "SNAP(1.8)"},         // the log on disk lacks the transaction that follows the learner's last one
		{"2.2 2.3", "1.3 2.1", "1.3", "DIFF(2.3) 2.1 2.2 2.3"}, // the transactions that the learner lacks begin a new epoch
	} {
		if got := choice(c.remembered, c.log, c.peer); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestZK4352LearnerWithoutHistory: a leader whose log in memory begins with its own epoch
// sends a snapshot to a learner that lacks earlier transactions.
func TestZK4352LearnerWithoutHistory(t *testing.T) {
	for _, peer := range []string{"0", "1.3"} {
		if got := choice("2.1 2.2", "", peer); got != "SNAP(2.2)" {
			t.Errorf("learner at %s: %s", peer, got)
		}
	}
	if got := choice("2.1 2.2", "2.1 2.2", "0"); got != "SNAP(2.2)" {
		t.Errorf("with a disk log: %s", got)
	}
}

// TestZK3526UnknownZxidGetsSnapshot: if the last zxid of a learner is in no history of this ensemble,
// the leader sends a snapshot, not a truncation. In the bug it was the zxid of a read-only server.
func TestZK3526UnknownZxidGetsSnapshot(t *testing.T) {
	for _, peer := range []string{"7.0", "7.3"} {
		if got := choice("1.5 1.6", "", peer); got != "SNAP(1.6)" {
			t.Errorf("learner at %s: %s", peer, got)
		}
	}
	if got := choice("1.5 2.1", "", "1.9"); got != "SNAP(2.1)" {
		t.Errorf("between two epochs: %s", got)
	}
}
