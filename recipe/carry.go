package recipe

import (
	"context"
	"errors"
	"sync"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// answer is what carrying out a request gave.
type answer struct {
	claim.Reply
	watches []setWatch
}

// setWatch is a watch that came with an answer.
type setWatch struct {
	*zk.Watch
	path   string
	absent bool   // there was no znode
	n      uint64 // of the request that set it
}

// carryOut carries out one request within its session. Operations that were
// not reached because an earlier one was lost are lost too. Watch is the one
// that an OpUnwatch is about.
func (b *bidder) carryOut(ctx context.Context, req claim.Request, watch *zk.Watch) answer {
	ctx = zk.InSession(ctx, req.Session)
	a := answer{Reply: claim.Reply{N: req.N}}
	for ops := req.Ops; len(ops) > 0; {
		n := claim.Batch(ops)
		switch {
		case n > 1:
			a.Results = append(a.Results, b.batch(ctx, ops[:n])...)
		case ops[0].Kind == claim.OpUnwatch:
			res, _ := b.request(ctx, ops[0], watch)
			a.Results = append(a.Results, res)
		default:
			res, w := b.carryOne(ctx, ops[0])
			a.Results = append(a.Results, res)
			if w != nil {
				a.watches = append(a.watches, setWatch{w, ops[0].Path, errors.Is(res.Err, zk.ErrNoNode), req.N})
			}
		}
		ops = ops[n:]
		if last := a.Results[len(a.Results)-1]; errors.Is(last.Err, wire.ErrConnectionLoss) {
			for range ops {
				a.Results = append(a.Results, last)
			}
			break
		}
	}
	return a
}

// batch carries out a claim.Batch in one round trip. Where its first operation is
// lost, what the reads behind it found means nothing.
func (b *bidder) batch(ctx context.Context, ops []claim.Op) []claim.Result {
	if k := ops[0].Kind; k == claim.OpList || k == claim.OpGet {
		return b.readAll(ctx, ops)
	}
	var first claim.Result
	queued, answered := make(chan struct{}), make(chan struct{})
	behind := sync.OnceFunc(func() { close(queued) })
	go func() {
		defer close(answered)
		defer behind() // if it was not sent
		first = b.carryPlain(zk.Queued(ctx, behind), ops[0])
	}()
	<-queued
	rest := b.readAll(ctx, ops[1:])
	<-answered
	if errors.Is(first.Err, wire.ErrConnectionLoss) {
		for i := range rest {
			rest[i] = claim.Result{Err: first.Err}
		}
	}
	return append([]claim.Result{first}, rest...)
}

// readAll carries out reads in one request.
func (b *bidder) readAll(ctx context.Context, ops []claim.Op) []claim.Result {
	if len(ops) == 1 {
		return []claim.Result{b.carryPlain(ctx, ops[0])}
	}
	list := make([]zk.Op, len(ops))
	for i, op := range ops {
		if list[i] = zk.GetOp(op.Path); op.Kind == claim.OpList {
			list[i] = zk.ChildrenOp(op.Path)
		}
	}
	got, err := b.c.MultiRead(ctx, list...)
	out := make([]claim.Result, len(ops))
	for i := range out {
		if err != nil {
			out[i].Err = sorted(ctx, err)
			continue
		}
		out[i] = claim.Result{Err: named(ops[i], got[i].Err), Data: got[i].Data, Stat: got[i].Stat, Names: got[i].Children}
	}
	return out
}

// named says which of several reads an error is of.
func named(op claim.Op, err error) error {
	if err == nil {
		return nil
	}
	code := wire.OpGetData
	if op.Kind == claim.OpList {
		code = wire.OpGetChildren
	}
	return &zk.OpError{Op: code.String(), Path: op.Path, Err: err}
}

// carryOne carries out one operation; a watch that it sets comes with it.
func (b *bidder) carryOne(ctx context.Context, op claim.Op) (claim.Result, *zk.Watch) {
	r, w := b.course(ctx, op)
	r.Err = sorted(ctx, r.Err)
	return r, w
}

// carryPlain is carryOne for an operation that sets no watch.
func (b *bidder) carryPlain(ctx context.Context, op claim.Op) claim.Result {
	r, _ := b.carryOne(ctx, op)
	return r
}

// course makes the requests that an operation takes. The error is the client's own.
func (b *bidder) course(ctx context.Context, op claim.Op) (claim.Result, *zk.Watch) {
	var watch *zk.Watch
	c := claim.NewCourse(op)
	for next, more := c.Next(); more; next, more = c.Next() {
		var r claim.Result
		r, watch = b.request(ctx, next, watch)
		c.Took(r)
	}
	return c.Result(), watch
}

// request makes one request. The watch is the one that stands, before and after.
func (b *bidder) request(ctx context.Context, op claim.Op, watch *zk.Watch) (r claim.Result, _ *zk.Watch) {
	switch op.Kind {
	case claim.OpWatch:
		r.Data, r.Stat, watch, r.Err = b.c.GetW(ctx, op.Path)
	case claim.OpWatchAll:
		r.Names, r.Stat, watch, r.Err = b.c.ChildrenW(ctx, op.Path)
	case claim.OpExists:
		var there bool
		r.Stat, there, watch, r.Err = b.c.ExistsW(ctx, op.Path)
		r.Err = missing(there, r.Err)
	case claim.OpUnwatch:
		if watch != nil {
			_ = watch.Remove(ctx) // here it is gone at once; on the server at the latest with the connection
		}
		watch = nil
	default:
		r = b.plain(ctx, op)
	}
	return r, watch
}

// plain makes a request that concerns no watch.
func (b *bidder) plain(ctx context.Context, op claim.Op) (r claim.Result) {
	switch op.Kind {
	case claim.OpSync:
		r.Err = b.c.Sync(ctx, op.Path)
	case claim.OpCreate:
		r.Path, r.Stat, r.Err = b.c.Create(ctx, op.Path, op.Data, b.createOptions(op)...)
	case claim.OpList:
		r.Names, r.Stat, r.Err = b.c.Children(ctx, op.Path)
	case claim.OpGet:
		r.Data, r.Stat, r.Err = b.c.Get(ctx, op.Path)
		if b.itemACL != nil && r.Err == nil {
			*b.itemACL, _, r.Err = b.c.GetACL(ctx, op.Path)
		}
	case claim.OpStat:
		var there bool
		r.Stat, there, r.Err = b.c.Exists(ctx, op.Path)
		r.Err = missing(there, r.Err)
	case claim.OpSet:
		r.Stat, r.Err = b.c.Set(ctx, op.Path, op.Data, op.Version)
	case claim.OpDelete:
		r.Err = b.c.Delete(ctx, op.Path, op.Version)
	case claim.OpMulti:
		r.Failed, r.Err = b.multi(ctx, op.Ops)
	default:
		panic("recipe: no such operation: " + op.Kind.String())
	}
	return r
}

// missing takes a znode that is not there for an error.
func missing(there bool, err error) error {
	if err == nil && !there {
		return zk.ErrNoNode
	}
	return err
}

func (b *bidder) createOptions(op claim.Op) []zk.CreateOption {
	opts := []zk.CreateOption{zk.Ephemeral}
	if op.Persistent {
		opts[0] = zk.Persistent
	}
	if op.Sequential {
		opts = append(opts, zk.Sequential)
	}
	if b.opt.ACL != nil {
		opts = append(opts, b.opt.ACL)
	}
	return opts
}

// multi carries out a multi and says which operation failed.
func (b *bidder) multi(ctx context.Context, ops []claim.Op) (failed int, err error) {
	var list []zk.Op
	for _, op := range ops {
		switch op.Kind {
		case claim.OpCheck:
			list = append(list, zk.CheckOp(op.Path, op.Version))
		case claim.OpCreate:
			opts := b.createOptions(op)
			if op.Like != "" {
				acl, _, err := b.c.GetACL(ctx, op.Like)
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
			list = append(list, b.more...)
		default:
			panic("recipe: no such operation in a multi: " + op.Kind.String())
		}
	}
	res, err := b.c.Multi(ctx, list...)
	for i, r := range res {
		if r.Err != nil && r.Err != wire.ErrRuntimeInconsistency {
			return i, err
		}
	}
	return -1, err
}

// sorted brings errors that are not the server's into the terms of the state machine.
func sorted(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrQueueFull):
		return wire.ErrThrottledOp // not sent: later
	case ctx.Err() != nil:
		return wire.ErrConnectionLoss
	}
	return err
}
