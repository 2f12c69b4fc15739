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

// gatePath is the znode of the double barrier of a run.
const gatePath = "/gate"

// barrierMember is a client that enters the double barrier and leaves it, again and again.
type barrierMember struct {
	runner
	m       *barrier.Member
	name    string // of its znode
	inside  bool
	rounds  int  // rounds that it has completed
	began   bool // it began the present round after goRound asked for one
	waiting bool // it waits to begin its next round
	points  int  // steps so far at which it could crash
	crashAt int  // the number of the step at which it crashes; 0: at none
}

// Observations of members, for the checkers.
type (
	// memberIn says that a member is let in.
	memberIn struct {
		g    *barrierMember
		late bool // let in by a ready znode that was there before its own znode
	}
	// memberOut says that a member is let out.
	memberOut struct{ g *barrierMember }
)

func newBarrierMember(c *client) *barrierMember {
	g := &barrierMember{}
	g.runner = runner{c: c, step: g.step}
	return g
}

// gateSize returns how many members must be present before any is let in.
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

// crashed starts another process some time later, which enters anew.
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

// underWay reports whether a member is inside or on its way out. In kazoo's variant a round
// must be over before the next begins, because a leaving member waits for all znodes that
// it finds.
func (s *Sim) underWay() bool {
	return slices.ContainsFunc(s.barrierMembers(), func(g *barrierMember) bool { return g.m != nil && g.m.Phase() != barrier.Entering })
}

// loseHope makes a member give up if it is not let in within some seconds. It may have come
// when the others were about to leave, and those wait for it to go.
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

// step passes an event to the state machine and carries out what the machine asks for.
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

// letIn keeps the member inside for a while and then lets it leave.
func (g *barrierMember) letIn() {
	g.inside = true
	g.c.sim.tell("member %d is let in as %s", g.c.id, g.name)
	g.c.sim.see(memberIn{g, g.m.Late()})
	g.c.sim.entered++
	g.soon(50*millisecond, g.leave)
}

func (g *barrierMember) leave() {
	if g.m == nil || !g.m.Settled() {
		g.soon(20*millisecond, g.leave) // the operation under way ends first
		return
	}
	g.c.sim.tell("member %d leaves", g.c.id)
	g.step(barrier.Depart{})
}

// over handles the end of a round: the member is out, or its session has ended.
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

// crashesHere crashes the member at the step that a scenario has chosen. It reports whether
// it did.
func (g *barrierMember) crashesHere() bool {
	if g.points++; g.points != g.crashAt {
		return false
	}
	g.c.sim.Do(Act{Kind: Kill, A: -g.c.id})
	return true
}

// atGate returns the names of the znodes of the double barrier.
func (s *Sim) atGate() []string {
	var names tree.Listing
	s.history.Tree.Children(&conn{}, gatePath, false, &names)
	return names.All()
}

// strangers says whether the gate still has znodes of dead processes. It returns an empty
// text if it has none.
func (s *Sim) strangers() string {
	all := s.barrierMembers()
	for _, name := range s.atGate() {
		if name != "ready" && !slices.ContainsFunc(all, func(g *barrierMember) bool { return g.m != nil && g.name == name }) {
			return name + " is of nobody who lives"
		}
	}
	return ""
}

// goRound makes every member count as missing until it has completed a round that begins
// from now on.
func (s *Sim) goRound() {
	for _, g := range s.barrierMembers() {
		g.rounds, g.began = 0, false
	}
}

// wentRound says which members have not entered and left since goRound.
func (s *Sim) wentRound() string {
	for _, g := range s.barrierMembers() {
		if g.rounds == 0 {
			return fmt.Sprintf("member %d has not been in and out", g.c.id)
		}
	}
	return ""
}

// emptyGate says what is left at the gate when no member begins another round. When too few
// members remain to be let in, they give up one after the other. If more members exist than
// the barrier needs, a member that was let in late may have been counted a second time
// while it left. In that case the ready znode stays, and the next member to come removes
// it.
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

// endRounds brings a double barrier to its end. It checks that no living member waits for a
// dead one, that every member enters and leaves, and that nothing stays.
//
// Other clients send no requests in the meantime, because their traffic could prevent
// sessions from expiring. A new leader gives every session its full timeout again, and
// traffic can use up the counter of an epoch, and so cause a change of leaders, in less
// than that.
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
