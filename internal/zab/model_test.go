package zab

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chaos does one random thing. Links keep their order; everything else happens in any order: servers
// crash and lose what was not fsynced, links break and lose packets, disks are slow, and old leaders
// continue.
func (w *world) chaos() {
	n := w.nodes[w.rnd.IntN(len(w.nodes))]
	switch d := w.rnd.IntN(4000); {
	case d < 5:
		if n.up {
			w.crash(n, w.rnd.IntN(3))
		}
	case d < 6:
		for _, n := range w.nodes {
			if n.up {
				w.crash(n, w.rnd.IntN(3))
			}
		}
	case d < 46:
		if !n.up {
			w.start(n)
		}
	case d < 54:
		if len(w.links) > 0 {
			w.breakLink(w.links[w.rnd.IntN(len(w.links))])
		}
	case d < 100:
		some := slices.DeleteFunc(w.idle(), func(*node) bool { return w.rnd.IntN(4) == 0 })
		w.elect(some)
	case d < 300:
		w.joinAny(n)
	case d < 700:
		if n.leader != nil && len(n.log.between(n.log.Applied(), n.log.Last())) < 20 {
			w.propose(n)
		}
	case d < 705:
		w.sync(n)
	case d < 720:
		w.pass(int64(w.rnd.IntN(300)))
	case d < 724:
		if n.leader != nil || n.learner != nil {
			w.leave(n)
		}
	case d < 726:
		w.fill(n)
	case d < 765:
		w.touch(n)
	case d < 1800:
		if n.up {
			w.diskStep(n)
		}
	default:
		if len(w.links) > 0 {
			w.deliver(w.links[w.rnd.IntN(len(w.links))], w.rnd.IntN(2) == 0)
		}
	}
}

// fill makes the disk of a server refuse its next append.
func (w *world) fill(n *node) {
	if len(n.writer) > 0 && n.writer[0].what == "append" {
		gen := n.writer[0].gen
		n.writer[0].do = func() Event { return w.refuse(n, gen, "no space") }
	}
}

// joinAny connects an idle server to some leader.
func (w *world) joinAny(n *node) {
	leaders := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n.leader == nil })
	if !slices.Contains(w.idle(), n) || len(leaders) == 0 || w.masters && w.joinMaster(n) {
		return
	}
	w.join(n, leaders[w.rnd.IntN(len(leaders))])
}

// joinMaster connects an observer, in most cases, to a follower that serves observers, if there is one.
func (w *world) joinMaster(n *node) bool {
	masters := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n.learner == nil || !n.learner.ServesObservers() })
	if w.members.IsVoter(n.id) || len(masters) == 0 || w.rnd.IntN(5) == 0 {
		return false
	}
	at := masters[w.rnd.IntN(len(masters))]
	w.joinAt(n, at, w.nodes[at.under-1])
	return true
}

// breakLink cuts a connection. Each end loses some of the packets on their way.
func (w *world) breakLink(c *testConn) {
	c.cut = true
	c.up = c.up[:w.rnd.IntN(len(c.up)+1)]
	c.down = c.down[:w.rnd.IntN(len(c.down)+1)]
}

// loseOne drops a packet in the middle of a link, which TCP never does.
func (w *world) loseOne() {
	for _, c := range w.links {
		if k := len(c.down); k > 2 && w.rnd.IntN(50) == 0 {
			i := 1 + w.rnd.IntN(k-2)
			c.down = slices.Delete(c.down, i, i+1)
		}
	}
}

// heal ends all faults, and does what the servers need in order to agree.
func (w *world) heal() {
	for _, n := range w.nodes {
		if !n.up {
			w.start(n)
		}
		if n.leader != nil || n.learner != nil {
			w.leave(n)
		}
	}
	for _, c := range w.links {
		c.up, c.down, c.lrnL, c.ldrL = nil, nil, true, true
	}
	w.sweep()
	w.settle() // the last refusals of full disks happen here
	for range 3 {
		l := w.elect(w.idle())
		for _, n := range w.idle() {
			if !w.masters || w.members.IsVoter(n.id) {
				w.join(n, l)
			}
		}
		w.settle()
		for _, n := range w.idle() {
			if w.masters {
				w.joinAny(n)
			}
		}
		w.settle()
		if l.leader != nil && l.leader.Serving() {
			break
		}
		w.pass(15_000)
		w.settle()
	}
}

// together checks that after healing all servers serve the same history.
func (w *world) together() {
	for _, n := range w.nodes {
		if n.leader != nil {
			w.propose(n)
		}
	}
	w.settle()
	w.pass(300)
	w.settle()
	for _, n := range w.nodes {
		if !n.serving || len(n.tree) != len(w.history) {
			w.fail("server %d does not serve all: %v, %d of %d", n.id, n.serving, len(n.tree), len(w.history))
		}
	}
}

func run(seed uint64, voters, observers, steps int, set func(*world)) *world {
	w := newWorld(seed, voters, observers)
	if set != nil {
		set(w)
	}
	for i := 0; i < steps && w.wrong == ""; i++ {
		if w.chaos(); w.faults.lossyLinks {
			w.loseOne()
		}
	}
	if w.wrong == "" && w.faults == (faults{}) {
		w.heal()
		w.together()
	}
	return w
}

// TestOneHistory runs ensembles through random crashes, lost connections and slow disks,
// and checks that all servers show one history.
func TestOneHistory(t *testing.T) {
	established, shown, syncs, confirmed, answered := 0, 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		voters := rapid.SampledFrom([]int{1, 3, 3, 5}).Draw(t, "voters")
		observers := rapid.IntRange(0, 2).Draw(t, "observers")
		plain, masters := rapid.Bool().Draw(t, "plain"), rapid.Bool().Draw(t, "masters")
		w := run(rapid.Uint64().Draw(t, "seed"), voters, observers, 10_000, func(w *world) { w.plain, w.masters = plain, masters })
		established += len(w.leaders)
		shown += len(w.history)
		confirmed += w.confirmed
		answered += w.answered
		for _, n := range w.nodes {
			syncs += len(n.syncs)
		}
		if w.wrong != "" {
			for _, s := range w.output[max(0, len(w.output)-100):] {
				t.Log(s)
			}
			t.Fatal(w.wrong)
		}
	})
	t.Logf("%d leaders established, %d transactions shown, %d syncs, %d touches confirmed, %d TOUCHes answered", established, shown, syncs, confirmed, answered)
	if established < 200 || shown < 2000 || syncs < 100 || confirmed < 100 || answered < 50 {
		t.Error("too quiet")
	}
}

// between delivers all packets between two servers and carries out the duties of their disks. If held is
// set, the leader's currentEpoch is not saved.
func (w *world) between(leader, learner *node, held bool) {
	for range 20 {
		for _, c := range slices.Clone(w.links) {
			if c.ldr == leader && c.lrn == learner {
				w.deliver(c, true)
				w.deliver(c, false)
			}
		}
		w.diskStep(learner)
		if k := leader.writer; len(k) > 0 && !(held && k[0].what == "currentEpoch") {
			w.diskStep(leader)
		}
	}
}

// TestLateLeaderOfAnEarlierEpoch: a quorum has adopted the history of a leader, but its
// own epoch becomes durable only after a later leader has committed more. The earlier
// leader is still established then, because it does not know yet that its learner has
// left. It commits nothing, and all servers agree in the end.
func TestLateLeaderOfAnEarlierEpoch(t *testing.T) {
	w := newWorld(1, 3, 0)
	a, b, old := w.nodes[0], w.nodes[1], w.nodes[2]
	w.lead(old)
	w.join(a, old)
	w.between(old, a, true)
	w.leave(a)
	w.lead(a)
	w.join(b, a)
	w.between(a, b, false)
	w.propose(a)
	w.between(a, b, false)
	shown := len(w.history)
	if shown == 0 || old.leader.Serving() || w.leaders[2] != a.id {
		t.Fatalf("%d transactions shown, leaders %v\n%s", shown, w.leaders, strings.Join(w.output, "\n"))
	}
	w.diskStep(old)
	if w.leaders[1] != old.id {
		t.Fatalf("leaders %v: the leader of epoch 1 is not established", w.leaders)
	}
	w.propose(old)
	w.diskStep(old)
	if len(w.history) != shown || len(old.tree) != 0 {
		t.Error("the leader of the earlier epoch has committed a transaction")
	}
	w.heal()
	w.together()
	if w.wrong != "" {
		t.Error(w.wrong)
	}
}

// TestChecksFindBrokenRules breaks each rule on purpose, and checks that the tests find
// it.
func TestChecksFindBrokenRules(t *testing.T) {
	for name, f := range map[string]faults{
		"Synced before the fsync":     {syncedEarly: true},
		"currentEpoch before the log": {epochEarly: true},
		"acceptedEpoch not saved":     {acceptedLost: true},
		"a minority decides":          {minority: true},
		"truncation not carried out":  {noTruncate: true},
		"the worst vote wins":         {worstVote: true},
		"a snapshot without its last": {snapshotOld: true},
		"a link that loses a packet":  {lossyLinks: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4000) {
				if w := run(seed, 3, 1, 10_000, func(w *world) { w.faults = f }); w.wrong != "" {
					t.Logf("seed %d: %s", seed, w.wrong)
					return
				}
			}
			t.Error("no seed finds the broken rule")
		})
	}
}
