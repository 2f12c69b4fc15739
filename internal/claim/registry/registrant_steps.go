package registry

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// plan chooses the next request. It creates the znode first and reads it afterwards, so a normal
// registration takes two requests.
func (r *Registrant) plan() {
	switch {
	case r.Leaving:
		r.planLeave()
	case !r.retry.Over(r.Now):
	case r.unsure, r.watch == 0 && r.have != 0:
		r.Ask(r.tookLook, claim.Op{Kind: claim.OpExists, Path: r.cfg.Path})
	case r.watch == 0 || r.missing:
		r.planCreate()
	case r.stat.EphemeralOwner != r.Current:
		r.planReplace()
	case r.have != r.Want:
		r.planSet()
	}
}

// write makes a request that changes the znode. If its answer is lost, the Registrant reads the znode
// first.
func (r *Registrant) write(then func(claim.Result), ops ...claim.Op) {
	r.made, r.unsure = true, true
	r.Ask(func(res []claim.Result) {
		if r.unsure = false; !r.Leaving {
			then(res[len(res)-1])
		}
	}, ops...)
}

// planCreate creates the znode. It first removes a watch on the missing znode, because the creation would
// cause an event.
func (r *Registrant) planCreate() {
	var ops []claim.Op
	if r.missing {
		ops = append(ops, claim.Unwatch(r.cfg.Path))
	}
	r.watch, r.missing = 0, false
	bare, n := r.parentsMade, r.Want
	r.write(func(res claim.Result) {
		r.parentsMade = false
		switch err := res.Err; {
		case err == nil:
			r.have = n
		case errors.Is(err, wire.ErrNodeExists):
			r.have = anyData
		case errors.Is(err, wire.ErrNoNode) && bare:
			r.refuse(fmt.Errorf("%s: %w: %w", r.cfg.Path, ErrNoParent, err))
		case errors.Is(err, wire.ErrNoNode):
			r.Ask(r.tookParents, claim.MakeParents(path.Dir(r.cfg.Path)))
		default:
			r.refuse(err)
		}
	}, append(ops, claim.Op{Kind: claim.OpCreate, Path: r.cfg.Path, Data: r.data})...)
}

func (r *Registrant) tookParents(res []claim.Result) {
	switch err := res[0].Err; {
	case err == nil:
		r.parentsMade = true
	case errors.Is(err, wire.ErrNoNode):
		r.refuse(fmt.Errorf("%s: %w: %w", r.cfg.Path, ErrNoParent, err))
	default:
		r.refuse(err)
	}
}

// tookLook processes the read of the owner. The same request has set a watch.
func (r *Registrant) tookLook(res []claim.Result) {
	switch err := res[0].Err; {
	case errors.Is(err, wire.ErrNoNode):
		r.watch, r.missing, r.have = r.N, true, 0
		r.stands, r.foreign = false, false
	case err != nil:
		r.refuse(err)
		return
	default:
		r.stat, r.watch = res[0].Stat, r.N
		r.judge()
	}
	r.unsure = false
}

// judge decides from the last stat whether the registration stands.
func (r *Registrant) judge() {
	switch owner := r.stat.EphemeralOwner; {
	case owner == r.Current && r.have == r.Want:
		r.stands, r.foreign, r.why = true, false, nil
		r.token, r.held = r.stat.Czxid, r.have
	case owner != r.Current:
		if r.have = 0; !r.ours(owner) {
			r.stands, r.foreign, r.why = false, true, nil
		}
	}
}

// ours reports whether s is an earlier session of this Registrant or of an earlier process.
func (r *Registrant) ours(s wire.SessionID) bool { return s != 0 && slices.Contains(r.own, s) }

// planReplace replaces a znode that one of the sessions in own created. The watch fires when the old znode is
// deleted, no matter which client deletes it.
func (r *Registrant) planReplace() {
	if !r.ours(r.stat.EphemeralOwner) {
		return
	}
	n := r.Want
	r.write(func(res claim.Result) {
		switch err := res.Err; {
		case err == nil:
			r.watch, r.have = 0, n
		case hasChanged(err):
			r.watch = 0
		default:
			r.refuse(err)
		}
	}, claim.Multi(r.cfg.Path,
		claim.Op{Kind: claim.OpDelete, Path: r.cfg.Path, Version: r.stat.Version},
		claim.Op{Kind: claim.OpCreate, Path: r.cfg.Path, Data: r.data}))
}

// planSet sets the data of the znode if it has not changed since the last read.
func (r *Registrant) planSet() {
	n := r.Want
	r.write(func(res claim.Result) {
		switch err := res.Err; {
		case err == nil:
			r.stat, r.have = res.Stat, n
			r.judge()
		case hasChanged(err):
			r.watch = 0
		default:
			r.refuse(err)
		}
	}, claim.Op{Kind: claim.OpSet, Path: r.cfg.Path, Data: r.data, Version: r.stat.Version})
}

// hasChanged reports whether an error means that the tree has changed, so that the znode must be read again.
func hasChanged(err error) bool {
	return errors.Is(err, wire.ErrNoNode) || errors.Is(err, wire.ErrBadVersion) || errors.Is(err, wire.ErrNodeExists)
}

// planLeave looks for a znode of this session. The sync is ordered after a creation whose answer was lost,
// so the look shows its effect.
func (r *Registrant) planLeave() {
	if r.made {
		r.Ask(r.tookLast, claim.Sync(r.cfg.Path), claim.Op{Kind: claim.OpStat, Path: r.cfg.Path})
	}
}

func (r *Registrant) tookLast(res []claim.Result) {
	stat := res[1].Stat
	switch err := cmp.Or(res[0].Err, res[1].Err); {
	case res[0].Err == nil && errors.Is(err, wire.ErrNoNode):
		r.End(claim.Succeeded, nil)
	case err != nil:
		r.End(claim.Failed, err)
	case stat.EphemeralOwner != r.Current:
		r.End(claim.Succeeded, nil)
	default:
		r.Ask(r.tookDelete, claim.Op{Kind: claim.OpDelete, Path: r.cfg.Path, Version: stat.Version})
	}
}

// tookDelete processes the deletion. If the znode was set meanwhile, plan reads it once more.
func (r *Registrant) tookDelete(res []claim.Result) {
	switch err := res[0].Err; {
	case err == nil, errors.Is(err, wire.ErrNoNode):
		r.End(claim.Succeeded, nil)
	case !errors.Is(err, wire.ErrBadVersion):
		r.End(claim.Failed, err)
	}
}
