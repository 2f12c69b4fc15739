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

// TestLearnerJoinsWhenItPromises: Joined is set whether or not the epoch is new to the learner.
func TestLearnerJoinsWhenItPromises(t *testing.T) {
	for _, accepted := range []wire.Epoch{1, 2} {
		m := newWorld(1, 3, 0).members
		r := NewLearner(0, LearnerOptions{Link: 1, Leader: 3, TermStart: TermStart{
			ID: 1, Accepted: accepted, Current: 1, Committed: m, TickMS: 1000, InitLimit: 10, SyncLimit: 5,
		}}, logOf(t, "1.5", ""))
		if r.Ready().Joined {
			t.Error("joined at once")
		}
		take(r, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: zx("2.0"), Data: wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})})
		if out := r.Ready(); out.Joined != (accepted == 2) {
			t.Errorf("accepted %d: joined %v before the epoch is saved", accepted, out.Joined)
		}
		r.Step(0, Saved{Accepted: 2, Generation: r.generation})
		if out := r.Ready(); out.Joined != (accepted == 1) {
			t.Errorf("accepted %d: joined %v once the epoch is saved", accepted, out.Joined)
		}
		take(r, pack(peerwire.PacketDiff, "1.5", nil))
		if r.Ready().Joined {
			t.Error("joined twice")
		}
	}
}

// activate returns the packet that commits a reconfiguration.
func activate(zxid string, leader ensemble.ServerID, inform *record.Txn) *peerwire.QuorumPacket {
	a := &peerwire.Activation{Leader: leader}
	p := &peerwire.QuorumPacket{Type: peerwire.PacketCommitActivate, Zxid: zx(zxid)}
	if inform != nil {
		p.Type, a.Txn = peerwire.PacketInformActivate, inform.Append(nil)
	}
	p.Data = wire.Append(nil, a)
	return p
}

// TestLearnerActivates: a follower or an observer uses a committed reconfiguration from its packet on. If
// the new configuration gives this server another role, or the ensemble another leader, the term ends.
// Before UPTODATE such packets wait until UPTODATE.
func TestLearnerActivates(t *testing.T) {
	for _, c := range []struct {
		servers  string
		observer bool
		files    bool // the server uses the configuration of its files
		leader   ensemble.ServerID
		ends     string
	}{
		{servers: "1 2 3 4", leader: 3},
		{servers: "2 3 4", leader: 3}, // a server that is not in the configuration goes on without a vote
		{servers: "2 3 | 1", leader: 3, ends: "role"},
		{servers: "1 2 4", leader: 4, ends: "server 4 leads"},
		{servers: "1 2 4", leader: 1, ends: "server 1 leads"},
		{servers: "1 2 4", leader: 4, files: true},
		{servers: "2 3 4 | 1", leader: 3, observer: true},
		{servers: "1 2 3", leader: 3, observer: true, ends: "role"},
		{servers: "2 3", leader: 3, observer: true, ends: "role"},
	} {
		for _, late := range []bool{true, false} {
			t.Run(fmt.Sprintf("%+v/%v", c, late), func(t *testing.T) {
				r := soloLearner(t, "1.5", "", c.observer)
				r.opt.Reconfig = !c.files
				x := reconfiguration("2.1", c.servers)
				packets := []*peerwire.QuorumPacket{pack(peerwire.PacketProposal, "2.1", x), activate("2.1", c.leader, nil)}
				if c.observer {
					packets = []*peerwire.QuorumPacket{activate("2.1", c.leader, x)}
				}
				now := []byte(configuration(0, "1 2 3").String())
				if c.observer {
					now = []byte(configuration(0, "2 3 | 1").String())
				}
				take(r, pack(peerwire.PacketDiff, "1.5", nil), &peerwire.QuorumPacket{Type: peerwire.PacketNewLeader, Zxid: zx("2.0"), Data: now})
				carryDisk(r)
				var before Ready
				if late {
					take(r, pack(peerwire.PacketUpToDate, "0", nil))
					before = r.Ready()
					take(r, packets...)
				} else {
					take(r, packets...)
					take(r, pack(peerwire.PacketUpToDate, "0", nil))
				}
				out := r.Ready()
				if (c.ends == "") != (out.GiveUp == "") || !strings.Contains(out.GiveUp, c.ends) {
					t.Errorf("ended: %q", out.GiveUp)
				}
				var m *ensemble.Membership
				leader := ensemble.ServerID(3)
				if len(out.Reconfigured) == 1 {
					m, leader = out.Reconfigured[0].Members, out.Reconfigured[0].Leader
				} else if out.Established != nil {
					m = out.Established.Members
				}
				switch {
				case c.files && m != nil:
					t.Errorf("took over %v", m)
				case !c.files && (m == nil || m.Version() != int64(zx("2.1")) || leader != c.leader):
					t.Errorf("%v under %d, want that of 2.1 under %d", m, leader, c.leader)
				case c.ends == "" && len(out.Commit) != 1, late && before.Established == nil:
					t.Errorf("%+v", out)
				}
			})
		}
	}
}

// TestActivationWhenTheLogIsTrimmed: a follower uses a committed reconfiguration also if the log in memory drops
// old transactions at this commit.
func TestActivationWhenTheLogIsTrimmed(t *testing.T) {
	r := soloLearner(t, "1.5", "", false)
	r.opt.Reconfig = true
	take(r, pack(peerwire.PacketDiff, "1.5", nil), &peerwire.QuorumPacket{Type: peerwire.PacketNewLeader, Zxid: zx("2.0"), Data: []byte(configuration(0, "1 2 3").String())})
	carryDisk(r)
	take(r, pack(peerwire.PacketUpToDate, "0", nil))
	for i := 1; i < 2*KeepMin; i++ {
		z := fmt.Sprintf("2.%d", i)
		take(r, pack(peerwire.PacketProposal, z, one(z)), pack(peerwire.PacketCommit, z, nil))
	}
	last := fmt.Sprintf("2.%d", 2*KeepMin)
	take(r, pack(peerwire.PacketProposal, last, reconfiguration(last, "1 2 3")), activate(last, 3, nil))
	if r.log.before == zx("1.5") {
		t.Error("the log is not trimmed")
	}
	if out := r.Ready(); len(out.Reconfigured) != 1 || out.Reconfigured[0].Members == nil || out.Reconfigured[0].Zxid != zx(last) {
		t.Errorf("%+v, ends with %q", out.Reconfigured, out.GiveUp)
	}
}

// TestActivationThatCannotBeRead: a packet with a configuration that cannot be read ends the term, before
// and after UPTODATE.
func TestActivationThatCannotBeRead(t *testing.T) {
	for _, late := range []bool{true, false} {
		r := soloLearner(t, "1.5", "", false)
		take(r, pack(peerwire.PacketDiff, "1.5", nil), pack(peerwire.PacketNewLeader, "2.0", nil))
		carryDisk(r)
		if late {
			take(r, pack(peerwire.PacketUpToDate, "0", nil))
		}
		take(r, pack(peerwire.PacketProposal, "2.1", reconfiguration("2.1", "1 2 3")), pack(peerwire.PacketCommitActivate, "2.1", nil))
		if out := r.Ready(); !strings.Contains(out.GiveUp, "cannot be read") || len(out.Commit) != 0 {
			t.Errorf("%q", out.GiveUp)
		}
	}
}

// TestLearnerRecordsMemberships: what NEWLEADER carries is proposed, UPTODATE commits it, and
// COMMITANDACTIVATE commits a later one. At UPTODATE the term ends if the leader has lost its vote.
func TestLearnerRecordsMemberships(t *testing.T) {
	begin := func(servers string) *Learner {
		r := soloLearner(t, "1.5", "", false)
		r.opt.Reconfig = true
		r.log.Configure(r.opt.Committed)
		take(r, pack(peerwire.PacketDiff, "1.5", nil),
			&peerwire.QuorumPacket{Type: peerwire.PacketNewLeader, Zxid: zx("2.0"), Data: []byte(configuration(zx("1.4"), servers).String())})
		if committed, proposed := r.log.Memberships(); committed != r.opt.Committed || proposed == nil || proposed.Version() != int64(zx("1.4")) {
			t.Fatalf("after NEWLEADER: %v, %v", committed, proposed)
		}
		carryDisk(r)
		take(r, pack(peerwire.PacketUpToDate, "0", nil))
		if committed, proposed := r.log.Memberships(); committed.Version() != int64(zx("1.4")) || proposed != nil {
			t.Fatalf("after UPTODATE: %v, %v", committed, proposed)
		}
		return r
	}
	r := begin("1 2 3 4")
	x := reconfiguration("2.1", "1 3 4")
	take(r, &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: x.Zxid, Data: x.Append(nil)}, activate("2.1", 3, nil))
	if committed, proposed := r.log.Memberships(); committed.Version() != int64(zx("2.1")) || proposed != nil {
		t.Errorf("after COMMITANDACTIVATE: %v, %v", committed, proposed)
	}
	if out := r.Ready(); out.GiveUp != "" {
		t.Error(out.GiveUp)
	}
	r.extension = peerwire.ExtensionHandOver
	r.successorNamed(&peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Zxid: x.Zxid, Data: wire.Append(nil, &peerwire.Handover{Leader: 4})})
	if s := r.Ready().Successor; s == nil || s.Leader != 4 {
		t.Errorf("a voter of the new membership cannot be named: %v", s)
	}
	r = begin("1 2 4")
	if out := r.Ready(); !strings.Contains(out.GiveUp, "no vote") {
		t.Errorf("goes on under a leader without a vote: %q", out.GiveUp)
	}
}

// TestConfigurationOfAForgetfulLeader: a learner that refuses a leader's history does not take over the configuration behind it.
func TestConfigurationOfAForgetfulLeader(t *testing.T) {
	r := soloLearner(t, "1.4", "1.5", false)
	r.opt.Reconfig, r.opt.Elected = true, zx("1.8")
	take(r, pack(peerwire.PacketDiff, "1.5", nil), &peerwire.QuorumPacket{Type: peerwire.PacketNewLeader, Zxid: zx("2.0"), Data: []byte(configuration(zx("1.4"), "1 2 3 4").String())})
	if out := r.Ready(); !out.Again || out.LastSeen != nil || r.members != nil {
		t.Errorf("asks for a snapshot: %v; configuration: %v, %v", out.Again, out.LastSeen, r.members)
	}
}
