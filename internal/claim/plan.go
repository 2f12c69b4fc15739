package claim

import (
	"errors"
	"path"
	"strings"

	"bellwether/wire"
)

// Plan is how one operation is carried out: by a single request of the
// protocol or, where it takes several, by one after the other.
//
//	parents: create ▸ nothing above: create that first ▸ … ▸ create what is below it
//	watch:   read and watch ▸ reading is not allowed: look and watch ▸ there is none: give the watch up
//	await:   read and watch ▸ there is none: look and watch ▸ there is one: read
//
// What Next asks for is one request: no OpParents and no OpAwait, an OpWatch that
// reads, and an OpUnwatch that gives up what this course has set. Each is carried
// out in the session of the whole.
type Plan struct {
	op   Op
	next Op
	down bool // parents: what is above stands, so that nothing more is to be found missing
	over bool
	res  Result
}

// NewPlan begins with an operation.
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

// Next is the request to make, if there is one left.
func (c *Plan) Next() (op Op, more bool) { return c.next, !c.over }

// Result is what the operation gave, once no request is left.
func (c *Plan) Result() Result { return c.res }

// Took takes what the request of Next gave.
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

// create goes on with one of the parents.
func (c *Plan) create(at string) {
	c.next = Op{Kind: OpCreate, Path: at, Persistent: true}
	if at == c.op.Path {
		c.next.Data = c.op.Data
	}
}

// tookParent goes up as long as something is missing, and then down. What is
// deleted meanwhile is not made again.
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

// tookWatch: the watch of who only looks stands where there is no znode too, and
// nobody will create this one again.
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

// tookAwait: what came in between is watched.
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
