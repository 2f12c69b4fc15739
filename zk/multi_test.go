package zk

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"bellwether/wire"
)

// TestMulti: the header of a failed multi has no error; its results contain the error.
func TestMulti(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		answers := [][]wire.OpResult{
			{
				{Type: wire.OpCheck}, {Type: wire.OpCreate2, Response: &wire.PathStatResponse{Path: "/app/a", Stat: wire.Stat{Czxid: 5}}},
				{Type: wire.OpSetData, Response: &wire.StatResponse{Stat: wire.Stat{Version: 6}}}, {Type: wire.OpDelete},
			},
			{
				{Type: wire.OpError}, {Type: wire.OpError, Err: wire.ErrNodeExists},
				{Type: wire.OpError, Err: wire.ErrRuntimeInconsistency}, {Type: wire.OpError, Err: wire.ErrRuntimeInconsistency},
			},
			{{Type: wire.OpCheck}},
		}
		var types []wire.OpCode
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			if h.Op != wire.OpMulti {
				return false
			}
			var req wire.MultiRequest
			if err := wire.Decode(body, &req); err != nil {
				t.Error(err)
			}
			for _, op := range req.Ops {
				types = append(types, op.Type)
			}
			p.reply(h.Xid, 0, &wire.MultiResponse{Results: answers[0]})
			answers = answers[1:]
			return true
		}
		c := e.connect(Options{}, "10.0.0.1/app")
		ops := []Op{CheckOp("/c", 1), CreateOp("/a", nil, Ephemeral), SetOp("/s", nil, 2), DeleteOp("/d", 3)}
		r, err := c.Multi(t.Context(), ops...)
		if err != nil || r[1].Path != "/a" || r[1].Stat.Czxid != 5 || r[2].Stat.Version != 6 {
			t.Errorf("results are %+v, %v", r, err)
		}
		if want := []wire.OpCode{wire.OpCheck, wire.OpCreate2, wire.OpSetData, wire.OpDelete}; fmt.Sprint(types) != fmt.Sprint(want) {
			t.Errorf("the server saw %v, want %v", types, want)
		}
		r, err = c.Multi(t.Context(), ops...)
		var op *OpError
		if !errors.Is(err, ErrNodeExists) || !errors.As(err, &op) || op.Path != "/a" || isLost(err) {
			t.Errorf("error is %v", err)
		}
		if r[0].Err != nil || r[1].Err != ErrNodeExists || r[2].Err != wire.ErrRuntimeInconsistency {
			t.Errorf("results are %+v", r)
		}
		if _, err = c.Multi(t.Context(), ops...); !isLost(err) {
			t.Errorf("one result for four operations: %v, want an unknown outcome", err)
		}
	})
}

func TestMultiRefusesInvalidOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{})
		for i, ops := range [][]Op{{GetOp("/a")}, {ChildrenOp("/a")}, {{}}, {CreateOp("/a", nil, Ephemeral, TTL(time.Hour))}} {
			if _, err := c.Multi(t.Context(), ops...); !errors.Is(err, ErrBadArguments) {
				t.Errorf("multi %d: %v", i, err)
			}
		}
		if _, err := c.MultiRead(t.Context(), SetOp("/a", nil, 0)); !errors.Is(err, ErrBadArguments) {
			t.Errorf("multiRead with a write: %v", err)
		}
		if got := e.log(); len(got) != 0 {
			t.Errorf("the server saw %q", got)
		}
	})
}

func TestMultiRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpMultiRead {
				p.reply(h.Xid, 0, &wire.MultiResponse{Results: []wire.OpResult{
					{Type: wire.OpGetData, Response: &wire.DataResponse{Data: []byte("x"), Stat: wire.Stat{Version: 3}}},
					{Type: wire.OpError, Err: wire.ErrNoAuth},
					{Type: wire.OpGetChildren, Response: &wire.ChildrenResponse{Children: []string{"b"}}},
				}})
			}
			return h.Op == wire.OpMultiRead
		}
		c := e.connect(Options{})
		r, err := c.MultiRead(t.Context(), GetOp("/a"), GetOp("/b"), ChildrenOp("/c"))
		if err != nil {
			t.Fatal(err)
		}
		if string(r[0].Data) != "x" || r[0].Stat.Version != 3 || r[1].Err != ErrNoAuth || fmt.Sprint(r[2].Children) != "[b]" {
			t.Errorf("results are %+v", r)
		}
	})
}
