package queues

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ErrTaken: the item is not this consumer's any more: its session has expired
// or somebody deleted its claim, and another may have taken it.
var ErrTaken = errors.New("the item is not this consumer's any more")

// AcknowledgementConfig is what a Acknowledgement is about.
type AcknowledgementConfig struct {
	Item, Claim string         // paths
	Session     wire.SessionID // in which the item was taken
	Release     bool           // the item is given back; otherwise it is done with
	More        bool           // the caller has operations of its own in the same transaction
}

// Acknowledgement acknowledges an item that was taken, or gives it back, in one
// transaction that begins with the deletion of the claim.
//
//	is the claim there, and ours? ▸ delete it, and the item ▸ answer lost: look again
//
// A claim that is not there, or is another's, means after a lost answer that
// the transaction was carried out, and without one that the item was lost. Where
// somebody has deleted the item the claim goes alone, and wire.ErrNoNode is the
// outcome.
type Acknowledgement struct {
	claim.Requester
	cfg  AcknowledgementConfig
	mine bool // the claim was there, and is this session's
	past bool // the session of the claim is over
	none bool // there is no such item
}

// NewAcknowledgement makes the state machine, which waits for Attached.
func NewAcknowledgement(cfg AcknowledgementConfig) *Acknowledgement {
	h := &Acknowledgement{cfg: cfg}
	h.Forget = func() { h.past = true }
	return h
}

// Step takes one event, which happened at now.
func (h *Acknowledgement) Step(now claim.Moment, ev claim.Event) {
	h.Advance(now, ev, h.plan)
	switch {
	case h.Over() || h.Asked != 0:
	case h.past, h.Current != 0 && h.Current != h.cfg.Session:
		h.End(claim.Failed, ErrTaken)
	case h.Leaving && h.Unsure == 0:
		h.End(claim.Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (h *Acknowledgement) Ready() claim.Ready { return h.Collect() }

func (h *Acknowledgement) plan() {
	switch {
	case h.Current != h.cfg.Session || h.Leaving && h.Unsure == 0:
	case h.mine && h.Unsure == 0:
		h.planAcknowledge()
	default:
		h.Ask(h.tookLook, claim.Op{Kind: claim.OpSync, Path: h.cfg.Claim}, claim.Op{Kind: claim.OpGet, Path: h.cfg.Claim})
	}
}

func (h *Acknowledgement) tookLook(res []claim.Result) {
	r := res[1]
	h.mine = r.Err == nil && r.Stat.EphemeralOwner == h.Current
	switch {
	case res[0].Err != nil:
		h.End(claim.Failed, res[0].Err)
	case r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode):
		h.End(claim.Failed, r.Err)
	case h.mine: // it was not carried out
		h.Unsure = 0
	case h.Unsure != 0: // it was
		h.Unsure = 0
		h.done()
	default:
		h.End(claim.Failed, ErrTaken)
	}
}

func (h *Acknowledgement) planAcknowledge() {
	ops := []claim.Op{{Kind: claim.OpDelete, Path: h.cfg.Claim, Version: claim.AnyVersion}}
	if !h.cfg.Release && !h.none {
		ops = append(ops, claim.Op{Kind: claim.OpDelete, Path: h.cfg.Item, Version: claim.AnyVersion})
	}
	if h.cfg.More && !h.none {
		ops = append(ops, claim.Op{Kind: claim.OpMore})
	}
	h.Attempt(func(res []claim.Result) {
		switch r := res[0]; {
		case r.Err == nil:
			h.done()
		case r.Failed == 1 && !h.cfg.Release && errors.Is(r.Err, wire.ErrNoNode):
			h.none = true
		case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
			h.End(claim.Failed, ErrTaken)
		default:
			h.End(claim.Failed, r.Err)
		}
	}, claim.Op{Kind: claim.OpMulti, Path: h.cfg.Claim, Ops: ops})
}

// done is the end where the transaction was carried out.
func (h *Acknowledgement) done() {
	if h.none {
		h.End(claim.Failed, wire.ErrNoNode)
		return
	}
	h.End(claim.Succeeded, nil)
}
