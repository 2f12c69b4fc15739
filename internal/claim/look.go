package claim

import (
	"errors"

	"bellwether/wire"
)

// planLook looks who is ahead and watches the nearest one. The sync, and the
// look at the own bid's owner, keep a new session from believing in a bid of
// the one before it (CURATOR-604).
func (e *Election) planLook() {
	switch {
	case e.look:
		parent := e.cfg.Parent
		e.ask(stepLook, Op{Kind: OpSync, Path: parent}, Op{Kind: OpList, Path: parent}, Op{Kind: OpGet, Path: e.path(e.own.Name)})
	case e.exact:
		names := make([]string, len(e.others))
		for i, b := range e.others {
			names[i] = b.Name
		}
		e.ask(stepStat, e.gets(names)...)
	case e.watched != "" && e.watched != e.next:
		e.planUnwatch()
	case e.next != "" && e.watched == "":
		e.ask(stepWatch, Op{Kind: OpWatch, Path: e.path(e.next)})
	}
}

// planUnwatch gives up a watch that is of no use any more. Left in place it
// would cost one more event when that bid goes.
func (e *Election) planUnwatch() {
	e.ask(stepUnwatch, Op{Kind: OpUnwatch, Path: e.path(e.watched)})
}

func (e *Election) tookLook(list, own Result) {
	if e.phase != Standing || !e.stands(own) || e.refusedBy(list) {
		return
	}
	e.token = own.Stat.Czxid
	bids := ParseBids(list.Names)
	seen := false
	e.others = e.others[:0]
	for _, b := range bids {
		if b.Name == e.own.Name {
			seen = true
		} else {
			e.others = append(e.others, b)
		}
	}
	if !seen {
		e.pause.extend(e.now) // a server that is behind in spite of the sync
		return
	}
	e.look = false
	if e.exact = wornOut(bids) && len(e.others) > 0; e.exact {
		return
	}
	e.settle(preceding(e.others, e.own, e.skip))
}

// tookStat orders the bids by czxid.
func (e *Election) tookStat(res []Result) {
	e.exact = false
	if e.phase != Standing {
		return
	}
	var ahead []Bid
	var nearest wire.Zxid
	for i, r := range res {
		if errors.Is(r.Err, wire.ErrNoNode) {
			continue
		}
		if e.refusedBy(r) {
			return
		}
		if r.Stat.EphemeralOwner == 0 || r.Stat.Czxid >= e.token {
			continue
		}
		ahead = append(ahead, e.others[i])
		if last := len(ahead) - 1; r.Stat.Czxid > nearest {
			nearest = r.Stat.Czxid
		} else {
			ahead[last], ahead[last-1] = ahead[last-1], ahead[last]
		}
	}
	e.settle(ahead)
}

// settle draws the conclusion from the bids ahead, the nearest of them last.
func (e *Election) settle(ahead []Bid) {
	e.ahead, e.next, e.first = len(ahead), "", len(ahead) == 0
	if e.first {
		if e.left() <= 0 {
			e.tell(First{e.own.Name})
		}
		return
	}
	e.next = ahead[len(ahead)-1].Name
}

func (e *Election) tookWatch(r Result) {
	switch {
	case errors.Is(r.Err, wire.ErrNoNode): // gone in between
		e.look = true
	case e.refusedBy(r):
	case r.Stat.EphemeralOwner == 0:
		// Looks like a bid, but stays whoever leaves.
		if e.skip == nil {
			e.skip = map[string]bool{}
		}
		e.skip[e.next] = true
		e.watched, e.next, e.look = e.next, "", true
	case e.phase != Standing:
		e.watched = e.next // to be given up
	default:
		e.watched = e.next
		naming := Foreign
		if b, err := ParseBid(e.next); err == nil {
			naming = b.Naming
		}
		e.forID = BidID(naming, r.Data)
		e.tell(Waiting{e.own.Name, e.watched, e.forID, e.ahead})
	}
}

// stands checks a reading of the own bid; where it is gone or another
// session's, the claim ends.
func (e *Election) stands(r Result) bool {
	switch {
	case errors.Is(r.Err, wire.ErrNoNode), r.Err == nil && r.Stat.EphemeralOwner != e.session:
		e.end(BidGone, nil)
		e.own = Bid{}
		return false
	}
	return !e.refusedBy(r)
}

// refusedBy ends the claim if the server refused.
func (e *Election) refusedBy(r Result) bool {
	if r.Err != nil {
		e.end(Refused, r.Err)
	}
	return r.Err != nil
}
