package claim

import (
	"errors"
	"slices"

	"bellwether/wire"
)

// planLook lists the items. The claims are read first: of an item that is done
// with both are gone at once.
func (t *Take) planLook() {
	items, claims := Op{Kind: OpList, Path: t.cfg.Items}, Op{Kind: OpList, Path: t.cfg.Claims}
	if t.watch {
		items.Kind = OpWatchAll
	}
	if t.claims {
		claims.Kind = OpWatchAll
	}
	var ops []Op
	if t.stale {
		ops = append(ops, Op{Kind: OpSync, Path: t.cfg.Items})
	}
	if t.cfg.Claims != "" {
		ops = append(ops, claims)
	}
	if t.cfg.Delayed != "" {
		ops = append(ops, Op{Kind: OpList, Path: t.cfg.Delayed})
	}
	t.ask(t.tookLook, append(ops, items)...)
}

func (t *Take) tookLook(res []Result) {
	if t.stale {
		t.stale, res = false, res[1:]
	}
	items, claims := res[len(res)-1], res[0]
	if t.cfg.Delayed != "" {
		t.later = earliest(res[len(res)-2].Names) // none where it is refused, or not there
	}
	t.note(t.watch, t.cfg.Items, items)
	if t.cfg.Claims == "" {
		claims = Result{}
	}
	t.note(t.claims, t.cfg.Claims, claims)
	switch err := errors.Join(claims.Err, items.Err); {
	case errors.Is(err, wire.ErrNoNode):
		t.planMake()
		return
	case err != nil:
		t.refuse(err)
		return
	}
	all := ParseItems(items.Names)
	if t.cfg.Claims == "" {
		if err := otherThanQueue(t.cfg.Items, items.Names, len(all)); err != nil {
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
	needs := t.cfg.Claims != "" && len(all) > 0 // one of them may come back
	t.waits = t.watch && (t.claims || !needs)
	t.watch, t.claims = true, needs
}

// note takes note of a watch.
func (t *Take) note(asked bool, path string, r Result) {
	if asked && r.Err == nil {
		t.watched[path] = true
	}
}

// planMake makes what the queue stands on, unless another recipe stands there.
func (t *Take) planMake() {
	if t.cfg.Root != "" && !t.vetted {
		t.ask(func(res []Result) {
			t.vetted = true
			if err := otherRecipe(t.cfg.Root, KindWorkQueue, res[0].Names); err != nil {
				t.refuse(err)
			}
		}, Op{Kind: OpList, Path: t.cfg.Root})
		return
	}
	ops := []Op{{Kind: OpParents, Path: t.cfg.Items}}
	if t.cfg.Claims != "" {
		ops = append(ops, Op{Kind: OpParents, Path: t.cfg.Claims})
	}
	t.ask(t.made, ops...)
}

func (t *Take) tookItem(res []Result) {
	switch err := res[0].Err; {
	case err == nil:
		t.read, t.data, t.version = true, res[0].Data, res[0].Stat.Version
		t.uncounted = len(t.data) > countedMax
	case errors.Is(err, wire.ErrNoNode):
		t.faster()
	default:
		t.refuse(err)
	}
}

// faster: somebody else was, or the server is behind.
func (t *Take) faster() {
	t.lookAgain()
	t.stale = true
}

// countedMax is the size of an item's data up to which its deliveries are counted: what counts them
// is the version of the znode, which is set to the same data again.
const countedMax = 256 << 10

// planTake takes the item and leaves the line, or does neither.
func (t *Take) planTake() {
	item, own := Join(t.cfg.Items, t.found), Join(t.cfg.Line, t.place.own)
	ops := []Op{{Kind: OpDelete, Path: item, Version: AnyVersion}}
	if t.cfg.Claims != "" {
		count := Op{Kind: OpSet, Path: item, Data: t.data, Version: t.version}
		if t.uncounted {
			count = Op{Kind: OpCheck, Path: item, Version: AnyVersion}
		}
		ops = []Op{count, {Kind: OpCreate, Path: Join(t.cfg.Claims, t.found), Data: []byte(own)}}
	}
	ops = append(ops, Op{Kind: OpDelete, Path: own, Version: AnyVersion})
	session, last := t.session, len(ops)-1
	t.attempt(func(res []Result) {
		switch r := res[0]; {
		case r.Err == nil && (t.cfg.Claims == "" || session == t.session):
			t.take(item, session)
		case session != t.session: // all is begun anew
		case r.Failed == last && errors.Is(r.Err, wire.ErrNoNode): // somebody deleted the place
			t.startAnew()
		case errors.Is(r.Err, wire.ErrNoNode), errors.Is(r.Err, wire.ErrNodeExists), errors.Is(r.Err, wire.ErrBadVersion):
			t.faster()
		case t.cfg.Claims != "" && r.Failed == 0 && !t.uncounted: // it may be taken, and not be written
			t.uncounted = true
		default:
			t.refuse(r.Err)
		}
	}, Op{Kind: OpMulti, Path: item, Ops: ops})
}

// take is the end where the item was taken.
func (t *Take) take(item string, session wire.SessionID) {
	t.doubt, t.item, t.got = 0, item, session
	t.end(Succeeded, nil)
}

// planFindOut finds out whether the item was taken: then the place is gone,
// and the item or, where it is claimed, the claim tells whose it is.
func (t *Take) planFindOut() {
	own, item := Join(t.cfg.Line, t.place.own), Join(t.cfg.Items, t.found)
	tells := item
	if t.cfg.Claims != "" {
		tells = Join(t.cfg.Claims, t.found)
	}
	t.ask(func(res []Result) {
		place, told := res[1], res[2]
		switch {
		case place.Err == nil: // it was not
			t.doubt = 0
		case !errors.Is(place.Err, wire.ErrNoNode):
			t.refuse(place.Err)
		case t.cfg.Claims != "" && told.Err == nil && string(told.Data) == own,
			t.cfg.Claims == "" && errors.Is(told.Err, wire.ErrNoNode):
			t.take(item, t.session)
		case told.Err == nil || errors.Is(told.Err, wire.ErrNoNode): // somebody deleted the place
			t.doubt = 0
			t.startAnew()
		default:
			t.refuse(told.Err)
		}
	}, Op{Kind: OpSync, Path: own}, Op{Kind: OpGet, Path: own}, Op{Kind: OpGet, Path: tells})
}
