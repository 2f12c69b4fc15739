package claim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"bellwether/wire"
)

// leg is one request of a plan, as text, and its result.
type leg struct {
	asks  string
	gives Result
}

func (o Op) brief() string {
	s := o.Kind.String() + " " + o.Path
	if o.Data != nil {
		s += " " + string(o.Data)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{o.Persistent, " persistent"}, {o.Sequential, " sequential"}, {o.Strict, " strict"}} {
		if flag.set {
			s += flag.name
		}
	}
	return s
}

// TestPlans checks the requests of each operation, depending on their results.
func TestPlans(t *testing.T) {
	denied, lost := Result{Err: fmt.Errorf("read: %w", wire.ErrNoAuth)}, Result{Err: wire.ErrConnectionLoss}
	exists, here := Result{Err: wire.ErrNodeExists}, Result{Stat: wire.Stat{Version: 3}}
	parents := func(p string) Op { return Op{Kind: OpParents, Path: p, Data: []byte("x")} }
	await, watch := Op{Kind: OpAwait, Path: "/a"}, Op{Kind: OpWatch, Path: "/a"}
	for name, c := range map[string]struct {
		op   Op
		legs []leg
		want Result
	}{
		"plain":              {Op{Kind: OpGet, Path: "/a"}, []leg{{"get /a", here}}, here},
		"plain and refused":  {Op{Kind: OpExists, Path: "/a"}, []leg{{"exists /a", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"the root":           {parents("/"), nil, Result{}},
		"parents are there":  {parents("/a/b"), []leg{{"create /a/b x persistent", exists}}, Result{}},
		"one is missing":     {parents("/a/b"), []leg{{"create /a/b x persistent", Result{Path: "/a/b"}}}, Result{}},
		"all are missing":    {parents("/a/b/c"), []leg{{"create /a/b/c x persistent", Result{Err: wire.ErrNoNode}}, {"create /a/b persistent", Result{Err: wire.ErrNoNode}}, {"create /a persistent", Result{}}, {"create /a/b persistent", exists}, {"create /a/b/c x persistent", Result{}}}, Result{}},
		"deleted beneath":    {parents("/a/b/c"), []leg{{"create /a/b/c x persistent", Result{Err: wire.ErrNoNode}}, {"create /a/b persistent", exists}, {"create /a/b/c x persistent", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"deleted above":      {parents("/a/b/c"), []leg{{"create /a/b/c x persistent", Result{Err: wire.ErrNoNode}}, {"create /a/b persistent", Result{Err: wire.ErrNoNode}}, {"create /a persistent", exists}, {"create /a/b persistent", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"nothing is above":   {parents("/a"), []leg{{"create /a x persistent", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"a parent forbidden": {parents("/a/b"), []leg{{"create /a/b x persistent", Result{Err: wire.ErrNoNode}}, {"create /a persistent", denied}}, denied},
		"a parent lost":      {parents("/a/b"), []leg{{"create /a/b x persistent", Result{Err: wire.ErrNoNode}}, {"create /a persistent", lost}}, lost},
		"it is there":        {await, []leg{{"watch /a strict", here}}, here},
		"it is not":          {await, []leg{{"watch /a strict", Result{Err: wire.ErrNoNode}}, {"exists /a", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"it came":            {await, []leg{{"watch /a strict", Result{Err: wire.ErrNoNode}}, {"exists /a", here}, {"get /a", here}}, here},
		"it came and went":   {await, []leg{{"watch /a strict", Result{Err: wire.ErrNoNode}}, {"exists /a", here}, {"get /a", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"await forbidden":    {await, []leg{{"watch /a strict", denied}}, denied},
		"await lost":         {await, []leg{{"watch /a strict", Result{Err: wire.ErrNoNode}}, {"exists /a", lost}}, lost},
		"watched":            {watch, []leg{{"watch /a strict", here}}, here},
		"nothing to watch":   {watch, []leg{{"watch /a strict", Result{Err: wire.ErrNoNode}}}, Result{Err: wire.ErrNoNode}},
		"not to be read":     {watch, []leg{{"watch /a strict", denied}, {"exists /a", here}}, here},
		"nothing to be read": {watch, []leg{{"watch /a strict", denied}, {"exists /a", Result{Err: wire.ErrNoNode}}, {"unwatch /a", Result{}}}, Result{Err: wire.ErrNoNode}},
		"not watched":        {watch, []leg{{"watch /a strict", denied}, {"exists /a", lost}}, lost},
		"strict":             {Op{Kind: OpWatch, Path: "/a", Strict: true}, []leg{{"watch /a strict", denied}}, denied},
	} {
		t.Run(name, func(t *testing.T) {
			plan := NewPlan(c.op)
			for i, l := range c.legs {
				op, more := plan.Next()
				if !more || op.brief() != l.asks {
					t.Fatalf("request %d: %q (%v), want %q", i+1, op.brief(), more, l.asks)
				}
				plan.Took(l.gives)
			}
			if op, more := plan.Next(); more {
				t.Fatalf("it asks for more: %q", op.brief())
			}
			got := plan.Result()
			if got.Err != c.want.Err || got.Stat != c.want.Stat || got.Path != c.want.Path {
				t.Errorf("gives %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestParentsWhileOthersDelete checks that a plan for OpParents ends while other clients create and delete
// znodes, and that its result was true at some moment.
func TestParentsWhileOthersDelete(t *testing.T) {
	const deepest = "/a/b/c/d"
	ends := map[bool]int{}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		depth := 0 // number of existing levels of the path
		c := NewPlan(Op{Kind: OpParents, Path: deepest})
		for requests := 1; ; requests++ {
			op, _ := c.Next()
			at := strings.Count(op.Path, "/")
			var res Result
			switch {
			case at <= depth:
				res.Err = wire.ErrNodeExists
			case at > depth+1:
				res.Err = wire.ErrNoNode
			default:
				depth = at
			}
			c.Took(res)
			if _, more := c.Next(); !more {
				break
			}
			if requests == 7 {
				t.Fatalf("seed %d: it does not end", seed)
			}
			if r.IntN(2) == 0 {
				depth = r.IntN(5)
			}
		}
		made := c.Result().Err == nil
		if ends[made]++; made != (depth == 4) {
			t.Errorf("seed %d: %v, and %d are there", seed, c.Result().Err, depth)
		}
	}
	if ends[true] < 100 || ends[false] < 100 {
		t.Errorf("%v", ends)
	}
}

// TestPlainPlanAllocatesNothing checks that the plan of an operation of a single request allocates no memory,
// because almost all operations are of this kind.
func TestPlainPlanAllocatesNothing(t *testing.T) {
	op, taken := Op{Kind: OpSet, Path: "/a", Data: []byte("x")}, 0
	if n := testing.AllocsPerRun(100, func() {
		c := NewPlan(op)
		for next, more := c.Next(); more; next, more = c.Next() {
			taken += len(next.Path)
			c.Took(Result{})
		}
		if c.Result().Err != nil {
			t.Error(c.Result().Err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
