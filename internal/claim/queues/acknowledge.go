package queues

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ErrTaken means that the consumer no longer owns the item. Its session expired, or another client deleted
// its claim, so another consumer may have taken the item.
var ErrTaken = errors.New("the item no longer belongs to this consumer")

// AcknowledgementConfig describes an Acknowledgement.
type AcknowledgementConfig struct {
	Item, Claim string         // paths of the item and of its claim
	Session     wire.SessionID // session that took the item
	Release     bool           // give the item back instead of removing it
	More        bool           // the caller adds operations of its own to the same transaction
}

// Acknowledgement acknowledges an item that was taken, or gives it back, in one transaction that begins
// with the deletion of the claim.
//
//	does this consumer's claim exist? ▸ delete the claim and the item ▸ answer lost: look again
//
// If the claim is missing or belongs to another session after a lost answer, the transaction was carried
// out. If no answer was lost, the consumer no longer owns the item, and the error is ErrTaken. If another
// client has deleted the item, only the claim is deleted, and the error is wire.ErrNoNode.
type Acknowledgement struct {
	claim.Requester
	cfg  AcknowledgementConfig
	mine bool // the claim exists and belongs to this session
	past bool // the session of the claim is over
	none bool // the item does not exist
}

// NewAcknowledgement returns the state machine. It does nothing until Attached is stepped.
func NewAcknowledgement(cfg AcknowledgementConfig) *Acknowledgement {
	h := &Acknowledgement{cfg: cfg}
	h.Forget = func() { h.past = true }
	return h
}

// Step processes one event, which happened at now.
func (h *Acknowledgement) Step(now claim.Moment, ev claim.Event) {
	h.Advance(now, ev, h.plan)
	switch {
	case h.Over() || h.Asked != 0:
	case h.past, h.Current != 0 && h.Current != h.cfg.Session:
		h.End(claim.Failed, ErrTaken)
	case h.Leaving && h.InDoubt == 0:
		h.End(claim.Withdrawn, nil)
	}
}

func (h *Acknowledgement) plan() {
	switch {
	case h.Current != h.cfg.Session || h.Leaving && h.InDoubt == 0:
	case h.mine && h.InDoubt == 0:
		h.planAcknowledge()
	default:
		h.Ask(h.tookLook, claim.Sync(h.cfg.Claim), claim.Get(h.cfg.Claim))
	}
}

func (h *Acknowledgement) tookLook(res []claim.Result) {
	r := res[1]
	h.mine = r.Err == nil && r.Stat.EphemeralOwner == h.Current
	switch {
	case res[0].Err != nil:
		h.lookFailed(res[0].Err)
	case r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode):
		h.lookFailed(r.Err)
	case h.mine: // the transaction was not carried out
		h.InDoubt = 0
	case h.InDoubt != 0: // the transaction was carried out
		h.InDoubt = 0
		h.done()
	default:
		h.End(claim.Failed, ErrTaken)
	}
}

// lookFailed ends the machine because it cannot find out whether the claim exists.
func (h *Acknowledgement) lookFailed(err error) {
	if h.InDoubt != 0 {
		h.EndUnclear(err)
	} else {
		h.End(claim.Failed, err)
	}
}

func (h *Acknowledgement) planAcknowledge() {
	ops := []claim.Op{claim.Delete(h.cfg.Claim)}
	if !h.cfg.Release && !h.none {
		ops = append(ops, claim.Delete(h.cfg.Item))
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
	}, claim.Multi(h.cfg.Claim, ops...))
}

// done ends the machine after the transaction was carried out.
func (h *Acknowledgement) done() {
	if h.none {
		h.End(claim.Failed, wire.ErrNoNode)
		return
	}
	h.End(claim.Succeeded, nil)
}
