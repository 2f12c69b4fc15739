package sim

import (
	"fmt"
	"strings"

	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// barriers checks double barriers. The ready znode is made only when enough members are
// there. A member is let in only by a ready znode that belongs to its round, by the order
// of the znodes, and only if that round is not over yet. A member is let out only when all
// members of its round are out. In kazoo's variant leaving begins with the removal of the
// ready znode. There a member of the round whose request was late may make it again.
type barriers struct {
	sim    *Sim
	alive  map[string]wire.Zxid // members that are there, with the zxids that made their znodes
	born   map[string]wire.Zxid // the same of all members ever
	enough bool                 // enough members were there at once since the last ready znode
	marks  []wire.Zxid          // zxids at which a ready znode was made
	ended  []wire.Zxid          // for each of marks, the zxid at which the last older member went; 0: not yet
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

// change examines what a transaction does to the znodes of the barrier.
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

// underWay reports whether a member of the last round is left.
func (b *barriers) underWay() bool { n := len(b.ended); return n > 0 && b.ended[n-1] == 0 }

// end records the rounds that have no member left.
func (b *barriers) end(z wire.Zxid) {
	for i := len(b.marks) - 1; i >= 0 && b.ended[i] == 0; i-- {
		if b.older(b.marks[i]) == "" {
			b.ended[i] = z
		}
	}
}

// older returns a member that is there and whose znode is older than a ready znode. It
// returns an empty text if there is none.
func (b *barriers) older(mark wire.Zxid) string {
	for _, g := range b.sim.barrierMembers() { // in a fixed order, so that runs are repeatable
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

// mark returns the index of the ready znode that lets a member in. That is the first ready
// znode younger than the member's znode or, for a late member, the last older one.
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
