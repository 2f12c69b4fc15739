package sim

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// gatePath is the double barrier of a run.
const gatePath = "/gate"

// barrierMember enters the double barrier and leaves it, again and again.
type barrierMember struct {
	runner
	m       *barrier.Member
	name    string // of its znode
	inside  bool
	rounds  int  // that it has ended
	began   bool // the present one, after somebody asked for that
	waiting bool // to enter anew
	points  int  // at which it could crash, so far
	crashAt int  // at which of them it does; 0: none
}

// What members do, for the checkers.
type (
	// memberIn: a member is let in.
	memberIn struct {
		g    *barrierMember
		late bool // by a ready that was there before
	}
	// memberOut: it is let out.
	memberOut struct{ g *barrierMember }
)

func newBarrierMember(c *client) *barrierMember {
	g := &barrierMember{}
	g.runner = runner{c: c, step: g.step}
	return g
}

// gateSize is how many have to be there.
func (s *Sim) gateSize() int { return min(s.opt.Leases+1, max(len(s.barrierMembers()), 2)) }

func (s *Sim) barrierMembers() (all []*barrierMember) {
	for _, c := range s.clients {
		if g, ok := c.player.(*barrierMember); ok {
			all = append(all, g)
		}
	}
	return all
}

func (g *barrierMember) attached() {
	if g.m == nil && !g.waiting {
		g.enter()
	}
	g.step(claim.Attached{Session: g.c.session})
}

// crashed: another process enters some time.
func (g *barrierMember) crashed() {
	g.drop()
	g.m, g.waiting = nil, false
}

// enter begins a round.
func (g *barrierMember) enter() {
	s := g.c.sim
	kazoo := s.opt.Recipe == KazooBarrier
	if s.calm && s.quiet || kazoo && s.underWay() {
		g.enterLater()
		return
	}
	id := g.c.random.nonce()
	g.name, g.inside, g.began = hex.EncodeToString(id[:]), false, true
	g.m = barrier.NewMember(barrier.MemberConfig{Path: gatePath, Name: g.name, N: s.gateSize(), Kazoo: kazoo})
	if kazoo {
		g.loseHope()
	}
}

// underWay reports whether somebody is in or on the way out. As kazoo has it, a
// round must be over before the next begins: who leaves waits for all that it finds.
func (s *Sim) underWay() bool {
	return slices.ContainsFunc(s.barrierMembers(), func(g *barrierMember) bool { return g.m != nil && g.m.Phase() != barrier.Entering })
}

// loseHope has a member give up that is not let in for seconds: it may have come
// when the others were about to leave, who wait for it to go.
func (g *barrierMember) loseHope() {
	m := g.m
	g.c.after(g.c.random.between(2*second, 5*second), func() {
		switch {
		case g.m != m || m.Over() || m.Phase() != barrier.Entering:
		case g.c.silent:
			g.loseHope()
		default:
			g.step(claim.Resign{})
		}
	})
}

func (g *barrierMember) enterLater() {
	g.waiting = true
	g.soon(100*millisecond, func() {
		g.waiting = false
		if g.m == nil && g.c.attached {
			g.enter()
			g.step(claim.Attached{Session: g.c.session})
		}
	})
}

// step hands an event to the state machine and does what comes of it.
func (g *barrierMember) step(ev claim.Event) {
	m := g.m
	if m == nil {
		return
	}
	m.Step(g.now(), ev)
	rd := m.Ready()
	if m.Phase() == barrier.Inside && !g.inside {
		g.letIn()
	}
	g.ask(rd.Request)
	if g.m != m || g.crashesHere() {
		return
	}
	if m.Over() {
		g.over()
		return
	}
	g.wake(rd.Wake)
}

// letIn: the member does what it has come for, and leaves.
func (g *barrierMember) letIn() {
	g.inside = true
	g.c.sim.tell("member %d is let in as %s", g.c.id, g.name)
	g.c.sim.see(memberIn{g, g.m.Late()})
	g.c.sim.entered++
	g.soon(50*millisecond, g.leave)
}

func (g *barrierMember) leave() {
	if g.m == nil || !g.m.Settled() {
		g.soon(20*millisecond, g.leave) // what is under way ends first
		return
	}
	g.c.sim.tell("member %d leaves", g.c.id)
	g.step(barrier.Depart{})
}

// over: the member is out, or its session was.
func (g *barrierMember) over() {
	m := g.m
	switch err := m.Err(); {
	case m.Outcome() == claim.Succeeded:
		g.c.sim.tell("member %d is let out", g.c.id)
		g.c.sim.see(memberOut{g})
		if g.began {
			g.rounds++
		}
	case m.Outcome() == claim.Failed && !errors.Is(err, wire.ErrSessionExpired):
		g.c.sim.fail("Barriers", "member %d gives up: %v", g.c.id, err)
	}
	g.drop()
	g.m, g.began = nil, false
	g.enterLater()
}

// crashesHere crashes the member where a scenario wants it.
func (g *barrierMember) crashesHere() bool {
	if g.points++; g.points != g.crashAt {
		return false
	}
	g.c.sim.Do(Act{Kind: Kill, A: -g.c.id})
	return true
}

// atGate are the znodes of the double barrier.
func (s *Sim) atGate() []string {
	var names tree.Listing
	s.history.Tree.Children(&conn{}, gatePath, false, &names)
	return names.All()
}

// strangers says whether znodes of the dead are at the gate yet.
func (s *Sim) strangers() string {
	all := s.barrierMembers()
	for _, name := range s.atGate() {
		if name != "ready" && !slices.ContainsFunc(all, func(g *barrierMember) bool { return g.m != nil && g.name == name }) {
			return name + " is of nobody who lives"
		}
	}
	return ""
}

// goRound has every member that begins from now on be counted.
func (s *Sim) goRound() {
	for _, g := range s.barrierMembers() {
		g.rounds, g.began = 0, false
	}
}

// wentRound says who has not entered and left since.
func (s *Sim) wentRound() string {
	for _, g := range s.barrierMembers() {
		if g.rounds == 0 {
			return fmt.Sprintf("member %d has not been in and out", g.c.id)
		}
	}
	return ""
}

// emptyGate says what is left at the gate when nobody enters any more. Those
// who are too few to be let in give up, one after the other. Where more come
// than are needed, one who was let in late may have been counted once more
// while it left: then ready stays, for who comes next to remove.
func (s *Sim) emptyGate() string {
	var stuck []*barrierMember
	missing := ""
	for _, g := range s.barrierMembers() {
		if g.m != nil {
			missing += fmt.Sprintf("member %d is not out ", g.c.id)
			stuck = append(stuck, g)
		}
	}
	waits := func(g *barrierMember) bool { return g.m.Phase() == barrier.Entering }
	if len(stuck) > 0 && len(stuck) < s.gateSize() && !slices.ContainsFunc(stuck, func(g *barrierMember) bool { return !waits(g) }) {
		stuck[0].step(claim.Resign{})
	}
	if names := s.atGate(); missing == "" && len(names) > 0 && (s.gateSize() == len(s.barrierMembers()) || !slices.Equal(names, []string{"ready"})) {
		return fmt.Sprintf("%v is left at the gate", names)
	}
	return missing
}

// endRounds lets a double barrier come to its end: nobody who lives waits for
// the dead, everybody comes in and out, and nothing stays.
//
// Others ask for nothing meanwhile: a new leader gives every session its time
// anew, so none ends while traffic uses up the counter of an epoch in less than
// a session's timeout.
func (s *Sim) endRounds(within int64) {
	if len(s.barrierMembers()) == 0 {
		return
	}
	s.idle = true
	s.await("nobody dead at the gate", within, s.strangers)
	s.goRound()
	s.await("every member in and out", within, s.wentRound)
	s.quiet = true
	s.await("an empty gate", within, s.emptyGate)
}
