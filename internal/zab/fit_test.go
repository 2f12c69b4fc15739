package zab

import (
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// fitnessPackets returns the reasons in the FITNESS packets of a Ready.
func fitnessPackets(r *Ready) (all []string) {
	for _, m := range r.Send {
		if m.Packet.Type == peerwire.PacketFitness {
			var f peerwire.Fitness
			if err := wire.Decode(m.Packet.Data, &f); err != nil {
				panic(err)
			}
			all = append(all, f.Why)
		}
	}
	return all
}

// TestFitnessIsTold: a follower tells a leader that knows the packet why it should not lead, and no other
// leader. A long reason is cut.
func TestFitnessIsTold(t *testing.T) {
	long := strings.Repeat("é", peerwire.FitnessMax)
	for _, c := range []struct {
		tells     bool
		step      step
		why, want string
	}{
		{true, following, "its disk is full", "its disk is full"},
		{true, following, "", ""},
		{true, following, "x" + long, "x" + long[:peerwire.FitnessMax-2]},
		{false, following, "its disk is full", "none"},
		{true, adopted, "its disk is full", "none"},
	} {
		r := servingWorld(false).nodes[0].learner
		if r.extension < peerwire.ExtensionFitness {
			t.Fatal("native peers have not agreed on the packet")
		}
		if r.step = c.step; !c.tells {
			r.extension = peerwire.ExtensionFitness - 1
		}
		r.Step(r.now, Fitness{c.why})
		out := r.Ready()
		got := fitnessPackets(&out)
		if c.want == "none" && len(got) > 0 || c.want != "none" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestFitnessIsNegotiated: the smaller of the two versions counts.
func TestFitnessIsNegotiated(t *testing.T) {
	for version, want := range map[int32]bool{1: false, 2: false, 3: true, 4: true} {
		w := newWorld(1, 3, 0)
		r := NewLearner(0, LearnerOptions{TermStart: w.terms(w.nodes[0]), Link: 1, Leader: 3}, w.nodes[0].log)
		data := wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})
		data = wire.Append(data, &peerwire.Extension{Version: version})
		r.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: zx("1.0"), Data: data}})
		if tells := r.extension >= peerwire.ExtensionFitness; tells != want || !r.native {
			t.Errorf("version %d: %v, native %v", version, tells, r.native)
		}
	}
}

// TestUnfitFollower: a leader remembers and reports once why a follower should not lead, until the follower says
// that it may. Meanwhile it counts as not fit, but its acknowledgements count. A packet that cannot be read
// ends the link.
func TestUnfitFollower(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	link := l.servers[1].id
	say := func(data []byte) []Observation {
		l.Step(w.now, Received{link, &peerwire.QuorumPacket{Type: peerwire.PacketFitness, Data: data}})
		return l.Ready().Observations
	}
	why := func(text string) []byte { return wire.Append(nil, &peerwire.Fitness{Why: text}) }
	l.checkFit()
	if l.FitMS(1) < 0 || l.servers[1].fitSince == Never {
		t.Fatal("server 1 is not fit from the start")
	}
	seen := say(why("its disk is full"))
	if len(seen) != 1 || seen[0] != (LearnerFitness{"follower 1", "its disk is full"}) || len(say(why("its disk is full"))) > 0 {
		t.Errorf("%v", seen)
	}
	l.checkFit()
	if l.servers[1].fitSince != Never || l.Unfit() != "server 1: its disk is full" || l.Learners()[0].Unfit+l.Learners()[1].Unfit+l.Learners()[2].Unfit != "its disk is full" {
		t.Errorf("unfit: %q", l.Unfit())
	}
	z, _ := l.NextZxid()
	l.Step(w.now, Propose{w.txn(z)})
	l.Step(w.now, Synced{z, l.generation})
	acknowledge(l, w.now, 1, z)
	if r := l.Ready(); len(r.Commit) != 1 {
		t.Error("the acknowledgement of an unfit follower does not count")
	}
	if seen := say(why("")); len(seen) != 1 || l.Unfit() != "" {
		t.Errorf("%v, unfit: %q", seen, l.Unfit())
	}
	l.checkFit()
	if l.servers[1].fitSince != l.now {
		t.Error("server 1 is not fit again")
	}
	if say([]byte{0}); l.links[link] != nil {
		t.Error("the link is open after a packet that cannot be read")
	}
}
