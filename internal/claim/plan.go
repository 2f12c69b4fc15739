package claim

import (
	"errors"
	"path"
	"strings"

	"bellwether/wire"
)

// Plan turns one operation into requests of the protocol, one after the other:
//
//	parents: create ▸ parent missing: create the parent first ▸ … ▸ create the znodes below it
//	watch:   read and watch ▸ reading not allowed: exists with watch ▸ znode missing: remove the watch
//	await:   read and watch ▸ znode missing: exists with watch ▸ znode was created in between: read
//
// Next returns single requests only: no OpParents and no OpAwait. An OpWatch from Next always reads, and
// an OpUnwatch removes a watch that this plan has set. The session of the original request must carry out
// all of them.
type Plan struct {
	op   Op
	next Op
	down bool // parents: an existing parent was found, so the plan now creates downwards
	over bool
	res  Result
}

// NewPlan returns the plan for an operation.
func NewPlan(op Op) Plan {
	c := Plan{op: op, next: op}
	switch op.Kind {
	case OpParents:
		c.create(op.Path)
		c.over = op.Path == "/"
	case OpWatch, OpAwait:
		c.next = Op{Kind: OpWatch, Path: op.Path, Strict: true}
	}
	return c
}

// Next returns the next request; more is false when none is left.
func (c *Plan) Next() (op Op, more bool) { return c.next, !c.over }

// Result returns the result of the operation. It is valid when Next reports that no request is left.
func (c *Plan) Result() Result { return c.res }

// Took processes the result of the request that Next returned.
func (c *Plan) Took(r Result) {
	switch c.op.Kind {
	case OpParents:
		c.tookParent(r)
	case OpWatch:
		c.tookWatch(r)
	case OpAwait:
		c.tookAwait(r)
	default:
		c.end(r)
	}
}

func (c *Plan) end(r Result) { c.res, c.over = r, true }

// create makes the creation of one of the parents the next request.
func (c *Plan) create(at string) {
	c.next = Op{Kind: OpCreate, Path: at, Persistent: true}
	if at == c.op.Path {
		c.next.Data = c.op.Data
	}
}

// tookParent moves up to the first existing parent and then creates downwards. If a parent is deleted
// meanwhile, the plan fails and does not create it again.
func (c *Plan) tookParent(r Result) {
	at := c.next.Path
	switch stands := r.Err == nil || errors.Is(r.Err, wire.ErrNodeExists); {
	case stands && at == c.op.Path:
		c.end(Result{})
	case stands:
		c.down = true
		name, _, _ := strings.Cut(c.op.Path[len(at)+1:], "/")
		c.create(Join(at, name))
	case errors.Is(r.Err, wire.ErrNoNode) && !c.down && path.Dir(at) != "/":
		c.create(path.Dir(at))
	default:
		c.end(Result{Err: r.Err})
	}
}

// tookWatch handles the steps of OpWatch. An exists request leaves a watch on a missing znode. The plan
// removes that watch, because no client will create a znode of that name again.
func (c *Plan) tookWatch(r Result) {
	switch {
	case c.next.Kind == OpWatch && errors.Is(r.Err, wire.ErrNoAuth) && !c.op.Strict:
		c.next = Op{Kind: OpExists, Path: c.op.Path}
	case c.next.Kind == OpExists && errors.Is(r.Err, wire.ErrNoNode):
		c.res, c.next = r, Op{Kind: OpUnwatch, Path: c.op.Path}
	case c.next.Kind == OpUnwatch:
		c.over = true
	default:
		c.end(r)
	}
}

// tookAwait handles the steps of OpAwait. The watch is set before the last read, so it reports any change
// after that read.
func (c *Plan) tookAwait(r Result) {
	switch {
	case c.next.Kind == OpWatch && errors.Is(r.Err, wire.ErrNoNode):
		c.next = Op{Kind: OpExists, Path: c.op.Path}
	case c.next.Kind == OpExists && r.Err == nil:
		c.next = Op{Kind: OpGet, Path: c.op.Path}
	default:
		c.end(r)
	}
}
