package barrier

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Act is an operation on a [Barrier].
type Act uint8

// The operations.
const (
	CloseBarrier Act = iota // create the znode of the barrier
	OpenBarrier             // delete the znode of the barrier
	PassBarrier             // wait until the znode of the barrier does not exist
)

// Barrier closes, opens or passes a barrier. A barrier is one znode: it is closed while the znode exists.
// The operation continues in later sessions. A sync before each look prevents a client from passing
// because its server is behind.
type Barrier struct {
	claim.Requester
	path    string
	act     Act
	watched bool
	vetted  bool // the path was checked for znodes of other recipes
}

// NewBarrier returns the state machine of one operation. It does nothing until Attached is stepped.
func NewBarrier(path string, act Act) *Barrier {
	b := &Barrier{path: path, act: act}
	b.Forget = func() { b.watched = false }
	return b
}

// Act returns the operation.
func (b *Barrier) Act() Act { return b.act }

// Step processes one event, which happened at now.
func (b *Barrier) Step(now claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case claim.Fired:
		if ev.Path == b.path {
			b.watched = false
		}
	case claim.Resign:
		if !b.Connected {
			b.End(claim.Withdrawn, nil) // the connection is lost, so there is no watch to remove
		}
	}
	b.Advance(now, ev, b.plan)
}

func (b *Barrier) plan() {
	switch {
	case b.Leaving && b.watched:
		b.Ask(func([]claim.Result) { b.End(claim.Withdrawn, nil) }, claim.Unwatch(b.path))
	case b.Leaving:
		b.End(claim.Withdrawn, nil)
	case b.act == CloseBarrier:
		b.Ask(b.took, claim.MakeParents(b.path))
	case b.act == OpenBarrier:
		b.Ask(b.took, claim.Delete(b.path))
	case !b.watched:
		b.Ask(b.looked, claim.Sync(b.path), claim.Op{Kind: claim.OpWatch, Path: b.path, Strict: true})
	}
}

// took processes the result of closing or opening.
func (b *Barrier) took(res []claim.Result) {
	open := b.act == OpenBarrier && errors.Is(res[0].Err, wire.ErrNoNode) // the barrier was open already
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
		b.Ask(b.vet, claim.Unwatch(b.path), claim.List(b.path))
	default:
		b.watched = true
	}
}

// vet checks the children of the znode. The znode of a barrier has none, so children may show another
// recipe. If the server refused the list, the check succeeds.
func (b *Barrier) vet(res []claim.Result) {
	b.vetted = true
	if err := claim.OtherRecipe(b.path, claim.KindBarrier, res[1].Names); err != nil {
		b.End(claim.Failed, err)
	}
}
