package check

import (
	"fmt"
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// barriers checks double barriers. The ready znode is made only when enough members are
// there. A member is let in only by a ready znode that belongs to its round, by the order
// of the znodes, and only if that round is not over yet. A member is let out only when all
// members of its round are out. In kazoo's variant leaving begins with the removal of the
// ready znode. There a member of the round whose request was late may make it again.
type barriers struct {
	present Present
	alive   map[string]wire.Zxid // members that are there, with the zxids that made their znodes
	born    map[string]wire.Zxid // all members that ever existed, with the zxids that made their znodes
	enough  bool                 // enough members were there at once since the last ready znode
	marks   []wire.Zxid          // zxids at which a ready znode was made
	ended   []wire.Zxid          // for each of marks, the zxid at which the last member older than that ready znode was gone; 0: not yet
}

func newBarriers(p Present) *barriers {
	return &barriers{present: p, alive: map[string]wire.Zxid{}, born: map[string]wire.Zxid{}}
}

func (*barriers) Name() string { return "Barriers" }

func (b *barriers) See(o any) string {
	switch e := o.(type) {
	case Committed:
		return b.change(e.Txn.Zxid, e.Txn.Body)
	case MemberIn:
		return b.in(e)
	case MemberOut:
		return b.out(e)
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
	name, ok := strings.CutPrefix(path, GatePath+"/")
	switch {
	case !ok:
	case name != "ready":
		b.alive[name], b.born[name] = z, z
		b.enough = b.enough || len(b.alive) >= b.present.Recipe().GateSize
	case !b.enough && !(b.present.Recipe().KazooBarrier && b.underWay()):
		return fmt.Sprintf("the ready znode is created by %v, but there were never %d members", z, b.present.Recipe().GateSize)
	default:
		b.marks, b.ended = append(b.marks, z), append(b.ended, 0)
		b.end(z)
	}
	return ""
}

func (b *barriers) removed(z wire.Zxid, path string) {
	switch name, ok := strings.CutPrefix(path, GatePath+"/"); {
	case !ok:
	case name == "ready":
		b.enough = len(b.alive) >= b.present.Recipe().GateSize
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

// older returns the oldest member that is there, if its znode is older than a ready znode.
// It returns an empty text if there is none.
func (b *barriers) older(mark wire.Zxid) (oldest string) {
	for name, z := range b.alive {
		if z < mark {
			oldest, mark = name, z
		}
	}
	return oldest
}

// mark returns the index of the ready znode that lets a member in. That is the first ready
// znode younger than the member's znode or, for a late member, the last older one.
func (b *barriers) mark(name string, late bool) (i int, ok bool) {
	i = 0
	for i < len(b.marks) && b.marks[i] < b.born[name] {
		i++
	}
	if late {
		return i - 1, i > 0
	}
	return i, i < len(b.marks)
}

func (b *barriers) in(e MemberIn) string {
	i, ok := b.mark(e.Name, e.Late)
	switch {
	case !ok:
		return fmt.Sprintf("member %d is let in, but no ready znode belongs to its round", e.Client)
	case e.Late && b.ended[i] != 0 && b.ended[i] < b.born[e.Name]:
		return fmt.Sprintf("member %d of %v is let in by the ready znode of %v, whose round was over at %v",
			e.Client, b.born[e.Name], b.marks[i], b.ended[i])
	}
	return ""
}

func (b *barriers) out(e MemberOut) string {
	i, ok := b.mark(e.Name, e.Late)
	if !ok {
		return fmt.Sprintf("member %d is let out, but no ready znode belonged to its round", e.Client)
	}
	if name := b.older(b.marks[i]); name != "" {
		return fmt.Sprintf("member %d is let out while %s is still in", e.Client, name)
	}
	return ""
}
