package client

import (
	"fmt"
	"strings"

	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// callsMax is the largest number of requests that a client has under way.
const callsMax = 4

// work issues the next request after a while.
func (c *Client) work() {
	if c.Player != nil || c.Scripted || c.group.Phase().Calm && (c.group.Phase().Quiet || c.group.Phase().Idle) {
		return
	}
	wait := c.random.Below(2 * c.group.Settings().ThinkMS * machine.Millisecond)
	if c.group.Now() < c.readsUntil {
		wait = min(wait, int64(c.timeout())*machine.Millisecond/4) // so often that no ping is sent
	}
	if c.napping = !c.group.Phase().Calm && c.random.Below(256) == 0; c.napping {
		wait = int64(c.timeout())*machine.Millisecond + c.random.Between(-1, 2)*c.group.Settings().TickMS*machine.Millisecond
	}
	if left := c.napUntil - c.group.Now(); left > 0 {
		wait, c.napping = left, true
	}
	c.later(wait, func() {
		c.napping = false
		switch {
		case !c.Attached || c.group.Phase().Calm && (c.group.Phase().Quiet || c.group.Phase().Idle):
			return
		case len(c.Calls) >= callsMax:
			c.busy = true
			return
		}
		if !c.careless() {
			c.change()
		}
		c.work()
	})
}

// change issues one or two requests.
func (c *Client) change() {
	d := c.random
	reg := check.RegisterPaths[d.Below(registerCount)]
	node := fmt.Sprintf("/n%d", d.Below(6))
	switch d.Below(16) {
	case 0, 1, 2:
		c.set(reg)
	case 3:
		c.changeRegister(reg)
	case 4, 5:
		c.Send(Get(reg, false))
	case 6:
		c.sync(reg)
	case 7:
		c.syncExists(reg)
	case 8:
		c.Send(Get(reg, true))
	case 9:
		c.Send(&Call{Op: wire.OpExists, Path: node, Body: pathWatch(node, true), watch: watchOf(node)})
	case 10:
		c.Send(&Call{Op: wire.OpGetChildren2, Path: "/n0", Body: pathWatch("/n0", true), watch: &watch{Watch: check.Watch{Path: "/n0", Children: true}}})
	case 11:
		c.create(node, wire.FlagPersistent)
	case 12:
		c.delete(node)
	case 13:
		c.create(fmt.Sprintf("/n%d/e%d-%d", d.Below(3), c.ID, d.Below(3)), wire.FlagEphemeral)
	case 14:
		c.multi(check.RegisterPaths[1+d.Below(registerCount-1)], node)
	default:
		if d.Below(40) == 0 {
			if c.Xid%2 == 0 { // the session is closed while a create waits behind a sync
				c.sync(reg)
				c.create(fmt.Sprintf("/n0/e%d-0", c.ID), wire.FlagEphemeral)
			}
			c.Send(&Call{Op: wire.OpCloseSession})
			return
		}
		c.vary(node)
	}
}

// restrictedPath is a znode whose ACL changes. Everybody may always read it, because caches do, and only one user may
// change the ACL.
const restrictedPath = "/restricted"

// vary issues one of the requests that recipes seldom or never make: with versions, sequence numbers, containers, TTLs
// and ACLs, and multis that fail in the middle. Their znodes are few, so that they affect each other.
func (c *Client) vary(node string) {
	d := c.random
	kid := fmt.Sprintf("/n%d/k%d", d.Below(2), d.Below(2))
	version := int32(d.Below(3)) - 1
	send := func(op wire.OpCode, path string, r wire.Record) {
		c.Send(&Call{Op: op, Path: path, Body: wire.Append(nil, r)})
	}
	creation := func(path string, flags int32) *wire.CreateRequest {
		return &wire.CreateRequest{Path: path, Data: []byte(c.UniqueValue()), ACL: wire.OpenACL(), Flags: flags}
	}
	named := &wire.PathVersionRequest{Path: node, Version: version}
	switch d.Below(12) {
	case 0:
		send(wire.OpCreate2, "/n0/s-", creation("/n0/s-", wire.FlagPersistentSequential))
	case 1:
		send(wire.OpCreate, "/n1/s-", creation("/n1/s-", wire.FlagEphemeralSequential))
	case 2:
		send(wire.OpSetData, node, &wire.SetDataRequest{Path: node, Data: []byte(c.UniqueValue()), Version: version})
	case 3:
		send(wire.OpDelete, node, named)
	case 4: // a sequential child is deleted, so that the number of children and that of creates differ
		at := fmt.Sprintf("/n0/s-%010d", d.Below(20))
		send(wire.OpDelete, at, &wire.PathVersionRequest{Path: at, Version: -1})
	case 5, 6:
		send(wire.OpMulti, node, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: creation(kid, int32(d.Below(2)))},
			{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: kid, Data: []byte{1}, Version: 0}},
			{Type: wire.OpCheck, Request: named},
			{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: kid, Version: -1}},
			{Type: wire.OpCreate, Request: creation(kid, int32(d.Below(2)))},
		}})
		c.create(kid, int32(d.Below(2)))
		c.create(kid+"/x", wire.FlagPersistent)
		c.delete(kid + "/x")
	case 7:
		send(wire.OpCreateContainer, "/container", creation("/container", wire.FlagContainer))
		if d.Below(2) == 0 {
			c.create("/container/k", wire.FlagEphemeral)
		}
	case 8:
		send(wire.OpCreateTTL, "/ttl", &wire.CreateTTLRequest{CreateRequest: *creation("/ttl", wire.FlagPersistentTTL), TTL: 1 + d.Below(2000)})
		if d.Below(2) == 0 {
			c.create("/ttl/k", wire.FlagPersistent)
		} else {
			c.delete("/ttl/k")
		}
		c.Send(Get("/ttl", false))
	case 9:
		if d.Below(2) == 0 {
			c.create("/container/k", wire.FlagPersistent)
		} else {
			c.delete("/container/k")
		}
		c.Send(&Call{Op: wire.OpGetChildren2, Path: "/container", Body: pathWatch("/container", false)})
	case 10:
		owner := wire.ID{Scheme: wire.SchemeAuth}
		if d.Below(2) == 0 {
			owner = check.IdentityOf(int(d.Below(2)))
		}
		r := creation(restrictedPath, wire.FlagPersistent)
		r.ACL[0].Perms = wire.PermRead | int32(d.Below(16))
		r.ACL = append(r.ACL, wire.ACL{Perms: wire.PermAdmin | int32(d.Below(16)), ID: owner})
		send(wire.OpCreate, restrictedPath, r)
		send(wire.OpSetACL, restrictedPath, &wire.SetACLRequest{Path: restrictedPath, ACL: r.ACL, Version: version})
	default:
		c.set(restrictedPath)
		c.create(restrictedPath+"/k", wire.FlagPersistent)
		c.delete(restrictedPath + "/k")
		c.Send(Get(restrictedPath, false))
		send(wire.OpGetACL, restrictedPath, &wire.PathRequest{Path: restrictedPath})
	}
}

// changeRegister issues one of the rarer requests that change a register.
func (c *Client) changeRegister(reg string) {
	switch c.random.Below(3) {
	case 0:
		c.set(reg)
	case 1:
		c.create(reg, wire.FlagPersistent)
	default:
		c.delete(reg)
	}
}

func (c *Client) delete(path string) {
	c.Send(&Call{Op: wire.OpDelete, Path: path, Body: wire.Append(nil, &wire.PathVersionRequest{Path: path, Version: -1})})
}

// registerCount is the number of znodes that serve only for reading and writing.
var registerCount = int64(len(check.RegisterPaths))

// watchOf returns a watch of a znode that tells no state machine.
func watchOf(path string) *watch { return &watch{Watch: check.Watch{Path: path}} }

func pathWatch(path string, watch bool) []byte {
	return wire.Append(nil, &wire.PathWatchRequest{Path: path, Watch: watch})
}

func Get(path string, watched bool) *Call {
	k := &Call{Op: wire.OpGetData, Path: path, Body: pathWatch(path, watched)}
	if watched {
		k.watch = watchOf(path)
	}
	return k
}

// UniqueValue returns a value that no other request writes.
func (c *Client) UniqueValue() string {
	v := fmt.Sprintf("%d.%d", c.ID, c.Xid+1)
	if c.Xid%32 == 0 {
		v += longTail
	}
	return v
}

// longTail makes some values longer than the largest write that a disk does as a whole.
var longTail = strings.Repeat(" ", 3000)

func (c *Client) set(path string) {
	v := c.UniqueValue()
	c.Send(&Call{Op: wire.OpSetData, Path: path, value: v, Body: wire.Append(nil, &wire.SetDataRequest{Path: path, Data: []byte(v), Version: -1}),
		Then: func(r *Response) {
			if r != nil && r.Header.Err == wire.ErrNoNode && c.Attached {
				c.create(path, wire.FlagPersistent)
			}
		}})
}

// sync sends a sync and a read behind it.
func (c *Client) sync(path string) {
	c.Send(&Call{Op: wire.OpSync, Path: path, Body: wire.Append(nil, &wire.PathRequest{Path: path})})
	k := Get(path, false)
	k.Synced = !c.NoQuorum
	c.Send(k)
}

// syncExists sends a sync and asks behind it whether a znode exists.
func (c *Client) syncExists(path string) {
	c.Send(&Call{Op: wire.OpSync, Path: path, Body: wire.Append(nil, &wire.PathRequest{Path: path})})
	c.Send(&Call{Op: wire.OpExists, Path: path, Body: pathWatch(path, false), Synced: !c.NoQuorum})
}

func (c *Client) create(path string, flags int32) {
	v := c.UniqueValue()
	c.Send(&Call{Op: wire.OpCreate, Path: path, value: v, Body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(v), ACL: wire.OpenACL(), Flags: flags,
	})})
}

// multi sets one znode if another one can be created.
func (c *Client) multi(reg, node string) {
	v := c.UniqueValue()
	c.Send(&Call{Op: wire.OpMulti, Path: reg, value: v, Body: wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: reg, Data: []byte(v), Version: -1}},
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: node, Data: []byte(v), ACL: wire.OpenACL()}},
	}})})
}

// Ask sends a request and returns the call, which later holds the answer.
func (c *Client) Ask(k *Call) *Call {
	c.Send(k)
	return k
}

// Creation returns a request that creates a znode.
func (c *Client) Creation(path string) *Call {
	return &Call{Op: wire.OpCreate, Path: path, value: c.UniqueValue(), Body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(c.UniqueValue()), ACL: wire.OpenACL(),
	})}
}

// EphemeralCreation returns a request to create an ephemeral.
func (c *Client) EphemeralCreation(path string) *Call {
	return &Call{Op: wire.OpCreate, Path: path, value: c.UniqueValue(), Body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(c.UniqueValue()), ACL: wire.OpenACL(), Flags: wire.FlagEphemeral,
	})}
}

// Write returns a request that writes a znode.
func (c *Client) Write(path string) *Call {
	v := c.UniqueValue()
	return &Call{Op: wire.OpSetData, Path: path, value: v, Body: wire.Append(nil, &wire.SetDataRequest{Path: path, Data: []byte(v), Version: -1})}
}
