package sim

import (
	"fmt"
	"strings"

	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// barriers: ready is made when enough members are there, by the order of
// their znodes; nobody is let in without one that is its own, or whose round
// is not over yet; nobody is let out before all of the round are. Where leaving
// begins with the removal of ready, as kazoo has it, one of the round whose
// request was late may make it again.
type barriers struct {
	sim    *Sim
	alive  map[string]wire.Zxid // members, by the zxid that made them
	born   map[string]wire.Zxid // the same of all there ever were
	enough bool                 // were there at once, since ready was there last
	marks  []wire.Zxid          // at which ready was made
	ended  []wire.Zxid          // at which the last older member went; 0: not yet
}

func newBarriers(s *Sim) *barriers {
	return &barriers{sim: s, alive: map[string]wire.Zxid{}, born: map[string]wire.Zxid{}}
}

func (*barriers) Name() string { return "Barriers" }

func (b *barriers) See(o any) string {
	switch e := o.(type) {
	case check.Committed:
		return b.change(e.Txn.Zxid, e.Txn.Body)
	case memberIn:
		return b.in(e)
	case memberOut:
		return b.out(e.g)
	}
	return ""
}

// change looks at what a transaction does at the gate.
func (b *barriers) change(z wire.Zxid, body record.TxnBody) string {
	switch t := body.(type) {
	case *record.CreateTxn:
		return b.made(z, t.Path)
	case *record.DeleteTxn:
		b.removed(z, t.Path)
	case *record.CloseSessionTxn:
		for _, p := range t.Paths {
			b.removed(z, p)
		}
	case *record.MultiTxn:
		if t.Failed() {
			break
		}
		for _, part := range t.Ops {
			if wrong := b.change(z, part.Body); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func (b *barriers) made(z wire.Zxid, path string) string {
	name, ok := strings.CutPrefix(path, gatePath+"/")
	switch {
	case !ok:
	case name != "ready":
		b.alive[name], b.born[name] = z, z
		b.enough = b.enough || len(b.alive) >= b.sim.gateSize()
	case !b.enough && !(b.sim.opt.Recipe == KazooBarrier && b.underWay()):
		return fmt.Sprintf("ready is made at %v and there were never %d", z, b.sim.gateSize())
	default:
		b.marks, b.ended = append(b.marks, z), append(b.ended, 0)
		b.end(z)
	}
	return ""
}

func (b *barriers) removed(z wire.Zxid, path string) {
	switch name, ok := strings.CutPrefix(path, gatePath+"/"); {
	case !ok:
	case name == "ready":
		b.enough = len(b.alive) >= b.sim.gateSize()
	default:
		delete(b.alive, name)
		b.end(z)
	}
}

// underWay reports whether somebody is left of the last round.
func (b *barriers) underWay() bool { n := len(b.ended); return n > 0 && b.ended[n-1] == 0 }

// end notes the rounds of which nobody is left.
func (b *barriers) end(z wire.Zxid) {
	for i := len(b.marks) - 1; i >= 0 && b.ended[i] == 0; i-- {
		if b.older(b.marks[i]) == "" {
			b.ended[i] = z
		}
	}
}

// older is a member that is there and is older than a ready.
func (b *barriers) older(mark wire.Zxid) string {
	for _, g := range b.sim.barrierMembers() { // in a fixed order
		if z, ok := b.alive[g.name]; ok && z < mark {
			return g.name
		}
	}
	for name, z := range b.alive {
		if z < mark {
			return name
		}
	}
	return ""
}

// mark is the ready that lets a member in: the first that is younger, or the
// last that is older.
func (b *barriers) mark(g *barrierMember, late bool) (i int, ok bool) {
	i = 0
	for i < len(b.marks) && b.marks[i] < b.born[g.name] {
		i++
	}
	if late {
		return i - 1, i > 0
	}
	return i, i < len(b.marks)
}

func (b *barriers) in(e memberIn) string {
	i, ok := b.mark(e.g, e.late)
	switch {
	case !ok:
		return fmt.Sprintf("member %d is let in and there is no ready for it", e.g.c.id)
	case e.late && b.ended[i] != 0 && b.ended[i] < b.born[e.g.name]:
		return fmt.Sprintf("member %d is let in at %v by the ready of %v, whose round was over at %v",
			e.g.c.id, b.born[e.g.name], b.marks[i], b.ended[i])
	}
	return ""
}

func (b *barriers) out(g *barrierMember) string {
	i, ok := b.mark(g, g.m.Late())
	if !ok {
		return fmt.Sprintf("member %d is let out and there was no ready for it", g.c.id)
	}
	if name := b.older(b.marks[i]); name != "" {
		return fmt.Sprintf("member %d is let out while %s is in", g.c.id, name)
	}
	return ""
}
