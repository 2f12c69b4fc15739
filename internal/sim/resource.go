package sim

import (
	"strconv"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// guardedPath is a znode to which holders write their tokens, only in transactions that
// check that their bid still exists.
const guardedPath = "/guarded"

// term is one holder's term.
type term struct {
	k     *candidate
	line  bidder
	token wire.Zxid
	bid   string
}

// lasts reports whether the holder may still consider itself one.
func (t *term) lasts() bool { return t.k.line == t.line && t.k.holds() }

// work makes the holder use what the claim protects. The holder checks its deadline first.
// It may be stopped, or its message delayed, before the message arrives.
func (t *term) work() {
	s, d := t.k.c.sim, t.k.c.random
	late := func() int64 {
		if d.chance(20) {
			return d.below(4 * second)
		}
		return d.below(20 * millisecond)
	}
	if !t.lasts() {
		return
	}
	s.after(late(), func() {
		_, admitted := s.fence.Admit(t.token)
		s.see(used{t, admitted})
	})
	if d.chance(25) {
		s.after(late(), t.write)
	}
}

// write writes the znode that the bid guards, whether the term lasts or not.
func (t *term) write() {
	c := t.k.c
	if !c.attached || c.silent || c.sim.calm && c.sim.quiet {
		return
	}
	set := &wire.SetDataRequest{Path: guardedPath, Data: strconv.AppendInt(nil, int64(t.token), 10), Version: -1}
	c.send(&call{op: wire.OpMulti, path: guardedPath, body: wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: t.bid, Version: claim.AnyVersion}},
		{Type: wire.OpSetData, Request: set},
	}}), then: func(r *response) {
		if r != nil && c.attached && missing(r, 1) {
			c.create(guardedPath, wire.FlagPersistent)
		}
	}})
}

// missing reports whether an operation of a multi found no znode.
func missing(r *response, op int) bool {
	m, ok := r.record.(*wire.MultiResponse)
	return ok && m.Results[op].Type == wire.OpError && m.Results[op].Err == wire.ErrNoNode
}
