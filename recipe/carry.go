package recipe

import (
	"context"
	"errors"
	"slices"
	"sync"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// answer is the reply to a request, with the watches that it set.
type answer struct {
	claim.Reply
	watches []*setWatch
}

// setWatch is a watch that a request has set.
type setWatch struct {
	*zk.Watch
	path    string
	absent  bool   // the znode did not exist when the watch was set
	n       uint64 // the number of the request that set it
	removed bool   // the watch was removed, so its end is not an event; used only by the driver's loop
}

// carryOut carries out one request within its session. watch is the watch that an OpUnwatch removes.
func (a *agent) carryOut(ctx context.Context, req claim.Request, watch *zk.Watch) answer {
	ctx = zk.InSession(ctx, req.Session)
	ans := answer{Reply: claim.Reply{N: req.N}}
	ans.Results = inOrder(req.Ops, func(ops []claim.Op) []claim.Result {
		op := ops[0]
		if n := claim.Batch(ops); n > 1 {
			return a.batch(ctx, ops[:n])
		} else if op.Kind == claim.OpUnwatch {
			res, _ := a.request(ctx, op, watch)
			return []claim.Result{res}
		}
		res, w := a.carryOne(ctx, op)
		if w != nil {
			ans.watches = append(ans.watches, &setWatch{Watch: w, path: op.Path, absent: errors.Is(res.Err, zk.ErrNoNode), n: req.N})
		}
		return []claim.Result{res}
	})
	return ans
}

// inOrder carries out the operations of a request. It calls first with those that remain; first carries out one or more
// of them, and returns their results. If a reply is lost, inOrder does not send the later operations, and reports them
// as lost too.
func inOrder(ops []claim.Op, first func([]claim.Op) []claim.Result) []claim.Result {
	var res []claim.Result
	lost := func(r claim.Result) bool { return errors.Is(r.Err, wire.ErrConnectionLoss) }
	for len(res) < len(ops) && !slices.ContainsFunc(res, lost) {
		res = slices.Concat(res, first(ops[len(res):]))
	}
	for len(res) < len(ops) {
		res = append(res, claim.Result{Err: wire.ErrConnectionLoss})
	}
	return res
}

// batch carries out a claim.Batch in one round trip. If the reply to its first operation
// is lost, batch reports the reads behind it as lost too, because these reads may show
// the state before that operation.
func (a *agent) batch(ctx context.Context, ops []claim.Op) []claim.Result {
	if k := ops[0].Kind; k == claim.OpList || k == claim.OpGet {
		return a.readAll(ctx, ops)
	}
	var first claim.Result
	queued, answered := make(chan struct{}), make(chan struct{})
	behind := sync.OnceFunc(func() { close(queued) })
	go func() {
		defer close(answered)
		defer behind() // for the case that the request was not sent
		first = a.carryPlain(zk.Queued(ctx, behind), ops[0])
	}()
	<-queued
	rest := a.readAll(ctx, ops[1:])
	<-answered
	if errors.Is(first.Err, wire.ErrConnectionLoss) {
		for i := range rest {
			rest[i] = claim.Result{Err: first.Err}
		}
	}
	return append([]claim.Result{first}, rest...)
}

// readAll carries out reads in one request.
func (a *agent) readAll(ctx context.Context, ops []claim.Op) []claim.Result {
	if len(ops) == 1 {
		return []claim.Result{a.carryPlain(ctx, ops[0])}
	}
	list := make([]zk.Op, len(ops))
	for i, op := range ops {
		if list[i] = zk.GetOp(op.Path); op.Kind == claim.OpList {
			list[i] = zk.ChildrenOp(op.Path)
		}
	}
	got, err := a.c.MultiRead(ctx, list...)
	out := make([]claim.Result, len(ops))
	for i := range out {
		if err != nil {
			out[i].Err = translated(ctx, err)
			continue
		}
		out[i] = claim.Result{Err: withOp(ops[i], got[i].Err), Data: got[i].Data, Stat: got[i].Stat, Names: got[i].Children}
	}
	return out
}

// withOp wraps an error of one of several reads with the operation and path that failed.
func withOp(op claim.Op, err error) error {
	if err == nil {
		return nil
	}
	code := wire.OpGetData
	if op.Kind == claim.OpList {
		code = wire.OpGetChildren
	}
	return &zk.OpError{Op: code.String(), Path: op.Path, Err: err}
}

// carryOne carries out one operation. It returns the result and the watch that the operation set.
func (a *agent) carryOne(ctx context.Context, op claim.Op) (claim.Result, *zk.Watch) {
	r, w := a.runPlan(ctx, op)
	r.Err = translated(ctx, r.Err)
	return r, w
}

// carryPlain is like carryOne, but for an operation that sets no watch.
func (a *agent) carryPlain(ctx context.Context, op claim.Op) claim.Result {
	r, _ := a.carryOne(ctx, op)
	return r
}

// runPlan makes the requests that one operation takes. It returns the client's errors unchanged.
func (a *agent) runPlan(ctx context.Context, op claim.Op) (claim.Result, *zk.Watch) {
	var watch *zk.Watch
	c := claim.NewPlan(op)
	for next, more := c.Next(); more; next, more = c.Next() {
		var r claim.Result
		r, watch = a.request(ctx, next, watch)
		c.Took(r)
	}
	return c.Result(), watch
}

// request makes one request. watch is the watch that was set before it; request returns the one that is set after it.
func (a *agent) request(ctx context.Context, op claim.Op, watch *zk.Watch) (r claim.Result, _ *zk.Watch) {
	switch op.Kind {
	case claim.OpWatch:
		r.Data, r.Stat, watch, r.Err = a.c.GetW(ctx, op.Path)
	case claim.OpWatchAll:
		r.Names, r.Stat, watch, r.Err = a.c.ChildrenW(ctx, op.Path)
	case claim.OpExists:
		var there bool
		r.Stat, there, watch, r.Err = a.c.ExistsW(ctx, op.Path)
		r.Err = existsError(there, r.Err)
	case claim.OpUnwatch:
		if watch != nil {
			_ = watch.Remove(ctx) // the client drops the watch at once, the server when the connection ends at the latest
		}
		watch = nil
	default:
		r = a.plain(ctx, op)
	}
	return r, watch
}

// plain makes a request that neither sets nor removes a watch.
func (a *agent) plain(ctx context.Context, op claim.Op) (r claim.Result) {
	switch op.Kind {
	case claim.OpSync:
		r.Err = a.c.Sync(ctx, op.Path)
	case claim.OpCreate:
		r.Path, r.Stat, r.Err = a.c.Create(ctx, op.Path, op.Data, a.createOptions(op)...)
	case claim.OpList:
		r.Names, r.Stat, r.Err = a.c.Children(ctx, op.Path)
	case claim.OpGet:
		r.Data, r.Stat, r.Err = a.c.Get(ctx, op.Path)
		if a.itemACL != nil && r.Err == nil {
			*a.itemACL, _, r.Err = a.c.GetACL(ctx, op.Path)
		}
	case claim.OpStat:
		var there bool
		r.Stat, there, r.Err = a.c.Exists(ctx, op.Path)
		r.Err = existsError(there, r.Err)
	case claim.OpSet:
		r.Stat, r.Err = a.c.Set(ctx, op.Path, op.Data, op.Version)
	case claim.OpDelete:
		r.Err = a.c.Delete(ctx, op.Path, op.Version)
	case claim.OpMulti:
		r.Failed, r.Err = a.multi(ctx, op.Ops)
	default:
		panic("recipe: no such operation: " + op.Kind.String())
	}
	return r
}

// existsError returns zk.ErrNoNode if the znode does not exist.
func existsError(there bool, err error) error {
	if err == nil && !there {
		return zk.ErrNoNode
	}
	return err
}

func (a *agent) createOptions(op claim.Op) []zk.CreateOption {
	opts := []zk.CreateOption{zk.Ephemeral}
	if op.Persistent {
		opts[0] = zk.Persistent
	}
	if op.Sequential {
		opts = append(opts, zk.Sequential)
	}
	if a.acl != nil {
		opts = append(opts, a.acl)
	}
	return opts
}

// multi carries out a multi. It returns the index of the operation that failed, or -1 if the results name none.
func (a *agent) multi(ctx context.Context, ops []claim.Op) (failed int, err error) {
	var list []zk.Op
	for _, op := range ops {
		switch op.Kind {
		case claim.OpCheck:
			list = append(list, zk.CheckOp(op.Path, op.Version))
		case claim.OpCreate:
			opts := a.createOptions(op)
			if op.Like != "" {
				acl, _, err := a.c.GetACL(ctx, op.Like)
				if err != nil {
					return 0, err
				}
				opts = append(opts, acl)
			}
			list = append(list, zk.CreateOp(op.Path, op.Data, opts...))
		case claim.OpDelete:
			list = append(list, zk.DeleteOp(op.Path, op.Version))
		case claim.OpSet:
			list = append(list, zk.SetOp(op.Path, op.Data, op.Version))
		case claim.OpMore:
			list = append(list, a.more...)
		default:
			panic("recipe: no such operation in a multi: " + op.Kind.String())
		}
	}
	res, err := a.c.Multi(ctx, list...)
	for i, r := range res {
		if r.Err != nil && r.Err != wire.ErrRuntimeInconsistency {
			return i, err
		}
	}
	return -1, err
}

// translated translates errors of the client into the codes that the machines handle.
func translated(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrQueueFull):
		return wire.ErrThrottledOp // the request was not sent; the machine tries again later
	case ctx.Err() != nil:
		return wire.ErrConnectionLoss
	}
	return err
}
