package client

import (
	"strconv"

	"bellwether/internal/claim"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// term is one holder's term.
type term struct {
	k     *Candidate
	line  bidder
	token wire.Zxid
	bid   string
}

// holds reports whether the holder may still consider itself one.
func (t *term) holds() bool { return t.k.line == t.line && t.k.holds() }

// useResource makes the holder use what the claim protects. The holder checks its deadline first.
// It may be stopped, or its message delayed, before the message arrives.
func (t *term) useResource() {
	s, d := t.k.c.group, t.k.c.random
	late := func() int64 {
		if d.Chance(20) {
			return d.Below(4 * machine.Second)
		}
		return d.Below(20 * machine.Millisecond)
	}
	if !t.holds() {
		return
	}
	s.After(late(), func() {
		_, admitted := s.fence.Admit(t.token)
		s.See(check.ResourceUsed{Client: t.k.c.ID, Token: t.token, Admitted: admitted, Holds: t.holds()})
	})
	if d.Chance(25) {
		s.After(late(), t.write)
	}
}

// write writes the znode that the bid guards, whether the term lasts or not.
func (t *term) write() {
	c := t.k.c
	if !c.Attached || c.Hung || c.group.Phase().Calm && c.group.Phase().Quiet {
		return
	}
	set := &wire.SetDataRequest{Path: check.GuardedPath, Data: strconv.AppendInt(nil, int64(t.token), 10), Version: -1}
	c.Send(&Call{Op: wire.OpMulti, Path: check.GuardedPath, Body: wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: t.bid, Version: claim.AnyVersion}},
		{Type: wire.OpSetData, Request: set},
	}}), Then: func(r *Response) {
		if r != nil && c.Attached && missing(r, 1) {
			c.create(check.GuardedPath, wire.FlagPersistent)
		}
	}})
}

// missing reports whether an operation of a multi found no znode.
func missing(r *Response, op int) bool {
	m, ok := r.Record.(*wire.MultiResponse)
	return ok && m.Results[op].Type == wire.OpError && m.Results[op].Err == wire.ErrNoNode
}
