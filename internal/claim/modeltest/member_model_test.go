package modeltest

import (
	"fmt"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/claimtest"
)

// Members of a double barrier in the model of single operations.

const modelRounds = "/app/rounds"

// gateWorld is a model in which clients enter and leave one double barrier repeatedly.
type gateWorld struct {
	*singleWorld
	n, rounds, names int
}

func newGateWorld(choose func(int) int, b singleBroken, guests, n int) *gateWorld {
	w := &gateWorld{singleWorld: newSingleWorld(choose, b), n: n, rounds: 100}
	w.effect = func(*actor, []claim.Op) bool { return false }
	for i := range guests {
		w.add(fmt.Sprint("guest ", i), w.enterGate, nil)
	}
	return w
}

// enterGate returns a new member, whose name has a random place among the others.
func (w *gateWorld) enterGate() claimtest.Single {
	if w.rounds == 0 {
		return nil
	}
	w.rounds--
	w.names++
	return barrier.NewMember(barrier.MemberConfig{Path: modelRounds, Name: fmt.Sprintf("%d-%d", w.choose(10), w.names), N: w.n})
}

// member returns the current member of an actor, if there is one.
func (a *actor) member() *barrier.Member {
	m, _ := a.m.(*barrier.Member)
	return m
}

// leave makes all members that are inside leave.
func (w *gateWorld) leave(likely int) (any bool) {
	for _, a := range w.actors {
		if m := a.member(); m != nil && m.Settled() && a.req == nil && w.choose(likely) == 0 {
			w.tellf("%s leaves", a.name)
			w.step(a, barrier.Depart{})
			any = true
		}
	}
	return any
}

// endRound ends the sessions of all members inside, so that the ready znode is left over.
func (w *gateWorld) endRound() {
	for _, a := range w.actors {
		if m := a.member(); m != nil && m.Phase() == barrier.Inside {
			w.crash(a)
		}
	}
}

// run plays one history: faults, then healing. At the end a client
// may still wait only if fewer clients are there than the barrier needs.
func (w *gateWorld) run(steps int) {
	for range steps {
		w.act()
		w.leave(4)
		if w.choose(100) == 0 {
			w.endRound()
		}
		if w.wrong != "" {
			return
		}
	}
	for again := true; again && w.wrong == ""; {
		w.settle()
		again = w.leave(1)
	}
	waiting := 0
	for _, a := range w.actors {
		switch m := a.member(); {
		case m == nil:
		case m.Phase() != barrier.Entering:
			w.violated("%s is in phase %d for ever, with %v", a.name, m.Phase(), children(w.tree(), modelRounds))
		default:
			waiting++
		}
	}
	if waiting >= w.n || waiting > 0 && w.tree()[modelRounds+"/ready"] != nil {
		w.violated("%d wait, with %v", waiting, children(w.tree(), modelRounds))
	}
}

// gateSizes lists the settings to play: the number of clients, and how many must be present.
var gateSizes = [][2]int{{2, 2}, {3, 2}, {3, 3}, {4, 2}}

func gateHistory(seed uint64, b singleBroken) *singleWorld {
	size := gateSizes[seed%uint64(len(gateSizes))]
	w := newGateWorld(seededChoice(seed), b, size[0], size[1])
	w.run(1500)
	return w.singleWorld
}

// TestMembersAreNeverForgotten checks that no wake-up is lost, whatever answers and sessions are lost, and
// whenever events arrive.
func TestMembersAreNeverForgotten(t *testing.T) {
	for seed := range uint64(claimtest.Seeds) {
		if w := gateHistory(seed, singleBroken{}); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

// TestMembersChecksNotice checks that the checks detect znodes that members of ended sessions leave.
func TestMembersChecksNotice(t *testing.T) {
	noticed(t, func(seed uint64) *singleWorld { return gateHistory(seed, singleBroken{keep: true}) })
}
