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

// Some recordings of this file begin while their servers already serve. The others show reconfigurations,
// the end of the counter, and the log on disk.

// recordedConfiguration returns the last configuration that a recorded leader sent, with another version.
func recordedConfiguration(t *testing.T, scenario, version string) *ensemble.Membership {
	t.Helper()
	all := recordings(t, scenario)
	for _, r := range slices.Backward(all) {
		if r.Kind == "NEWLEADER" {
			return recordedMembers(t, []recorded{r}).WithVersion(int64(zx(version)))
		}
	}
	t.Fatal("no NEWLEADER packet in scenario", scenario)
	return nil
}

// of returns the packets of the given connections.
func of(all []recorded, conns ...string) []recorded {
	return slices.DeleteFunc(slices.Clone(all), func(r recorded) bool { return !slices.Contains(conns, r.Conn) })
}

// until returns the part of the recording that precedes a packet.
func until(all []recorded, name string) []recorded {
	i := slices.IndexFunc(all, func(r recorded) bool { return r.Name == name })
	return all[:i]
}

// from returns the part of the recording that begins with a packet.
func from(all []recorded, name string) []recorded {
	i := slices.IndexFunc(all, func(r recorded) bool { return r.Name == name })
	return all[i:]
}

// conversation is the recorded conversation of one server, and the state in which it begins. attached are
// the connections that existed before.
type conversation struct {
	all      []recorded
	id       ensemble.ServerID
	epoch    wire.Epoch
	members  *ensemble.Membership
	log      string
	attached map[string]ensemble.ServerID
	observer string // the one of these connections that belongs to an observer
	ends     bool   // the term ends with the recording
}

// attach gives a serving leader the connections that existed before.
func (c *conversation) attach(l *Leader) map[string]LinkID {
	links := map[string]LinkID{}
	for conn, server := range c.attached {
		id := LinkID(100 + server)
		links[conn] = id
		greet(l, id, server, c.log, conn == c.observer)
		l.Step(0, Received{id, pack(peerwire.PacketAck, dotted(wire.MakeZxid(c.epoch, 0)), nil)})
	}
	l.Ready()
	return links
}

// leaderGoesOn plays leaders that serve: with reconfigurations that let them continue or end their term,
// at the end of the counter, and with sessions that become global late. The leader must do what the
// recorded one did.
func leaderGoesOn(t *testing.T, seen *ledger) {
	reconfig, removed := recordings(t, "s7-reconfig"), recordings(t, "s8-reconfig-leader")
	rollover, local := recordings(t, "s9-rollover"), recordings(t, "s12-localsession")
	three := recordedConfiguration(t, "s9-rollover", "1.0")
	for name, c := range map[string]conversation{
		"an observer is removed and added": {
			all: reconfig, id: 3, epoch: 3, members: recordedConfiguration(t, "s7-reconfig", "1.0"), log: "3.1",
			attached: map[string]ensemble.ServerID{"57348>23223": 1, "57364>23223": 2, "57340>23223": 4}, observer: "57340>23223",
		},
		"the leader is removed": {
			all: of(removed, "51582>23223", "51572>23223"), id: 3, epoch: 1, members: three, log: "0",
			attached: map[string]ensemble.ServerID{"51582>23223": 1, "51572>23223": 2}, ends: true,
		},
		"the counter ends": {
			all: from(of(rollover, "49220>23223", "49234>23223"), "s9-rollover/003-proposal"), id: 3, epoch: 1, members: three, log: "1.4294967291",
			attached: map[string]ensemble.ServerID{"49220>23223": 1, "49234>23223": 2}, ends: true,
		},
		"the counter of the next epoch, set by hand": {
			all: from(of(rollover, "38758>23222", "38762>23222"), "s9-rollover/039-request"), id: 2, epoch: 2, members: three, log: "2.4294967291",
			attached: map[string]ensemble.ServerID{"38758>23222": 1, "38762>23222": 3},
		},
		"a session becomes global": {
			all: local, id: 3, epoch: 1, members: three, log: "0",
			attached: map[string]ensemble.ServerID{"34746>23223": 1, "34742>23223": 2},
		},
		// The leader had proposed nothing before the counter was set by hand.
		"the counter at its beginning": {
			all: until(of(rollover, "49234>23223"), "s9-rollover/003-proposal"), id: 3, epoch: 1, members: three, log: "0",
			attached: map[string]ensemble.ServerID{"49234>23223": 2},
		},
		"pings of a leader that is about to die": {
			all: of(recordings(t, "s3-failover"), "35012>23223", "35018>23223"), id: 3, epoch: 1, members: three, log: "1.9",
			attached: map[string]ensemble.ServerID{"35012>23223": 1, "35018>23223": 2},
		},
		"pings while another comes back": {
			all: of(recordings(t, "s4-diff"), "49436>23222"), id: 2, epoch: 2, members: recordedMembers(t, recordings(t, "s4-diff")), log: "2.5",
			attached: map[string]ensemble.ServerID{"49436>23222": 1},
		},
		"pings while another comes back empty": {
			all: of(recordings(t, "s5-snap"), "49442>23222", "41722>23222"), id: 2, epoch: 2, members: recordedMembers(t, recordings(t, "s5-snap")), log: "2.5",
			attached: map[string]ensemble.ServerID{"49442>23222": 4, "41722>23222": 3}, observer: "49442>23222",
		},
		"pings while another is cut back": {
			all: of(recordings(t, "s6-trunc"), "57340>23223", "57348>23223"), id: 3, epoch: 3, members: recordedMembers(t, recordings(t, "s6-trunc")), log: "2.7",
			attached: map[string]ensemble.ServerID{"57340>23223": 4, "57348>23223": 1}, observer: "57340>23223",
		},
		"pings while the log on disk is read": {
			all: of(recordings(t, "s11-disklog"), "39028>23223"), id: 3, epoch: 2, members: three, log: "2.625",
			attached: map[string]ensemble.ServerID{"39028>23223": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := establishedLeader(t, c.id, c.epoch, c.members, NewLog(zx(c.log), 0))
			l.proposed = max(l.proposed, l.log.last)
			replayToLeader(t, seen, l, c.all, c.attach(l))
			if l.Serving() == c.ends {
				t.Errorf("serves: %v", l.Serving())
			}
		})
	}
}

// leaderAnew plays three leaders: one that another leader has named as its successor, one whose term
// begins because the zxid counter was used up, and one whose observers are connected to a follower.
func leaderAnew(t *testing.T, seen *ledger) {
	for name, c := range map[string]conversation{
		"designated": {
			all: of(recordings(t, "s8-reconfig-leader"), "48910>23221", "48926>23221"), id: 1, epoch: 1,
			members: recordedConfiguration(t, "s8-reconfig-leader", "1.3"), log: "1.3",
		},
		"behind the end of the counter": {
			all: until(of(recordings(t, "s9-rollover"), "38758>23222", "38762>23222"), "s9-rollover/040-proposal"), id: 2, epoch: 1,
			members: recordedConfiguration(t, "s9-rollover", "1.0"), log: "1.4294967294",
		},
		"observers of a follower": {
			all: of(recordings(t, "s13-observermaster"), "60856>23223", "60864>23223"), id: 3,
			members: recordedConfiguration(t, "s13-observermaster", "0"), log: "0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLeader(0, LeaderOptions{TermStart: TermStart{
				ID: c.id, Accepted: c.epoch, Current: c.epoch, Committed: c.members, TickMS: 2000, InitLimit: 10, SyncLimit: 5,
			}}, NewLog(zx(c.log), 0))
			replayToLeader(t, seen, l, c.all, nil)
		})
	}
}

// leaderReadsItsDisk plays a learner that was 622 transactions behind. The leader's memory holds fewer,
// so the first of them come from the disk.
func leaderReadsItsDisk(t *testing.T, seen *ledger) {
	all := recordings(t, "s11-disklog")
	known := map[wire.Zxid]*record.Txn{}
	for _, r := range all {
		if r.packet != nil && r.packet.Type == peerwire.PacketProposal {
			known[r.packet.Zxid] = recordedTxn(t, r)
		}
	}
	var txns []*record.Txn
	for z := zx("2.4"); z <= zx("2.625"); z++ {
		if known[z] == nil {
			known[z] = one(dotted(z))
		}
		txns = append(txns, known[z])
	}
	g := NewLog(zx("2.100"), 0)
	for _, x := range txns[97:] {
		if err := g.Append(x); err != nil {
			t.Fatal(err)
		}
	}
	l := establishedLeader(t, 3, 2, newWorld(1, 3, 0).members, g)
	l.opt.DiskLog = true
	var sent []string
	take := func(out Ready) {
		for _, m := range out.Send {
			sent = append(sent, encoded(m.Packet))
		}
		for _, q := range out.ReadLog {
			if q.After != zx("2.3") || q.Through < zx("2.100") {
				t.Errorf("asked for %+v", q)
			}
			l.Step(0, LogRead{Link: q.Link, Txns: txns[:200], OK: true})
		}
	}
	l.Step(0, Opened{1})
	for _, r := range all {
		if *r.To == 3 && r.Conn == "39048>23223" {
			seen.heard[r.Name] = true
			l.Step(0, Received{1, r.packet})
			take(l.Ready())
			take(l.Ready())
		}
	}
	var want []string
	for _, r := range of(all, "39048>23223") {
		if *r.From == 3 {
			seen.said[r.Name] = true
			want = append(want, encoded(r.packet))
		}
	}
	if len(want) < 20 || !slices.Equal(sent[:len(want)], want) || len(sent) != 1+1+2*622+1 {
		t.Errorf("%d packets sent, the first\n%s\nrecorded\n%s", len(sent), strings.Join(sent[:len(want)], "\n"), strings.Join(want, "\n"))
	}
}

// learnerGoesOn plays the learners' side of the same recordings, from the middle of a term.
func learnerGoesOn(t *testing.T, seen *ledger) {
	reconfig, removed := recordings(t, "s7-reconfig"), recordings(t, "s8-reconfig-leader")
	rollover, local := recordings(t, "s9-rollover"), recordings(t, "s12-localsession")
	three := recordedConfiguration(t, "s9-rollover", "1.0")
	for name, c := range map[string]conversation{
		"a follower of s7": {all: of(reconfig, "57348>23223"), id: 1, epoch: 3, members: recordedConfiguration(t, "s7-reconfig", "1.0"), log: "3.1"},
		"the observer that is removed": {
			all: of(reconfig, "57340>23223"), id: 4, epoch: 3, members: recordedConfiguration(t, "s7-reconfig", "1.0"), log: "3.1", ends: true,
		},
		"the one that is designated":   {all: of(removed, "51582>23223"), id: 1, epoch: 1, members: three, log: "0", ends: true},
		"the other one":                {all: of(removed, "51572>23223"), id: 2, epoch: 1, members: three, log: "0", ends: true},
		"the end of the counter":       {all: of(rollover, "49220>23223"), id: 1, epoch: 1, members: three, log: "1.4294967291"},
		"the next, set by hand":        {all: from(of(rollover, "38758>23222"), "s9-rollover/041-proposal"), id: 1, epoch: 2, members: three, log: "2.4294967291"},
		"the same by another":          {all: from(of(rollover, "49234>23223"), "s9-rollover/003-proposal"), id: 2, epoch: 1, members: three, log: "1.4294967291"},
		"the counter at its beginning": {all: until(of(rollover, "49234>23223"), "s9-rollover/003-proposal"), id: 2, epoch: 1, members: three, log: "0"},
		"pings of s3":                  {all: of(recordings(t, "s3-failover"), "35012>23223"), id: 1, epoch: 1, members: three, log: "1.9"},
		"more of them":                 {all: of(recordings(t, "s3-failover"), "35018>23223"), id: 2, epoch: 1, members: three, log: "1.9"},
		"pings of s4":                  {all: of(recordings(t, "s4-diff"), "49436>23222"), id: 1, epoch: 2, members: three, log: "2.5"},
		"pings of s5":                  {all: of(recordings(t, "s5-snap"), "41722>23222"), id: 3, epoch: 2, members: three, log: "2.5"},
		"pings of s5 to an observer":   {all: of(recordings(t, "s5-snap"), "49442>23222"), id: 4, epoch: 2, members: recordedMembers(t, recordings(t, "s5-snap")), log: "2.5"},
		"pings of s6":                  {all: of(recordings(t, "s6-trunc"), "57348>23223"), id: 1, epoch: 3, members: three, log: "2.7"},
		"pings of s6 to an observer":   {all: of(recordings(t, "s6-trunc"), "57340>23223"), id: 4, epoch: 3, members: recordedMembers(t, recordings(t, "s6-trunc")), log: "2.7"},
		"pings of s11":                 {all: of(recordings(t, "s11-disklog"), "39028>23223"), id: 2, epoch: 2, members: three, log: "2.625"},
		"where the session is global":  {all: of(local, "34746>23223"), id: 1, epoch: 1, members: three, log: "0"},
		"where it is not":              {all: of(local, "34742>23223"), id: 2, epoch: 1, members: three, log: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := wireLearner(t, seen, c.members, c.id, c.epoch-1, c.epoch-1, NewLog(zx(c.log), 0))
			w.opt.Leader = 3
			w.designated = 3
			zero := dotted(wire.MakeZxid(c.epoch, 0))
			for _, p := range []*peerwire.QuorumPacket{
				{Type: peerwire.PacketLeaderInfo, Zxid: zx(zero), Data: wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})},
				pack(peerwire.PacketDiff, c.log, nil), pack(peerwire.PacketNewLeader, zero, nil), pack(peerwire.PacketUpToDate, "0", nil),
			} {
				w.Step(0, Received{1, p})
				w.carry()
			}
			w.got = nil // drop what the learner sent before the recorded part of the term
			w.playAll(c.all)
			if g, want := strings.Join(w.got, "\n"), strings.Join(w.want, "\n"); g != want {
				t.Errorf("sent\n%s\nrecorded\n%s", g, want)
			}
			if w.Serving() == c.ends || len(w.got)+w.pings == 0 && c.id != 4 {
				t.Errorf("serves: %v, sent %d", w.Serving(), len(w.got))
			}
		})
	}
}

// learnerAnew plays learners of the terms that begin in these recordings.
func learnerAnew(t *testing.T, seen *ledger) {
	for name, c := range map[string]conversation{
		"removed, a learner all the same": {
			all: of(recordings(t, "s7-reconfig"), "51012>23223"), id: 4, epoch: 3,
			members: recordedMembers(t, recordings(t, "s7-reconfig")), log: "3.3", ends: true,
		},
		"added again as an observer": {
			all: of(recordings(t, "s7-reconfig"), "51018>23223"), id: 4, epoch: 3, members: recordedConfiguration(t, "s7-reconfig", "3.4"), log: "3.4",
		},
		"the leader that was removed": {
			all: of(recordings(t, "s8-reconfig-leader"), "48910>23221"), id: 3, epoch: 1,
			members: recordedConfiguration(t, "s8-reconfig-leader", "1.3"), log: "1.3",
		},
		"a follower of the designated": {
			all: of(recordings(t, "s8-reconfig-leader"), "48926>23221"), id: 2, epoch: 1,
			members: recordedConfiguration(t, "s8-reconfig-leader", "1.3"), log: "1.3",
		},
		"behind the end of the counter": {
			all: until(of(recordings(t, "s9-rollover"), "38762>23222"), "s9-rollover/040-proposal"), id: 3, epoch: 1,
			members: recordedConfiguration(t, "s9-rollover", "1.0"), log: "1.4294967294",
		},
		"a follower with an observer of its own": {
			all: of(recordings(t, "s13-observermaster"), "60856>23223"), id: 1,
			members: recordedConfiguration(t, "s13-observermaster", "0"), log: "0",
		},
		"an observer of a follower": {
			all: of(recordings(t, "s13-observermaster"), "56342>om23250"), id: 4,
			members: recordedConfiguration(t, "s13-observermaster", "1.0"), log: "0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := wireLearner(t, seen, c.members, c.id, c.epoch, c.epoch, NewLog(zx(c.log), 0))
			w.opt.Leader = *c.all[0].To
			w.designated = w.opt.Leader
			w.playAll(c.all)
			if g, want := strings.Join(w.got, "\n"), strings.Join(w.want, "\n"); g != want || want == "" {
				t.Errorf("sent\n%s\nrecorded\n%s", g, want)
			}
			if w.Serving() == c.ends {
				t.Errorf("serves: %v", w.Serving())
			}
		})
	}
}
