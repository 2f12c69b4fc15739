package client

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// This file makes some clients careless: they do what the protocol allows and what good clients do not do. They send
// requests behind the end of their session, end a session and ask for it again at once, and go to another server
// while their old connection goes on sending. For a while they only read, so that nothing but reads keeps their
// sessions alive, or they send nothing until it has expired. They send a ping in the moment in which their session
// expires. They also do what good clients seldom do: they lock znodes against each other, and set persistent watches.
// Their recipes get answers and alarms late, perhaps in another session, come back to a server while a write is under
// way, and use any names for bids. An operator deletes the bids of candidates that seem dead.

// carelessIn is the number of requests of which one is careless, on average.
const carelessIn = 12

// oddities returns the random source of a careless client; nil: the client is not careless.
func (c *Client) oddities() *machine.Random {
	if !c.group.Settings().Careless || c.group.Phase().Calm {
		return nil
	}
	if c.odd == nil {
		c.odd = machine.NewRandom(0xca4e1e55 + uint64(c.ID) + uint64(c.group.Now()))
	}
	return c.odd
}

// careless does something careless in place of the next request. It reports whether it did.
func (c *Client) careless() bool {
	d := c.oddities()
	switch {
	case d == nil:
		return false
	case c.group.Now() < c.readsUntil:
		c.Send(Get(check.RegisterPaths[d.Below(registerCount)], false))
		return true
	case d.Below(carelessIn) != 0:
		return false
	}
	mine := fmt.Sprintf("/n%d/e%d-%d", d.Below(3), c.ID, d.Below(3))
	switch d.Below(20) {
	case 0: // requests behind the end of the session
		if d.Below(3) == 0 { // the end waits behind a sync, perhaps until the session has expired
			c.sync(check.RegisterPaths[0])
			c.nap()
		}
		c.create(mine, wire.FlagEphemeral)
		c.Send(&Call{Op: wire.OpCloseSession})
		for range 2 {
			c.create(mine+"-late", wire.FlagEphemeral)
			c.group.See(check.SentOld{Session: c.Session, Xid: c.Xid, Behind: true})
		}
		if d.Below(2) == 0 {
			c.Send(&Call{Op: wire.OpCloseSession})
		}
	case 1:
		c.endsFailing(mine, d.Below(2) == 0)
	case 2, 3: // the session is ended and asked for again
		c.create(mine, wire.FlagEphemeral)
		c.Send(&Call{Op: wire.OpCloseSession})
		if c.goOn(d) {
			c.Connect() // before the end is carried out
		}
	case 4, 5, 6:
		c.goOn(d)
	case 7, 8, 13, 14, 15, 16: // nothing is sent until the session has expired
		c.nap()
	case 9: // containers that nobody uses any more
		for i := range d.Between(3, 5) {
			path := fmt.Sprintf("/unused%d", i)
			q := &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: wire.FlagContainer}
			c.Send(&Call{Op: wire.OpCreateContainer, Path: path, Body: wire.Append(nil, q)})
			if i == 1 { // this one is not used yet
				continue
			}
			c.create(path+"/k", wire.FlagPersistent)
			c.delete(path + "/k")
			c.after(d.Between(500*machine.Millisecond, 4*machine.Second), func() { // it is used again, perhaps just before its removal
				if c.Attached && !c.Hung && !c.NoQuorum && !c.group.Phase().Calm {
					c.create(path+"/k", wire.FlagPersistent)
				}
			})
		}
	case 10, 11: // another server, at once
		switch {
		case c.NoQuorum && d.Below(2) == 0:
			c.twin(d)
		case c.group.Settings().LocalSessions && d.Below(2) == 0:
			c.twins(d)
		case c.NoQuorum || c.Reader || c.group.Settings().LocalSessions:
			c.hops = true
		default:
			c.goOn(d)
		}
	case 17, 18:
		c.lock(d)
	case 19:
		c.watchAlways(fmt.Sprintf("/n%d", d.Below(3)))
	default:
		c.readsUntil = c.group.Now() + int64(c.timeout())*machine.Millisecond*5/2
	}
	return true
}

// endsFailing sends a multi that creates an ephemeral and fails, and directly behind it the end of the session. If
// replaces is true, the multi also deletes an ephemeral of the session in its place.
func (c *Client) endsFailing(path string, replaces bool) {
	ops := []wire.Op{
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: wire.FlagEphemeral}},
		{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: path, Version: 7}},
	}
	fails := func() {
		c.Send(&Call{Op: wire.OpMulti, Path: path, Body: wire.Append(nil, &wire.MultiRequest{Ops: ops})})
		c.Send(&Call{Op: wire.OpCloseSession})
	}
	if !replaces {
		fails()
		return
	}
	ops = append([]wire.Op{{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path, Version: -1}}}, ops...)
	k, session := c.EphemeralCreation(path), c.Session
	k.Then = func(r *Response) {
		if r != nil && c.Attached && c.Session == session {
			fails()
		}
	}
	c.Send(k)
}

// lock changes the ACL of a znode, so that not everybody may read it any more, and watches it meanwhile. Caches do
// without such znodes, because they show the whole tree.
func (c *Client) lock(d *machine.Random) {
	if c.group.Settings().Recipe == Caches {
		return
	}
	const path = check.SecretPath
	send := func(op wire.OpCode, r wire.Record) { c.Send(&Call{Op: op, Path: path, Body: wire.Append(nil, r)}) }
	if d.Below(4) == 0 {
		c.delete(path)
	}
	open := wire.OpenACL()
	send(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte(c.UniqueValue()), ACL: open})
	send(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: open, Version: -1})
	c.Send(Get(path, true))
	mine := wire.ACL{Perms: wire.PermAdmin | wire.PermWrite | int32(d.Below(2))*wire.PermRead, ID: wire.ID{Scheme: wire.SchemeAuth}}
	other := wire.ACL{Perms: 1 + int32(d.Below(15)), ID: check.IdentityOf(int(d.Below(2)))} // all but PermAdmin
	send(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: []wire.ACL{mine, other}, Version: -1})
	send(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(c.UniqueValue()), Version: -1})
	send(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: path, Version: -1}},
		{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: path, Data: []byte(c.UniqueValue()), Version: -1}},
	}})
	send(wire.OpGetACL, &wire.PathRequest{Path: path})
}

// watchAlways sets a persistent watch, unless the client has one at the path.
func (c *Client) watchAlways(path string) {
	if c.NoQuorum || c.treeWatchAt(path) != nil {
		return
	}
	w := &treeWatch{TreeWatch: check.TreeWatch{Root: path, One: true}, tell: func(claim.Event) {}}
	session := c.Session
	c.Send(&Call{Op: wire.OpAddWatch, Path: path, Body: wire.Append(nil, &wire.AddWatchRequest{Path: path, Mode: wire.WatchPersistent}),
		Then: func(r *Response) {
			if r != nil && c.Session == session {
				w.stands(r)
				c.addTreeWatch(w)
			}
		}})
}

// nap makes the client send nothing until its session has expired.
func (c *Client) nap() {
	c.napUntil = c.group.Now() + int64(c.timeout())*machine.Millisecond + 3*c.group.Settings().TickMS*machine.Millisecond
}

// goOn connects anew and leaves the old connection open, which sends a few more requests. Their answers go to
// nobody. It reports whether it did that.
func (c *Client) goOn(d *machine.Random) bool {
	if c.NoQuorum || c.group.Settings().LocalSessions {
		return false
	}
	closed := false
	old, session, left := c.conn, c.Session, c.Connections
	c.leaving = func() { // while the session moves
		for i := range d.Between(2, 8) {
			c.group.After(i*d.Below(machine.Millisecond), func() {
				if !closed && c.Session == session && c.On && !c.stopped && !c.group.Phase().Quiet {
					c.sendOld(old, session, d, c.Attached && c.Connections > left)
				}
			})
		}
	}
	if d.Below(3) == 0 {
		c.again = c.At
	}
	c.conn = nil // Drop does not close the connection
	c.Drop()
	for range d.Between(1, 4) {
		c.group.After(d.Below(400*machine.Millisecond), func() {
			if closed || c.Session != session || !c.On || c.stopped || c.group.Phase().Quiet {
				return
			}
			c.sendOld(old, session, d, c.Attached && c.Connections > left)
		})
	}
	c.moved = func() { // in the moment in which the session has moved
		if c.Session == session && !closed {
			c.sendOld(old, session, d, true)
			c.WriteNow()
		}
	}
	c.group.After(d.Between(100*machine.Millisecond, 2*machine.Second), func() {
		closed = true
		old.Close()
	})
	return true
}

// sendOld sends a write on a connection that the client has left. moved says that the session is on a newer
// connection already.
func (c *Client) sendOld(old Connection, session wire.SessionID, d *machine.Random, moved bool) {
	path := fmt.Sprintf("/n%d/e%d-%d", d.Below(3), c.ID, d.Below(3))
	c.group.calls++
	c.Xid++
	k := &Call{client: c, n: c.group.calls, session: session, xid: c.Xid, Issued: c.group.Now(), Op: wire.OpCreate, Path: path,
		value: c.UniqueValue()}
	k.Body = wire.Append(nil, &wire.CreateRequest{Path: path, Data: []byte(k.value), ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
	if d.Below(8) == 0 {
		k.Op, k.Path, k.value, k.Body = wire.OpCloseSession, "", "", nil
	}
	c.group.See(check.Issued{Request: k.observed()})
	c.group.See(check.Lost{Request: k.observed()})
	if moved {
		c.group.See(check.SentOld{Session: session, Xid: k.xid})
	}
	old.Send(Request{k.xid, k.Op, k.Body})
}

// PingNow makes the client send a ping, if it can.
func (c *Client) PingNow() {
	c.after(0, func() {
		if c.Attached && !c.Hung && c.conn != nil {
			c.ping()
		}
	})
}

// Rest makes the client only read until a time, in µs, so often that it sends no ping. Its session must not expire, unless the client has
// slept before for so long that its first read may come too late.
func (c *Client) Rest(until int64) {
	c.readsUntil = until
	if c.mono()-c.lastSent < int64(c.timeout())/2 {
		c.rests = c.Session
	}
	c.restRead()
}

func (c *Client) restRead() {
	if c.Attached && len(c.Calls) < callsMax {
		c.Send(Get(check.RegisterPaths[0], false))
	}
	if next := int64(c.timeout()) * machine.Millisecond / 4; c.group.Now()+next < c.readsUntil {
		c.group.After(next, c.restRead)
	}
}

// carelessWrite does something careless now and then when a recipe has sent a write.
func (c *Client) carelessWrite() {
	d := c.oddities()
	if d == nil {
		return
	}
	switch d.Below(24) {
	case 0:
		c.endSession()
	case 1:
		c.rejoin()
	}
}

// rejoin connects to the same server again at once. The recipe then finds out there what has become of a write that is
// still under way.
func (c *Client) rejoin() {
	at, connection := c.At, c.Connections
	c.after(0, func() {
		if c.Attached && !c.Hung && c.Connections == connection {
			c.Drop()
			c.again = at
			c.Connect()
		}
	})
}

// endSession ends the session of a client whose recipe relies on no deadline. The answers that are under way are lost,
// and the client learns that its session is over when it asks for it again.
func (c *Client) endSession() {
	switch c.Player.(type) {
	case *Worker, *Registrant, *BarrierMember, *cacheClient, *Party:
	default:
		return
	}
	if c.group.Settings().LocalSessions { // a server could not tell a local session that was closed from one that has expired
		return
	}
	session := c.Session
	c.after(0, func() {
		if c.Attached && !c.Hung && c.Session == session {
			c.Send(&Call{Op: wire.OpCloseSession})
			c.Drop()
		}
	})
}

// operatorDeletes lets an operator delete the bid of a candidate now and then. The candidate seems to be dead: its bid
// is first in line, but the lease of its session has lapsed.
func (k *Candidate) operatorDeletes(bid string) {
	d := k.c.oddities()
	if d == nil || d.Below(2) != 0 {
		return
	}
	for _, c := range k.c.group.All {
		if c.Player == nil && c.Attached && !c.NoQuorum && !c.Hung && !c.stopped {
			k.deleted = true
			c.delete(bid)
			return
		}
	}
}
