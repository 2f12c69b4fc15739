package sim

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// At the end of some runs, the memory of a server changes, so that its tree or the snapshots that it sends are wrong. No client reads
// the znode that is changed, so every rule but EqualDigest holds nevertheless. Each time the leader compares the trees.

// spoilTree brings about one of these cases, often none.
func (s *Sim) spoilTree() {
	d := machine.NewRandom(s.opt.Seed ^ 0x5b011)
	if !d.Chance(15) || s.ended() || s.opt.Seed < prioritiesFrom || s.opt.Compatible > 0 || s.holed() != nil {
		return
	}
	// A tree that has just been copied proves nothing before a comparison has confirmed it. The leader may wait for a late server
	// for syncLimit, which is 5 ticks.
	s.RunFor(9 * s.opt.TickMS * machine.Millisecond)
	l := s.leader()
	if s.ended() || l == nil {
		return
	}
	v := s.servers[d.Below(int64(len(s.servers)))]
	switch n := d.Below(10); {
	case n < 3 && len(s.roster.newest.Voters()) == 3:
		s.spoilLeaderAndCopy(l, d)
	case n < 5:
		s.spoilCopies(v)
	case n < 7:
		s.spoilOne(v)
	default:
		s.spoilOne(l)
	}
}

// spoil changes the tree of a server. It returns false if the tree cannot be compared now, or if the others are no quorum.
func (v *server) spoil() bool {
	s := v.sim
	z, _, exact := v.tree.ExactDigest()
	if !exact || !v.up || v.absent || !v.standing.Serving || !check.HasQuorum(s.roster.newest, func(id ensemble.ServerID) bool { return id != v.id }) {
		return false
	}
	v.wrongTree("has changed in memory")
	s.spoilAt(v.tree, z)
	return true
}

// wrongTree records that a server has or will have a wrong tree.
func (v *server) wrongTree(why string) {
	v.hole, v.sim.spoilt = fmt.Sprintf("the tree of server %d %s", v.id, why), true
	v.sim.tell("%s", v.hole)
}

// spoilAt changes a znode of a tree that contains everything up to z: the first one of lastWrites. The digest of a tree does not
// contain what is below /zookeeper.
func (s *Sim) spoilAt(t *tree.Tree, z wire.Zxid) {
	for _, name := range slices.Sorted(slices.Values(s.history.Names("/"))) {
		if strings.HasPrefix(name, "last-") {
			t.Replay(&record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpSetData}, Body: &record.SetDataTxn{Path: "/" + name, Data: []byte("spoilt"), Version: 1}})
			return
		}
	}
}

// spoilOne changes the tree of one server. The next transaction shows that a tree differs, and a quorum has the right one: a leader with
// the wrong one must end its term, and the server must get a snapshot.
func (s *Sim) spoilOne(v *server) {
	if !v.spoil() {
		return
	}
	// A write may be the last one of its term, and a difference counts only in its own term. In particular, a leader transfers leadership to
	// a preferred server behind a write; each failed transfer doubles the time until the next one.
	for range 8 {
		if s.clientWrites(); v.hole == "" || s.ended() {
			break
		}
		s.RunFor(4 * s.opt.TickMS * machine.Millisecond)
	}
	s.await("all servers serve, and their trees are right again", s.recoverWithin(), s.treesRight)
}

// clientWrites waits until a client has written.
func (s *Sim) clientWrites() {
	var c *client.Client
	var k *client.Call
	s.await("a client has written", finishBound+(finishTicks+s.longer())*s.opt.TickMS*machine.Millisecond, func() string {
		if k != nil && k.Done != 0 && k.Err == wire.OK {
			return ""
		}
		if k == nil || k.Done != 0 || !slices.Contains(c.Calls, k) {
			if o := s.someOperator(); o != nil { // else the lost call stays
				c, k = o, o.Ask(o.Creation(fmt.Sprintf("/spoilt-%d-%d", o.ID, o.Xid)))
			}
		}
		return "no client has"
	})
}

// treesRight says what is missing until all servers serve with the right trees.
func (s *Sim) treesRight() (missing string) {
	if v := s.holed(); v != nil {
		return v.hole
	}
	for _, v := range s.servers {
		if !v.absent && !(v.up && v.standing.Serving) {
			missing += fmt.Sprintf(" server %d does not serve", v.id)
		}
	}
	if missing == "" {
		s.reach(situationSpoilt)
	}
	return missing
}

// spoilLeaderAndCopy changes the tree of the leader of three voters, and then lets one of the two others get a copy of it. The leader must
// not take the copy for a proof that its tree is right, and the right one of the third server for wrong (judges).
func (s *Sim) spoilLeaderAndCopy(l *server, d *machine.Random) {
	for _, i := range d.Shuffled(len(s.servers)) {
		if v := s.servers[i]; v != l && v.standing.Serving && s.roster.newest.IsVoter(v.id) {
			if l.spoil() {
				s.getsCopy(v)
				s.RunFor(4 * s.opt.TickMS * machine.Millisecond)
			}
			return
		}
	}
}

// spoilCopies makes the snapshots of all servers wrong, but not their trees, and lets a server get one. It differs from the others then, but
// further snapshots would be as wrong as the first, so its leader must not send it one after the other.
func (s *Sim) spoilCopies(v *server) {
	l := s.leader()
	if _, member := s.roster.newest.Server(v.id); !member {
		return // the leader does not remember such a server, and sends it a second snapshot
	}
	if v == l || !v.standing.Serving || !check.HasQuorum(s.roster.newest, func(id ensemble.ServerID) bool { return id != v.id }) {
		return
	}
	s.copiesSpoilt = true
	epoch := l.standing.Epoch
	s.getsCopy(v)
	if s.ended() || !v.standing.Serving || l.standing.Epoch != epoch { // in another term, the leader does not know whose copy it is
		return
	}
	link := v.linked
	s.RunFor(6 * s.opt.TickMS * machine.Millisecond)
	if l.leads() && l.standing.Epoch == epoch && v.linked != link {
		s.fail("EqualDigest", "leader %d sends server %d another snapshot, although the first one was wrong", l.id, v.id)
	}
}

// getsCopy replaces the disk of a server, which then gets a snapshot, and waits until the server serves.
func (s *Sim) getsCopy(v *server) {
	s.Do(Act{Kind: Kill, A: int(v.id)})
	s.Do(Act{Kind: Wipe, A: int(v.id)})
	if s.copiesSpoilt && v.blank {
		v.wrongTree("comes from a wrong snapshot")
	}
	s.Do(Act{Kind: Start, A: int(v.id)})
	s.await("a server serves after its disk was replaced", s.recoverWithin(), func() string {
		if v.up && v.standing.Serving {
			return ""
		}
		return fmt.Sprintf("server %d does not serve", v.id)
	})
}

// judges checks what a leader says about wrong trees: there is one, and the tree that the leader says is right is that of the history.
func (v *server) judges(z wire.Zxid, right uint64, text string) {
	h := &v.sim.history
	if i, known := h.Place(z); v.sim.holed() == nil || known && h.Entries[i].Digest != right {
		v.sim.fail("EqualDigest", "%d: %s", v.id, text)
	}
}
