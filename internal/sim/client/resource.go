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
	k      *Candidate
	line   bidder
	token  wire.Zxid
	shared bool // it is a reader's
	bid    string
}

// holds reports whether the holder may still consider itself one.
func (t *term) holds() bool { return t.k.line == t.line && t.k.holds() }

// useResource makes the holder use what the claim protects, at once and again later. The holder checks its
// deadline first. It may be stopped, or its message delayed, before the message arrives.
func (t *term) useResource() {
	s, d := t.k.c.group, t.k.c.random
	if !t.holds() {
		return
	}
	s.After(delay(d), t.use)
	if d.Chance(25) {
		s.After(delay(d), t.write)
	}
	t.useAgain(machine.NewRandom(uint64(t.token)))
}

// delay draws how long a message to the resource is on its way.
func delay(d *machine.Random) int64 {
	if d.Chance(20) {
		return d.Below(4 * machine.Second)
	}
	return d.Below(20 * machine.Millisecond)
}

// useAgain makes the holder use the resource after a while, up to a few times. It draws from a random source of its own,
// so that other draws do not change.
func (t *term) useAgain(d *machine.Random) {
	within := 500 * machine.Millisecond
	if brief := t.k.c.group.Settings().TermMS; brief > 0 {
		within = brief * machine.Millisecond
	}
	t.k.c.after(d.Below(within), func() {
		if !t.holds() || t.k.c.Hung {
			return
		}
		t.k.c.group.After(delay(d), t.use)
		if d.Chance(50) {
			t.useAgain(d)
		}
	})
}

// use is the moment in which a message of the holder reaches the resource.
func (t *term) use() {
	k, admitted := t.k, false
	if t.shared {
		_, admitted = k.c.group.fence.AdmitShared(t.token)
	} else {
		_, admitted = k.c.group.fence.Admit(t.token)
	}
	k.c.group.See(check.ResourceUsed{Client: k.c.ID, Token: t.token, Shared: t.shared, Admitted: admitted,
		Holds: t.holds() && k.proof() && !k.deleted})
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
