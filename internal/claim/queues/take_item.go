package queues

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planLook lists the items. It lists the claims first: an acknowledged item and its claim are deleted
// together, so no finished item appears unclaimed.
func (t *Take) planLook() {
	items, claims := claim.List(t.Config.Items), claim.List(t.Config.Claims)
	if t.watch {
		items.Kind = claim.OpWatchAll
	}
	if t.claims {
		claims.Kind = claim.OpWatchAll
	}
	var ops []claim.Op
	if t.stale {
		ops = append(ops, claim.Sync(t.Config.Items))
	}
	if t.Config.Claims != "" {
		ops = append(ops, claims)
	}
	if t.Config.Delayed != "" {
		ops = append(ops, claim.List(t.Config.Delayed))
	}
	t.Ask(t.tookLook, append(ops, items)...)
}

func (t *Take) tookLook(res []claim.Result) {
	if t.stale {
		t.stale, res = false, res[1:]
	}
	items, claims := res[len(res)-1], res[0]
	if t.Config.Delayed != "" {
		t.delayed = earliest(res[len(res)-2].Names) // empty if the list was refused or the parent is missing
	}
	t.noteWatch(t.watch, t.Config.Items, items)
	if t.Config.Claims == "" {
		claims = claim.Result{}
	}
	t.noteWatch(t.claims, t.Config.Claims, claims)
	switch {
	case errors.Is(claims.Err, wire.ErrNoNode), errors.Is(items.Err, wire.ErrNoNode):
		t.createParents()
		return
	case claims.Err != nil: // the same error as that of items, if one request carried both reads
		t.refuse(claims.Err)
		return
	case items.Err != nil:
		t.refuse(items.Err)
		return
	}
	all := claim.ParseItems(items.Names)
	if t.Config.Claims == "" {
		if err := otherThanQueue(t.Config.Items, items.Names, len(all)); err != nil {
			t.refuse(err)
			return
		}
	}
	for _, it := range all {
		if !slices.Contains(claims.Names, it.Name) {
			t.found = it.Name
			return
		}
	}
	needs := t.Config.Claims != "" && len(all) > 0 // a claimed item may become free again
	t.waits = t.watch && (t.claims || !needs)
	t.watch, t.claims = true, needs
}

// noteWatch records a watch that was set.
func (t *Take) noteWatch(asked bool, path string, r claim.Result) {
	if asked && r.Err == nil {
		t.watched[path] = true
	}
}

// createParents creates the parents of the queue, unless another recipe uses the path.
func (t *Take) createParents() {
	ops := []claim.Op{claim.MakeParents(t.Config.Items)}
	if t.Config.Claims != "" {
		ops = append(ops, claim.MakeParents(t.Config.Claims))
	}
	t.parents.Create(&t.Requester, t.refuse, ops...)
}

func (t *Take) tookItem(res []claim.Result) {
	switch err := res[0].Err; {
	case err == nil:
		t.read, t.data, t.version = true, res[0].Data, res[0].Stat.Version
		t.uncounted = len(t.data) > countedMax
	case errors.Is(err, wire.ErrNoNode):
		t.outpaced()
	default:
		t.refuse(err)
	}
}

// outpaced makes the consumer look again after a sync. Another consumer took the item, or the server is
// behind.
func (t *Take) outpaced() {
	t.lookAgain()
	t.stale = true
}

// countedMax is the largest size of an item whose deliveries are counted. The version of the item's znode
// is the count, so each delivery writes the same data again.
const countedMax = 256 << 10

// planTake takes the item and leaves the line in one transaction.
func (t *Take) planTake() {
	item, own := claim.Join(t.Config.Items, t.found), claim.Join(t.Config.Line, t.place.own)
	ops := []claim.Op{claim.Delete(item)}
	if t.Config.Claims != "" {
		count := claim.Op{Kind: claim.OpSet, Path: item, Data: t.data, Version: t.version}
		if t.uncounted {
			count = claim.Check(item)
		}
		ops = []claim.Op{count, {Kind: claim.OpCreate, Path: claim.Join(t.Config.Claims, t.found), Data: []byte(own)}}
	}
	ops = append(ops, claim.Delete(own))
	session, last := t.Current, len(ops)-1
	t.Attempt(func(res []claim.Result) {
		switch r := res[0]; {
		case r.Err == nil && (t.Config.Claims == "" || session == t.Current):
			t.take(item, session)
		case session != t.Current: // the machine has started again in a new session
		case r.Failed == last && errors.Is(r.Err, wire.ErrNoNode): // another client deleted the bid
			t.startAnew()
		case errors.Is(r.Err, wire.ErrNoNode), errors.Is(r.Err, wire.ErrNodeExists), errors.Is(r.Err, wire.ErrBadVersion):
			t.outpaced()
		case t.Config.Claims != "" && r.Failed == 0 && !t.uncounted: // the client may take the item but not write it
			t.uncounted = true
		default:
			t.refuse(r.Err)
		}
	}, claim.Multi(item, ops...))
}

// take ends the machine after the item was taken.
func (t *Take) take(item string, session wire.SessionID) {
	t.InDoubt, t.item, t.got = 0, item, session
	t.End(claim.Succeeded, nil)
}

// planFindOut finds out, after a lost answer, whether this consumer took the item. If it did, its bid in the
// line is gone. Another client may have deleted the bid, so the item or its claim must confirm that this
// consumer took the item.
func (t *Take) planFindOut() {
	own, item := claim.Join(t.Config.Line, t.place.own), claim.Join(t.Config.Items, t.found)
	tells := item
	if t.Config.Claims != "" {
		tells = claim.Join(t.Config.Claims, t.found)
	}
	t.Ask(func(res []claim.Result) {
		place, told := res[1], res[2]
		switch {
		case res[0].Err != nil: // the server may be behind
			t.planCannotFindOut(own, res[0].Err)
		case place.Err == nil: // the item was not taken
			t.InDoubt = 0
		case !errors.Is(place.Err, wire.ErrNoNode):
			t.planCannotFindOut(own, place.Err)
		case t.Config.Claims != "" && told.Err == nil && string(told.Data) == own,
			t.Config.Claims == "" && errors.Is(told.Err, wire.ErrNoNode):
			t.take(item, t.Current)
		case told.Err == nil || errors.Is(told.Err, wire.ErrNoNode): // another client deleted the bid
			t.InDoubt = 0
			t.startAnew()
		default:
			t.EndUnclear(told.Err)
		}
	}, claim.Sync(own), claim.Get(own), claim.Get(tells))
}

// planCannotFindOut gives up because the server does not let this consumer find out whether it took the item. The
// consumer deletes its bid, which must not block the line. If there was a bid to delete, the item was not taken.
func (t *Take) planCannotFindOut(own string, why error) {
	t.AskOne(func(r claim.Result) {
		if r.Err != nil {
			t.EndUnclear(why)
			return
		}
		t.InDoubt = 0
		t.End(claim.Failed, why)
	}, claim.Delete(own))
}
