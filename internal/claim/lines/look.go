package lines

import (
	"cmp"
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planLook finds out which bids are ahead, and watches the nearest one that the bid has to wait for. It
// also reads the owner of this Line's bid, so that a new session does not mistake the bid of an earlier
// session for its own (CURATOR-604).
//
// A server that knows this Line's bid knows all bids that were created before it. A sync is therefore needed
// in only two cases: this Line's bid is missing, because the server may be behind; and the lease had lapsed
// for a while, because the server may then have missed any change.
func (l *Line) planLook() {
	switch {
	case l.look:
		parent := l.cfg.Parent
		list, own := claim.List(parent), claim.Get(l.path(l.own.Name))
		if !l.stale {
			l.Ask(l.tookLook, list, own)
			return
		}
		l.stale = false
		l.Ask(l.tookSyncedLook, claim.Sync(parent), list, own)
		l.OnLoss(func() { l.stale = true })
	case l.exact:
		names := make([]string, len(l.others))
		for i, b := range l.others {
			names[i] = b.Name
		}
		l.Ask(l.tookStat, l.gets(names)...)
	case l.watched != "" && l.watched != l.next:
		l.planUnwatch()
	case l.next != "" && l.watched == "":
		l.planWatch()
	}
}

// anyLease, in place of a bid's name, stands for the watch on all children. No bid has this name.
const anyLease = "/"

// planWatch watches the bid that is in the way. With Try it only reads that znode, to make sure that it
// really is a bid.
func (l *Line) planWatch() {
	switch path := l.watchPath(l.next); {
	case l.next == anyLease:
		l.AskOne(l.tookWatchAll, claim.Op{Kind: claim.OpWatchAll, Path: path})
	case l.cfg.Try:
		l.AskOne(l.tookWatch, claim.Get(path))
	default:
		l.AskOne(l.tookWatch, claim.Op{Kind: claim.OpWatch, Path: path})
	}
}

// watchPath returns the path of the watch for a bid, or for anyLease.
func (l *Line) watchPath(name string) string {
	if name == anyLease {
		return l.cfg.Parent
	}
	return l.path(name)
}

// planUnwatch removes a watch that is no longer needed. Otherwise it would cause an event when that bid is
// deleted.
func (l *Line) planUnwatch() {
	l.AskOne(func(claim.Result) { l.watched = "" }, claim.Unwatch(l.watchPath(l.watched)))
}

// misses reports whether a look does not show this Line's bid with the current session as its owner.
func (l *Line) misses(list, own claim.Result) bool {
	switch {
	case list.Err != nil || own.Err != nil:
		return errors.Is(list.Err, wire.ErrNoNode) || errors.Is(own.Err, wire.ErrNoNode)
	case own.Stat.EphemeralOwner != l.Current:
		return true
	}
	return !slices.Contains(list.Names, l.own.Name)
}

// tookLook processes a look at a server that may be behind. If the server does not show this
// Line's bid, planLook repeats the look after a sync.
func (l *Line) tookLook(res []claim.Result) {
	list, own := res[0], res[1]
	if l.stale = l.stale || l.misses(list, own); !l.stale {
		l.judge(list, own)
	}
}

func (l *Line) tookSyncedLook(res []claim.Result) {
	if sync, list, own := res[0], res[1], res[2]; !l.refusedBy(sync) {
		l.judge(list, own)
	}
}

// judge compares this Line's bid with the other children.
func (l *Line) judge(list, own claim.Result) {
	if l.phase != Standing || !l.checkOwn(own) || l.refusedBy(list) || !l.vet(list.Names) {
		return
	}
	l.token = own.Stat.Czxid
	l.look = !l.compare(list.Names)
	if l.look {
		l.stale = true
		l.Pause.Fail(l.Now) // the server is behind in spite of the sync
	}
}

// compare finds the bids ahead in a list of the children. If names cannot order the bids, it requests
// their czxids. It reports whether this Line's bid is in the list.
func (l *Line) compare(children []string) bool {
	bids := claim.BidsOf(l.cfg.Naming, children)
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
	if l.exact = claim.SequenceExhausted(bids) && len(l.others) > 0; !l.exact {
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

// settle decides whether the bid is first or which bid it must watch. The nearest of the bids ahead is the
// last one.
func (l *Line) settle(ahead []claim.Bid) {
	ahead = l.inTheWay(ahead)
	l.ahead, l.next, l.first = len(ahead), "", len(ahead) == 0
	if l.first {
		l.awaitProof()
		return
	}
	l.turn = claim.Timer{}
	l.next = ahead[len(ahead)-1].Name
	if l.cfg.Rule == Leases {
		if l.next = anyLease; l.cfg.Try {
			l.end(claim.Occupied, nil)
		}
	}
}

// awaitProof begins the turn of a bid that is first before its session is proven alive.
func (l *Line) awaitProof() {
	if l.proven() {
		return
	}
	l.Report(First{l.own.Name})
	if l.turn.Wait == 0 && l.Connected {
		l.turn = claim.Timer{From: l.Now, Wait: l.lease.Timeout}
	}
}

// inTheWay returns those of the bids ahead that the bid has to wait for.
func (l *Line) inTheWay(ahead []claim.Bid) []claim.Bid {
	switch l.cfg.Rule {
	case Shared:
		return slices.DeleteFunc(ahead, func(b claim.Bid) bool { return claim.IsShared(b.Naming) })
	case Leases:
		if len(ahead) < l.cfg.Leases {
			return nil
		}
	}
	return ahead
}

func (l *Line) tookWatch(r claim.Result) {
	switch {
	case errors.Is(r.Err, wire.ErrNoNode): // deleted between the two requests
		l.look = true
	case l.refusedBy(r):
	case r.Stat.EphemeralOwner == 0:
		// The znode has the name of a bid, but it is persistent: no session owns it.
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
		l.watched = l.next // planLeave removes this watch
	default:
		l.watched = l.next
		naming := claim.Foreign
		if b, err := claim.ParseBid(l.next); err == nil {
			naming = b.Naming
		}
		l.forID = BidID(naming, r.Data)
		l.Report(Waiting{l.own.Name, l.watched, l.forID, l.ahead})
	}
}

// tookWatchAll compares again, because a lease may have become free before the watch was set. Only one bid
// at a time watches in this way; see [Semaphore].
func (l *Line) tookWatchAll(list claim.Result) {
	if l.refusedBy(list) {
		return
	}
	l.watched = anyLease
	if l.phase != Standing {
		return // planLeave removes this watch
	}
	if l.look = !l.compare(list.Names); l.next == anyLease {
		l.Report(Waiting{Bid: l.own.Name, Ahead: l.ahead})
	}
}

// checkOwn checks a read of this Line's bid. It ends the claim if the bid is gone or belongs to another session.
func (l *Line) checkOwn(r claim.Result) bool {
	switch {
	case errors.Is(r.Err, wire.ErrNoNode), r.Err == nil && r.Stat.EphemeralOwner != l.Current:
		l.bidGone()
		return false
	}
	return !l.refusedBy(r)
}

// bidGone ends the claim because another client has deleted the bid. So there is no bid to remove.
func (l *Line) bidGone() {
	l.end(claim.BidGone, nil)
	l.own = claim.Bid{}
}

// refusedBy ends the claim if the server refused a request, and reports whether it did.
func (l *Line) refusedBy(r claim.Result) bool {
	if r.Err != nil {
		l.end(claim.Refused, r.Err)
	}
	return r.Err != nil
}
