package zab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// situations are ensembles of three servers in which leader 3, which serves with server 2, is about to
// synchronise server 1.
var situations = map[SyncMode]func(w *world){
	Diff: func(w *world) {
		w.grow(2, 3, 1, 2)
		w.part(w.nodes[0])
		w.more(5, w.nodes[2])
	},
	Trunc: func(w *world) {
		w.grow(4, 1, 2, 3)
		for range 3 { // server 1 does not receive these
			w.propose(w.nodes[0])
		}
		w.part(w.nodes[0])
		w.part(w.nodes[1])
		w.part(w.nodes[2])
		w.settle()
		w.grow(0, 3, 2)
	},
	Snap: func(w *world) {
		w.grow(5, 3, 2)
	},
}

// part ends a server's role and its connections. Packets on their way are lost.
func (w *world) part(n *node) {
	for _, c := range w.links {
		if c.lrn == n || c.ldr == n {
			c.up, c.down = nil, nil
		}
	}
	w.leave(n)
	w.settle()
}

func (w *world) more(txns int, leader *node) {
	for range txns {
		w.propose(leader)
		w.settle()
	}
}

// grow makes one of the given servers the leader, and lets it commit transactions with the others.
func (w *world) grow(txns, leader int, followers ...int) {
	l := w.nodes[leader-1]
	w.lead(l)
	for _, f := range followers {
		w.join(w.nodes[f-1], l)
	}
	w.settle()
	w.more(txns, l)
}

// actions does single things in a fixed order: it delivers one packet or carries out one duty at a time.
// It stops after n things, and returns how many it did.
func (w *world) actions(n int) int {
	done := 0
	for idle := 0; idle < 2; idle++ {
		for _, c := range slices.Clone(w.links) {
			for _, up := range []bool{true, false} {
				if len(c.up) > 0 && up || len(c.down) > 0 && !up {
					if done == n {
						return done
					}
					w.deliver(c, up)
					done, idle = done+1, 0
				}
			}
		}
		for _, s := range w.nodes {
			if s.up && len(s.writer) > 0 {
				if done == n {
					return done
				}
				w.diskStep(s)
				done, idle = done+1, 0
			}
		}
	}
	return done
}

// TestCrashBetweenAnyTwoSteps: while a learner is synchronised and proposals are under
// way, it crashes after each single step; so does the leader, or the whole ensemble.
// Nothing that clients have seen is lost, whichever servers come back (ZOOKEEPER-3911,
// 3023, 4643, 4646, 4785, 5094, 3642).
func TestCrashBetweenAnyTwoSteps(t *testing.T) {
	for how, situation := range situations {
		for _, who := range [][]int{{1}, {1, 3}, {3}, {1, 2, 3}} {
			t.Run(fmt.Sprintf("%v, %v crash", how, who), func(t *testing.T) {
				steps := 1
				for after := 0; after < steps; after++ {
					for keep := range 3 {
						w := newWorld(1, 3, 0)
						w.plain = true
						situation(w)
						w.join(w.nodes[0], w.nodes[2])
						w.propose(w.nodes[2])
						total := w.actions(after)
						if w.propose(w.nodes[2]); total == after {
							steps = max(steps, after+2)
						}
						w.comeBack(who, keep)
						if w.wrong != "" {
							t.Fatalf("after %d steps, %d records kept: %s\n%v", after, keep, w.wrong, w.output)
						}
					}
				}
				if steps < 15 {
					t.Errorf("only %d steps", steps)
				}
			})
		}
	}
}

// comeBack crashes servers. Then first the survivors and later all servers elect a leader, and comeBack
// checks that nothing that clients have seen is lost.
func (w *world) comeBack(who []int, keep int) {
	for _, i := range who {
		w.crash(w.nodes[i-1], keep)
	}
	w.settle()
	w.start(w.nodes[0])
	if !w.nodes[2].up {
		for _, n := range w.nodes[:2] {
			if !n.up {
				w.start(n)
			}
			if n.leader != nil || n.learner != nil {
				w.leave(n)
			}
		}
		w.settle()
		if l := w.elect(w.idle()); l != nil {
			for _, n := range w.idle() {
				w.join(n, l)
			}
		}
		w.settle()
	}
	if w.wrong == "" {
		w.heal()
		w.together()
	}
}

// TestSituationsOccur checks that in each of situations server 1 is synchronised in the way that the
// table says.
func TestSituationsOccur(t *testing.T) {
	for how, situation := range situations {
		w := newWorld(1, 3, 0)
		situation(w)
		w.join(w.nodes[0], w.nodes[2])
		w.settle()
		if n := w.nodes[0]; !n.serving || n.learner.how != how || w.wrong != "" {
			t.Errorf("%v: %+v, %s\n%v", how, n.learner, w.wrong, w.output)
		}
	}
}

// TestMemberThatHasAcceptedALaterEpoch: a member that promised an epoch to a leader whose
// term failed cannot join a term of an earlier epoch. That term ends, and the next one
// admits the member, whether or not it connects in time.
func TestMemberThatHasAcceptedALaterEpoch(t *testing.T) {
	w := newWorld(1, 5, 0)
	one, two, three, four, five := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3], w.nodes[4]
	w.lead(three)
	w.join(one, three)
	w.join(two, three)
	w.settle()
	four.acc, four.disk.accepted = 5, 5
	for range attemptsMin {
		if three.leader == nil {
			t.Fatalf("the leader has ended its term before attemptsMin connections: %q\n%v", three.gaveUp, w.output)
		}
		w.step(three, Looks{Server: four.id})
		w.join(four, three)
		w.settle()
	}
	if three.leader != nil || !strings.Contains(three.gaveUp, "server 4 has accepted epoch 5") {
		t.Fatalf("the leader goes on: %q\n%v", three.gaveUp, w.output)
	}
	w.lead(three)
	w.join(one, three)
	w.join(two, three)
	w.settle()
	w.join(four, three)
	w.join(five, three)
	w.settle()
	for _, n := range w.nodes {
		if !n.serving || w.wrong != "" {
			t.Fatalf("server %d does not serve: %s\n%v", n.id, w.wrong, w.output)
		}
	}
	if e := three.leader.Epoch(); e != 6 {
		t.Errorf("leads epoch %d, want 6", e)
	}
}

// TestPromiseThatEndsNoTerm: a server that has accepted a later epoch ends no term if it
// does not look for a leader, or if it has history of a later epoch, which only the
// directory of another ensemble can have.
func TestPromiseThatEndsNoTerm(t *testing.T) {
	for name, looks := range map[string]*Looks{
		"does not look":             nil,
		"a stranger looks":          {Server: 9},
		"history of a later epoch":  {Server: 4, Current: 5},
		"history of the next epoch": {Server: 4, Current: 2},
	} {
		w := newWorld(1, 5, 0)
		three, four := w.nodes[2], w.nodes[3]
		w.lead(three)
		w.join(w.nodes[0], three)
		w.join(w.nodes[1], three)
		w.settle()
		four.acc, four.disk.accepted = 5, 5
		for range 3 * attemptsMin {
			if looks != nil {
				w.step(three, *looks)
			}
			w.join(four, three)
			w.settle()
		}
		if three.leader == nil || !three.leader.Serving() || w.nodes[0].learner == nil || four.serving {
			t.Errorf("%s: the leader has ended its term: %q\n%v", name, three.gaveUp, w.output)
		}
	}
}
