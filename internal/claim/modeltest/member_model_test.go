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

// gateWorld has guests who enter one barrier and leave it, again and again.
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

// enterGate is another member, whose name may stand anywhere among the others.
func (w *gateWorld) enterGate() claimtest.Single {
	if w.rounds == 0 {
		return nil
	}
	w.rounds--
	w.names++
	return barrier.NewMember(barrier.MemberConfig{Path: modelRounds, Name: fmt.Sprintf("%d-%d", w.choose(10), w.names), N: w.n})
}

// member is what an actor is, if it is one now.
func (a *actor) member() *barrier.Member {
	m, _ := a.m.(*barrier.Member)
	return m
}

// leave has those who are in leave.
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

// endRound has all who are in die, and leaves ready behind.
func (w *gateWorld) endRound() {
	for _, a := range w.actors {
		if m := a.member(); m != nil && m.Phase() == barrier.Inside {
			w.crash(a)
		}
	}
}

// run is one history: faults, then healing. Where nothing moves any more
// nobody waits but those who are too few.
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

// gateSizes are numbers of guests, and how many have to be there.
var gateSizes = [][2]int{{2, 2}, {3, 2}, {3, 3}, {4, 2}}

func gateHistory(seed uint64, b singleBroken) *singleWorld {
	size := gateSizes[seed%uint64(len(gateSizes))]
	w := newGateWorld(seededChoice(seed), b, size[0], size[1])
	w.run(1500)
	return w.singleWorld
}

// TestMembersAreNeverForgotten: whatever answers and sessions are lost, and
// whenever events come, no wake-up is.
func TestMembersAreNeverForgotten(t *testing.T) {
	for seed := range uint64(claimtest.Seeds) {
		if w := gateHistory(seed, singleBroken{}); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

// TestMembersChecksNotice what stays behind of the dead.
func TestMembersChecksNotice(t *testing.T) {
	noticed(t, func(seed uint64) *singleWorld { return gateHistory(seed, singleBroken{keep: true}) })
}
