package claim

import (
	"errors"

	"bellwether/wire"
)

// BarrierAct is what is done with a [Barrier].
type BarrierAct uint8

// The acts.
const (
	CloseBarrier BarrierAct = iota // make its znode
	OpenBarrier                    // remove it
	PassBarrier                    // wait until it is not there
)

// Barrier closes, opens or passes a barrier, which is one znode: closed while
// that is there. It goes on in the next session. A sync keeps who waits from
// passing on old news.
type Barrier struct {
	asker
	path    string
	act     BarrierAct
	watched bool
	vetted  bool // no other recipe stands there, as far as names tell
}

// NewBarrier makes the state machine of one act. It waits for Attached.
func NewBarrier(path string, act BarrierAct) *Barrier {
	b := &Barrier{path: path, act: act}
	b.forget = func() { b.watched = false }
	return b
}

// Act is what is done.
func (b *Barrier) Act() BarrierAct { return b.act }

// Step takes one event, which happened at now.
func (b *Barrier) Step(now Moment, ev Event) {
	switch ev := ev.(type) {
	case Fired:
		if ev.Path == b.path {
			b.watched = false
		}
	case Resign:
		if !b.attached {
			b.end(Withdrawn, nil) // nothing stands on a server that would remember
		}
	}
	b.step(now, ev, b.plan)
}

// Ready hands out what has come of the steps since the last call.
func (b *Barrier) Ready() Ready { return b.ready() }

func (b *Barrier) plan() {
	switch {
	case b.leaving && b.watched:
		b.ask(func([]Result) { b.end(Withdrawn, nil) }, Op{Kind: OpUnwatch, Path: b.path})
	case b.leaving:
		b.end(Withdrawn, nil)
	case b.act == CloseBarrier:
		b.ask(b.took, Op{Kind: OpParents, Path: b.path})
	case b.act == OpenBarrier:
		b.ask(b.took, Op{Kind: OpDelete, Path: b.path, Version: AnyVersion})
	case !b.watched:
		b.ask(b.looked, Op{Kind: OpSync, Path: b.path}, Op{Kind: OpWatch, Path: b.path, Strict: true})
	}
}

// took: it is closed, or open.
func (b *Barrier) took(res []Result) {
	open := b.act == OpenBarrier && errors.Is(res[0].Err, wire.ErrNoNode) // it was open
	if err := res[0].Err; err != nil && !open {
		b.end(Failed, err)
		return
	}
	b.end(Succeeded, nil)
}

func (b *Barrier) looked(res []Result) {
	switch sync, look := res[0].Err, res[1].Err; {
	case sync != nil:
		b.end(Failed, sync)
	case errors.Is(look, wire.ErrNoNode):
		b.end(Succeeded, nil)
	case look != nil:
		b.end(Failed, look)
	case !b.vetted && res[1].Stat.NumChildren > 0:
		b.ask(b.vet, Op{Kind: OpUnwatch, Path: b.path}, Op{Kind: OpList, Path: b.path})
	default:
		b.watched = true
	}
}

// vet: the znode of a barrier has no children. A list that is refused tells nothing.
func (b *Barrier) vet(res []Result) {
	b.vetted = true
	if err := otherRecipe(b.path, KindBarrier, res[1].Names); err != nil {
		b.end(Failed, err)
	}
}
