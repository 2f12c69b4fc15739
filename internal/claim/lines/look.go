package lines

import (
	"cmp"
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planLook looks who is ahead and watches the nearest one. The look at the own
// bid's owner keeps a new session from believing in a bid of the one before it
// (CURATOR-604).
//
// A server that knows the own bid knows all that were made before it. So a sync
// is needed only where the bid is not there, which may be because the server is
// behind, and where the session was without proof for a while, during which
// everything may have changed without the server's knowledge.
func (l *Line) planLook() {
	switch {
	case l.look:
		parent := l.cfg.Parent
		list, own := claim.Op{Kind: claim.OpList, Path: parent}, claim.Op{Kind: claim.OpGet, Path: l.path(l.own.Name)}
		if !l.stale {
			l.ask(stepLook, list, own)
			return
		}
		l.stale = false
		l.ask(stepLookSure, claim.Op{Kind: claim.OpSync, Path: parent}, list, own)
	case l.exact:
		names := make([]string, len(l.others))
		for i, b := range l.others {
			names[i] = b.Name
		}
		l.ask(stepStat, l.gets(names)...)
	case l.watched != "" && l.watched != l.next:
		l.planUnwatch()
	case l.next != "" && l.watched == "":
		l.planWatch()
	}
}

// anyLease stands for the watch on all children, as the name of no bid.
const anyLease = "/"

// planWatch watches what is in the way. Who only tries looks at it, lest it
// be something that is no bid.
func (l *Line) planWatch() {
	switch path := l.watchPath(l.next); {
	case l.next == anyLease:
		l.ask(stepWatchAll, claim.Op{Kind: claim.OpWatchAll, Path: path})
	case l.cfg.Try:
		l.ask(stepWatch, claim.Op{Kind: claim.OpGet, Path: path})
	default:
		l.ask(stepWatch, claim.Op{Kind: claim.OpWatch, Path: path})
	}
}

// watchPath is the path at which the watch for a bid, or any lease, is set.
func (l *Line) watchPath(name string) string {
	if name == anyLease {
		return l.cfg.Parent
	}
	return l.path(name)
}

// planUnwatch gives up a watch that is of no use any more. Left in place it
// would cost one more event when that bid goes.
func (l *Line) planUnwatch() {
	l.ask(stepUnwatch, claim.Op{Kind: claim.OpUnwatch, Path: l.watchPath(l.watched)})
}

// misses reports whether a look does not show the own bid as it should be.
func (l *Line) misses(list, own claim.Result) bool {
	switch {
	case list.Err != nil || own.Err != nil:
		return errors.Is(list.Err, wire.ErrNoNode) || errors.Is(own.Err, wire.ErrNoNode)
	case own.Stat.EphemeralOwner != l.session:
		return true
	}
	return !slices.Contains(list.Names, l.own.Name)
}

func (l *Line) tookLook(list, own claim.Result) {
	if l.phase != Standing || !l.stands(own) || l.refusedBy(list) || !l.vet(list.Names) {
		return
	}
	l.token = own.Stat.Czxid
	l.look = !l.compare(list.Names)
	if l.look {
		l.stale = true
		l.pause.Fail(l.now) // a server that is behind in spite of the sync
	}
}

// compare draws the conclusion from a list of the children, as far as their
// names allow it. It reports whether the own bid is among them.
func (l *Line) compare(children []string) bool {
	bids := l.cfg.Naming.Bids(children)
	seen := false
	l.others = l.others[:0]
	for _, b := range bids {
		if b.Name == l.own.Name {
			seen = true
		} else {
			l.others = append(l.others, b)
		}
	}
	if !seen {
		return false
	}
	if l.exact = claim.WornOut(bids) && len(l.others) > 0; !l.exact {
		l.settle(claim.Preceding(l.others, l.own, l.skip))
	}
	return true
}

// tookStat orders the bids by czxid.
func (l *Line) tookStat(res []claim.Result) {
	l.exact = false
	if l.phase != Standing {
		return
	}
	var ahead []claim.Bid
	czxids := map[string]wire.Zxid{}
	for i, r := range res {
		if errors.Is(r.Err, wire.ErrNoNode) {
			continue
		}
		if l.refusedBy(r) {
			return
		}
		if r.Stat.EphemeralOwner == 0 || r.Stat.Czxid >= l.token {
			continue
		}
		ahead = append(ahead, l.others[i])
		czxids[l.others[i].Name] = r.Stat.Czxid
	}
	slices.SortFunc(ahead, func(a, b claim.Bid) int { return cmp.Compare(czxids[a.Name], czxids[b.Name]) })
	l.settle(ahead)
}

// settle draws the conclusion from the bids ahead, the nearest of them last.
func (l *Line) settle(ahead []claim.Bid) {
	ahead = l.inTheWay(ahead)
	l.ahead, l.next, l.first = len(ahead), "", len(ahead) == 0
	if l.first {
		if !l.proven() {
			l.tell(First{l.own.Name})
		}
		return
	}
	l.next = ahead[len(ahead)-1].Name
	if l.cfg.Rule == Leases {
		if l.next = anyLease; l.cfg.Try {
			l.end(claim.Occupied, nil)
		}
	}
}

// inTheWay are those of the bids ahead for which the bid has to wait.
func (l *Line) inTheWay(ahead []claim.Bid) []claim.Bid {
	switch l.cfg.Rule {
	case Shared:
		return slices.DeleteFunc(ahead, func(b claim.Bid) bool { return b.Naming.Shared() })
	case Leases:
		if len(ahead) < l.cfg.Leases {
			return nil
		}
	}
	return ahead
}

func (l *Line) tookWatch(r claim.Result) {
	switch {
	case errors.Is(r.Err, wire.ErrNoNode): // gone in between
		l.look = true
	case l.refusedBy(r):
	case r.Stat.EphemeralOwner == 0:
		// Looks like a bid, but stays whoever leaves.
		if l.skip == nil {
			l.skip = map[string]bool{}
		}
		l.skip[l.next] = true
		if !l.cfg.Try {
			l.watched = l.next
		}
		l.next, l.look = "", true
	case l.cfg.Try:
		l.end(claim.Occupied, nil)
	case l.phase != Standing:
		l.watched = l.next // to be given up
	default:
		l.watched = l.next
		naming := claim.Foreign
		if b, err := claim.ParseBid(l.next); err == nil {
			naming = b.Naming
		}
		l.forID = BidID(naming, r.Data)
		l.tell(Waiting{l.own.Name, l.watched, l.forID, l.ahead})
	}
}

// tookWatchAll looks once more, as a lease may have become free in between.
// Only one bid at a time waits in this way, see [Semaphore].
func (l *Line) tookWatchAll(list claim.Result) {
	if l.refusedBy(list) {
		return
	}
	l.watched = anyLease
	if l.phase != Standing {
		return // to be given up
	}
	if l.look = !l.compare(list.Names); l.next == anyLease {
		l.tell(Waiting{Bid: l.own.Name, Ahead: l.ahead})
	}
}

// stands checks a reading of the own bid; where it is gone or another
// session's, the claim ends.
func (l *Line) stands(r claim.Result) bool {
	switch {
	case errors.Is(r.Err, wire.ErrNoNode), r.Err == nil && r.Stat.EphemeralOwner != l.session:
		l.end(claim.BidGone, nil)
		l.own = claim.Bid{}
		return false
	}
	return !l.refusedBy(r)
}

// refusedBy ends the claim if the server refused.
func (l *Line) refusedBy(r claim.Result) bool {
	if r.Err != nil {
		l.end(claim.Refused, r.Err)
	}
	return r.Err != nil
}
