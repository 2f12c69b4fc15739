package election

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
	"pgregory.net/rapid"
)

// drawWorld draws an ensemble of 1 to 7 voters, perhaps in groups with weights,
// and up to two observers, each with a history.
func drawWorld(t *rapid.T) *world {
	w := newWorld()
	w.trips = rapid.Bool().Draw(t, "trips")
	n := rapid.IntRange(1, 7).Draw(t, "voters")
	var voters, observers []ensemble.ServerID
	for i := range n {
		voters = append(voters, ensemble.ServerID(i+1))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "observers") {
		observers = append(observers, ensemble.ServerID(n+i+1))
	}
	var groups map[ensemble.GroupID][]ensemble.ServerID
	var weights map[ensemble.ServerID]int64
	if n >= 3 && rapid.Bool().Draw(t, "grouped") {
		groups, weights = map[ensemble.GroupID][]ensemble.ServerID{}, map[ensemble.ServerID]int64{}
		for _, id := range voters {
			g := ensemble.GroupID(int(id) % 3)
			groups[g] = append(groups[g], id)
			weights[id] = int64(rapid.IntRange(0, 2).Draw(t, "weight"))
		}
		weights[1] = 1 // some weight is needed
	}
	m := membership(0, voters, observers, groups, weights)
	for _, id := range append(voters, observers...) {
		s := w.add(id, m)
		// All servers have a history. The transcripts show what servers with empty disks
		// do.
		s.look.Epoch = wire.Epoch(rapid.IntRange(1, 2).Draw(t, "epoch"))
		s.look.Zxid = wire.MakeZxid(s.look.Epoch, uint32(rapid.IntRange(0, 2).Draw(t, "counter")))
		s.look.Failed = drawFailed(t, voters)
		s.foreign = rapid.IntRange(0, 3).Draw(t, "foreign") == 3
	}
	return w
}

// drawFailed draws which failed terms a server remembers. Each server has its own memory.
func drawFailed(t *rapid.T, voters []ensemble.ServerID) (all []Failed) {
	for range rapid.IntRange(0, 2).Draw(t, "failed") {
		all = append(all, Failed{
			Candidate: rapid.SampledFrom(voters).Draw(t, "candidate"), Times: rapid.IntRange(1, 6).Draw(t, "times"),
			Until: int64(rapid.IntRange(0, 40_000).Draw(t, "until")), Again: int64(rapid.IntRange(0, 3000).Draw(t, "again")),
			Round: wire.Epoch(rapid.IntRange(0, 3).Draw(t, "round")), Epoch: 1,
		})
	}
	return all
}

// act carries out one random fault or step.
func act(t *rapid.T, w *world) {
	ids := w.ids()
	a := w.servers[rapid.SampledFrom(ids).Draw(t, "a")]
	b := w.servers[rapid.SampledFrom(ids).Draw(t, "b")]
	switch rapid.IntRange(0, 16).Draw(t, "act") {
	case 0:
		if a.alive {
			w.crash(a.id)
		}
	case 1, 2:
		if !a.alive {
			w.start(a.id)
		}
	case 3:
		if a != b {
			w.partition(a.id, b.id)
		}
	case 4:
		if rapid.Bool().Draw(t, "heal") {
			w.heal()
		}
	case 5:
		w.sever(a.id, b.id) // neither server is told: the next message makes a new connection
	case 6:
		w.pass(int64(rapid.IntRange(1, 300).Draw(t, "ms")))
	case 7:
		w.pass(int64(rapid.IntRange(1, 10).Draw(t, "short ms")))
	case 8:
		w.roles()
	case 16: // a disk stops answering, or answers again
		if a.alive && a.decision == nil && !a.foreign {
			a.look.Abstains = !a.look.Abstains
			w.lookAgain(a, "the disk")
		}
	case 9:
		if a.serving && a.decision.State == peerwire.Leading { // something is written
			a.look.Zxid++
			if b.serving && b.decision.Vote.Leader == a.id {
				b.look.Zxid = a.look.Zxid
			}
		}
	default:
		if links := w.busy(); len(links) > 0 {
			k := rapid.SampledFrom(links).Draw(t, "link")
			w.deliver(k[0], k[1])
		}
	}
}

// TestElectionsOfARandomNetwork: some servers of a random network elect as ZooKeeper
// does. Messages are delayed or lost, connections are cut, and servers end. Each decision
// has a quorum, its candidate has the newest history of that quorum, and no server goes
// back to an earlier round. When the faults end, all agree on a leader that leads,
// although they remember different failed terms.
func TestElectionsOfARandomNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(0, 150).Draw(t, "acts") {
			act(t, w)
			if len(w.wrong) > 0 {
				t.Fatalf("%s\n%s", w.wrong[0], strings.Join(w.output, "\n"))
			}
		}
		w.heal()
		for _, id := range w.ids() {
			if s := w.servers[id]; s.look.Abstains {
				if s.look.Abstains = false; s.alive && s.decision == nil {
					w.lookAgain(s, "the disk has answered")
				}
			}
			if !w.servers[id].alive {
				w.start(id)
			}
		}
		if !w.converge(30_000) {
			t.Fatalf("no leader:\n%s%s", strings.Join(w.output, "\n"), w.states())
		}
		if len(w.wrong) > 0 {
			t.Fatalf("%s\n%s", w.wrong[0], strings.Join(w.output, "\n"))
		}
	})
}
