package barrier

import (
	"errors"

	"bellwether/internal/claim"
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
	claim.Requester
	path    string
	act     BarrierAct
	watched bool
	vetted  bool // no other recipe stands there, as far as names tell
}

// NewBarrier makes the state machine of one act. It waits for Attached.
func NewBarrier(path string, act BarrierAct) *Barrier {
	b := &Barrier{path: path, act: act}
	b.Forget = func() { b.watched = false }
	return b
}

// Act is what is done.
func (b *Barrier) Act() BarrierAct { return b.act }

// Step takes one event, which happened at now.
func (b *Barrier) Step(now claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case claim.Fired:
		if ev.Path == b.path {
			b.watched = false
		}
	case claim.Resign:
		if !b.Connected {
			b.End(claim.Withdrawn, nil) // nothing stands on a server that would remember
		}
	}
	b.Advance(now, ev, b.plan)
}

// Ready hands out what has come of the steps since the last call.
func (b *Barrier) Ready() claim.Ready { return b.Collect() }

func (b *Barrier) plan() {
	switch {
	case b.Leaving && b.watched:
		b.Ask(func([]claim.Result) { b.End(claim.Withdrawn, nil) }, claim.Op{Kind: claim.OpUnwatch, Path: b.path})
	case b.Leaving:
		b.End(claim.Withdrawn, nil)
	case b.act == CloseBarrier:
		b.Ask(b.took, claim.Op{Kind: claim.OpParents, Path: b.path})
	case b.act == OpenBarrier:
		b.Ask(b.took, claim.Op{Kind: claim.OpDelete, Path: b.path, Version: claim.AnyVersion})
	case !b.watched:
		b.Ask(b.looked, claim.Op{Kind: claim.OpSync, Path: b.path}, claim.Op{Kind: claim.OpWatch, Path: b.path, Strict: true})
	}
}

// took: it is closed, or open.
func (b *Barrier) took(res []claim.Result) {
	open := b.act == OpenBarrier && errors.Is(res[0].Err, wire.ErrNoNode) // it was open
	if err := res[0].Err; err != nil && !open {
		b.End(claim.Failed, err)
		return
	}
	b.End(claim.Succeeded, nil)
}

func (b *Barrier) looked(res []claim.Result) {
	switch sync, look := res[0].Err, res[1].Err; {
	case sync != nil:
		b.End(claim.Failed, sync)
	case errors.Is(look, wire.ErrNoNode):
		b.End(claim.Succeeded, nil)
	case look != nil:
		b.End(claim.Failed, look)
	case !b.vetted && res[1].Stat.NumChildren > 0:
		b.Ask(b.vet, claim.Op{Kind: claim.OpUnwatch, Path: b.path}, claim.Op{Kind: claim.OpList, Path: b.path})
	default:
		b.watched = true
	}
}

// vet: the znode of a barrier has no children. A list that is refused tells nothing.
func (b *Barrier) vet(res []claim.Result) {
	b.vetted = true
	if err := claim.OtherRecipe(b.path, claim.KindBarrier, res[1].Names); err != nil {
		b.End(claim.Failed, err)
	}
}
