package zab

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// TestCommitment shows which of the entries 1 to 5 are committed on leader 1, depending on the last entry
// that each server has on its disk.
func TestCommitment(t *testing.T) {
	for _, c := range []struct {
		name     string
		voters   string // voters of the committed membership
		proposed string // voters of the membership that entry 3 proposes
		disks    string // server=last entry; with o the server is connected as an observer, with n it has not acknowledged the history
		want     uint32
	}{
		{"standalone: its own disk", "1", "", "1=4", 4},
		{"standalone: nothing durable", "1", "", "1=0", 0},
		{"the entry that two of three have", "1 2 3", "", "1=5 2=3 3=1", 3},
		{"without the leader's disk", "1 2 3", "", "1=0 2=2 3=4", 2},
		{"the leader alone is no quorum", "1 2 3", "", "1=5", 0},
		{"two of four are no quorum", "1 2 3 4", "", "1=5 2=5", 0},
		{"three of four are", "1 2 3 4", "", "1=5 2=5 4=1", 1},
		{"an observer does not count", "1 2 3", "", "1=5 2=5o", 0},
		{"nor does one without a vote", "1 2 3", "", "1=5 4=5 5=5", 0},
		{"nor an ACK before that of the history", "1 2 3", "", "1=5 2=5n", 0},
		{"a leader without a vote", "2 3 4", "", "1=0 2=3 3=2", 2},
		{"reconfiguration: the committed quorum is missing", "1 2 3", "1 4 5", "1=5 4=5 5=5", 0},
		{"reconfiguration: the proposed quorum is missing", "1 2 3", "1 4 5", "1=5 2=5 3=5", 0},
		{"reconfiguration: each by its slower quorum", "1 2 3", "1 4 5", "1=5 2=2 4=1", 1},
		{"reconfiguration: nothing behind it", "1 2 3", "1 4 5", "1=5 2=5 4=5", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			com := commitment{self: 1, committed: configuration(1, c.voters), servers: map[ensemble.ServerID]*link{}}
			if c.proposed != "" {
				com.lastSeen, com.reconfig = configuration(2, c.proposed), wire.MakeZxid(2, 3)
			}
			for _, f := range strings.Fields(c.disks) {
				var id ensemble.ServerID
				var n uint32
				fmt.Sscanf(f, "%d=%d", &id, &n)
				has := acks{adopted: !strings.HasSuffix(f, "n"), durable: wire.MakeZxid(2, n)}
				if id == com.self {
					com.own = has
				} else {
					com.servers[id] = &link{acks: has, observer: strings.HasSuffix(f, "o")}
				}
			}
			var entries []*record.Txn
			for i := range uint32(5) {
				entries = append(entries, one(fmt.Sprintf("2.%d", i+1)))
			}
			if got := com.decided(wire.MakeZxid(2, 0), entries); got != wire.MakeZxid(2, c.want) {
				t.Errorf("committed up to %v, want entry %d", got, c.want)
			}
		})
	}
}

// TestCheckFindsBrokenInvariants shows that check notices broken invariants of links and commitment: each
// change breaks one of them.
func TestCheckFindsBrokenInvariants(t *testing.T) {
	for name, breaks := range map[string]func(l *Leader, k *link){
		"an ACK of what was never proposed": func(l *Leader, k *link) { k.durable = l.proposed + 1 },
		"an ACK taken back":                 func(l *Leader, k *link) { k.durable = k.upTo - 1 },
		"adopted without an ACK":            func(l *Leader, k *link) { k.state = linkSyncing },
		"waits for what is acknowledged":    func(l *Leader, k *link) { k.watched = k.durable },
		"an answer to no ping":              func(l *Leader, k *link) { k.answered.n = l.pings.last.n + 1 },
		"confirmed before it was answered":  func(l *Leader, k *link) { k.confirmed = k.reports + 1 },
		"a link that lost its server":       func(l *Leader, k *link) { delete(l.servers, k.server) },
		"durable here before it is logged":  func(l *Leader, k *link) { l.own.durable = l.log.last + 1 },
		"a log with a gap":                  func(l *Leader, k *link) { l.log.last++ },
	} {
		t.Run(name, func(t *testing.T) {
			l := servingWorld(false).nodes[2].leader
			if err := l.check(); err != nil {
				t.Fatal(err)
			}
			breaks(l, l.order[0])
			if l.check() == nil {
				t.Error("check does not notice the broken invariant")
			}
		})
	}
}

// BenchmarkCommit measures the leader's part in one write: the proposal, the ACKs of two of three
// servers, and the commit.
func BenchmarkCommit(b *testing.B) {
	l := establishedLeader(b, 3, 2, newWorld(1, 3, 0).members, logOf(b, "1.1", ""))
	for id := range ensemble.ServerID(2) {
		greet(l, LinkID(id+1), id+1, "1.1", false)
		l.Step(0, Received{LinkID(id + 1), pack(peerwire.PacketAck, "2.0", nil)})
	}
	l.Ready()
	t := one("2.1")
	ack := &peerwire.QuorumPacket{Type: peerwire.PacketAck}
	b.ReportAllocs()
	for b.Loop() {
		z, _ := l.NextZxid()
		txn := *t
		txn.Zxid = z
		l.Step(0, Propose{&txn})
		l.Step(0, Synced{z, l.generation})
		ack.Zxid = z
		l.Step(0, Received{1, ack})
		if r := l.Ready(); len(r.Commit) != 1 {
			b.Fatal("not committed")
		}
		l.Step(0, Received{2, ack})
	}
}
