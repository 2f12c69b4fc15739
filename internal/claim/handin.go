package claim

import (
	"errors"

	"bellwether/wire"
)

// ErrTaken: the item is not this consumer's any more: its session has expired
// or somebody deleted its claim, and another may have taken it.
var ErrTaken = errors.New("the item is not this consumer's any more")

// HandInConfig is what a HandIn is about.
type HandInConfig struct {
	Item, Claim string         // paths
	Session     wire.SessionID // in which the item was taken
	Release     bool           // the item is given back; otherwise it is done with
	More        bool           // the caller has operations of its own in the same transaction
}

// HandIn acknowledges an item that was taken, or gives it back, in one
// transaction that begins with the deletion of the claim.
//
//	is the claim there, and ours? ▸ delete it, and the item ▸ answer lost: look again
//
// A claim that is not there, or is another's, means after a lost answer that
// the transaction was carried out, and without one that the item was lost. Where
// somebody has deleted the item the claim goes alone, and wire.ErrNoNode is the
// outcome.
type HandIn struct {
	asker
	cfg  HandInConfig
	mine bool // the claim was there, and is this session's
	past bool // the session of the claim is over
	none bool // there is no such item
}

// NewHandIn makes the state machine, which waits for Attached.
func NewHandIn(cfg HandInConfig) *HandIn {
	h := &HandIn{cfg: cfg}
	h.forget = func() { h.past = true }
	return h
}

// Step takes one event, which happened at now.
func (h *HandIn) Step(now Moment, ev Event) {
	h.step(now, ev, h.plan)
	switch {
	case h.Over() || h.asked != 0:
	case h.past, h.session != 0 && h.session != h.cfg.Session:
		h.end(Failed, ErrTaken)
	case h.leaving && h.doubt == 0:
		h.end(Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (h *HandIn) Ready() Ready { return h.ready() }

func (h *HandIn) plan() {
	switch {
	case h.session != h.cfg.Session || h.leaving && h.doubt == 0:
	case h.mine && h.doubt == 0:
		h.planHandIn()
	default:
		h.ask(h.tookLook, Op{Kind: OpSync, Path: h.cfg.Claim}, Op{Kind: OpGet, Path: h.cfg.Claim})
	}
}

func (h *HandIn) tookLook(res []Result) {
	r := res[1]
	h.mine = r.Err == nil && r.Stat.EphemeralOwner == h.session
	switch {
	case res[0].Err != nil:
		h.end(Failed, res[0].Err)
	case r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode):
		h.end(Failed, r.Err)
	case h.mine: // it was not carried out
		h.doubt = 0
	case h.doubt != 0: // it was
		h.doubt = 0
		h.done()
	default:
		h.end(Failed, ErrTaken)
	}
}

func (h *HandIn) planHandIn() {
	ops := []Op{{Kind: OpDelete, Path: h.cfg.Claim, Version: AnyVersion}}
	if !h.cfg.Release && !h.none {
		ops = append(ops, Op{Kind: OpDelete, Path: h.cfg.Item, Version: AnyVersion})
	}
	if h.cfg.More && !h.none {
		ops = append(ops, Op{Kind: OpMore})
	}
	h.attempt(func(res []Result) {
		switch r := res[0]; {
		case r.Err == nil:
			h.done()
		case r.Failed == 1 && !h.cfg.Release && errors.Is(r.Err, wire.ErrNoNode):
			h.none = true
		case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
			h.end(Failed, ErrTaken)
		default:
			h.end(Failed, r.Err)
		}
	}, Op{Kind: OpMulti, Path: h.cfg.Claim, Ops: ops})
}

// done is the end where the transaction was carried out.
func (h *HandIn) done() {
	if h.none {
		h.end(Failed, wire.ErrNoNode)
		return
	}
	h.end(Succeeded, nil)
}
