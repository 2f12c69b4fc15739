package client

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// BarrierMember is a client that enters the double barrier and leaves it, again and again.
type BarrierMember struct {
	Runner
	m       *barrier.Member
	Name    string // name of its znode
	Inside  bool
	rounds  int  // rounds that it has completed
	began   bool // it began the present round after BeginRounds was called
	waiting bool // it waits to begin its next round
}

func newBarrierMember(c *Client) *BarrierMember {
	g := &BarrierMember{}
	g.Runner = Runner{c: c, step: g.step}
	return g
}

// GateSize returns how many members must be present before any is let in.
func (s *Group) GateSize() int { return min(s.Settings().Leases+1, max(len(s.BarrierMembers()), 2)) }

func (s *Group) BarrierMembers() (all []*BarrierMember) {
	for _, c := range s.All {
		if g, ok := c.Player.(*BarrierMember); ok {
			all = append(all, g)
		}
	}
	return all
}

// HasMembers reports whether there are members of a double barrier.
func (s *Group) HasMembers() bool { return len(s.BarrierMembers()) > 0 }

func (g *BarrierMember) attached() {
	if g.m == nil && !g.waiting {
		g.enter()
	}
	g.step(claim.Attached{Session: g.c.Session})
}

// crashed starts another process some time later, which enters anew.
func (g *BarrierMember) crashed() {
	g.drop()
	g.m, g.waiting = nil, false
}

// Entering reports whether the member has begun a round.
func (g *BarrierMember) Entering() bool { return g.m != nil }

// enter begins a round.
func (g *BarrierMember) enter() {
	s := g.c.group
	kazoo := s.Settings().Recipe == KazooBarrier
	if s.Phase().Calm && s.Phase().Quiet || kazoo && s.underWay() {
		g.enterLater()
		return
	}
	id := g.c.random.Nonce()
	g.Name, g.Inside, g.began = hex.EncodeToString(id[:]), false, true
	g.m = barrier.NewMember(barrier.MemberConfig{Path: check.GatePath, Name: g.Name, N: s.GateSize(), Kazoo: kazoo})
	if kazoo {
		g.giveUpLater()
	}
}

// underWay reports whether a member is inside or on its way out. In kazoo's variant a round
// must be over before the next begins, because a leaving member waits for all znodes that
// it finds.
func (s *Group) underWay() bool {
	return slices.ContainsFunc(s.BarrierMembers(), func(g *BarrierMember) bool { return g.m != nil && g.m.Phase() != barrier.Entering })
}

// giveUpLater makes a member give up if it is not let in within some seconds. The member may
// have arrived when the others were about to leave, and they wait until it is gone.
func (g *BarrierMember) giveUpLater() {
	m := g.m
	g.c.after(g.c.random.Between(2*machine.Second, 5*machine.Second), func() {
		switch {
		case g.m != m || m.Over() || m.Phase() != barrier.Entering:
		case g.c.Hung:
			g.giveUpLater()
		default:
			g.step(claim.Resign{})
		}
	})
}

func (g *BarrierMember) enterLater() {
	g.waiting = true
	g.soon(100*machine.Millisecond, func() {
		g.waiting = false
		if g.m == nil && g.c.Attached {
			g.enter()
			g.step(claim.Attached{Session: g.c.Session})
		}
	})
}

// step passes an event to the state machine and carries out what the machine asks for.
func (g *BarrierMember) step(ev claim.Event) {
	m := g.m
	if m == nil {
		return
	}
	m.Step(g.now(), ev)
	rd := m.Ready()
	if m.Phase() == barrier.Inside && !g.Inside {
		g.letIn()
	}
	g.request(rd.Request)
	if g.m != m || g.c.crashesHere() {
		return
	}
	if m.Over() {
		g.over()
		return
	}
	g.wake(rd.Wake)
}

// letIn keeps the member inside for a while and then lets it leave.
func (g *BarrierMember) letIn() {
	g.Inside = true
	g.c.group.Tell("member %d is let in as %s", g.c.ID, g.Name)
	g.c.group.See(check.MemberIn{Client: g.c.ID, Name: g.Name, Late: g.m.Late()})
	g.c.group.Entered++
	g.soon(50*machine.Millisecond, g.leave)
}

func (g *BarrierMember) leave() {
	if g.m == nil || !g.m.Settled() {
		g.soon(20*machine.Millisecond, g.leave) // the operation under way ends first
		return
	}
	g.c.group.Tell("member %d leaves", g.c.ID)
	g.step(barrier.Depart{})
}

// over handles the end of a round: the member is out, or its session has ended.
func (g *BarrierMember) over() {
	m := g.m
	switch err := m.Err(); {
	case m.Outcome() == claim.Succeeded:
		g.c.group.Tell("member %d is let out", g.c.ID)
		g.c.group.See(check.MemberOut{Client: g.c.ID, Name: g.Name, Late: g.m.Late()})
		if g.began {
			g.rounds++
		}
	case m.Outcome() == claim.Failed && !errors.Is(err, wire.ErrSessionExpired):
		g.c.group.Fail("Barriers", "member %d gives up: %v", g.c.ID, err)
	}
	g.drop()
	g.m, g.began = nil, false
	g.enterLater()
}

// AtGate returns the names of the znodes of the double barrier.
func (s *Group) AtGate() []string { return s.History().Names(check.GatePath) }

// DeadAtGate says whether the gate still has znodes of dead processes. It returns an empty
// text if it has none.
func (s *Group) DeadAtGate() string {
	all := s.BarrierMembers()
	for _, name := range s.AtGate() {
		if name != "ready" && !slices.ContainsFunc(all, func(g *BarrierMember) bool { return g.m != nil && g.Name == name }) {
			return name + " belongs to no living member"
		}
	}
	return ""
}

// BeginRounds makes every member count as missing until it has completed a round that begins
// from now on.
func (s *Group) BeginRounds() {
	for _, g := range s.BarrierMembers() {
		g.rounds, g.began = 0, false
	}
}

// RoundsMissing says which members have not entered and left since BeginRounds was called.
func (s *Group) RoundsMissing() string {
	for _, g := range s.BarrierMembers() {
		if g.rounds == 0 {
			return fmt.Sprintf("member %d has not entered and left", g.c.ID)
		}
	}
	return ""
}

// EmptyGate says what is left below the barrier when no member begins another round. If too
// few members remain to open the barrier, EmptyGate makes them give up, one in each call. If
// more members exist than the barrier needs, a member that entered late may have been counted
// a second time while it left. In that case the ready znode may stay, because the next member
// that enters removes it.
func (s *Group) EmptyGate() string {
	var stuck []*BarrierMember
	missing := ""
	for _, g := range s.BarrierMembers() {
		if g.m != nil {
			missing += fmt.Sprintf("member %d has not left ", g.c.ID)
			stuck = append(stuck, g)
		}
	}
	waits := func(g *BarrierMember) bool { return g.m.Phase() == barrier.Entering }
	if len(stuck) > 0 && len(stuck) < s.GateSize() && !slices.ContainsFunc(stuck, func(g *BarrierMember) bool { return !waits(g) }) {
		stuck[0].step(claim.Resign{})
	}
	if names := s.AtGate(); missing == "" && len(names) > 0 && (s.GateSize() == len(s.BarrierMembers()) || !slices.Equal(names, []string{"ready"})) {
		return fmt.Sprintf("%v is left below the barrier", names)
	}
	return missing
}
