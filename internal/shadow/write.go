package shadow

import (
	"fmt"
	"strings"

	"bellwether/wire"
)

// outcome is one write, alone or in a multi, and its result.
type outcome struct {
	op      wire.OpCode
	request wire.Record
	code    wire.Code
	result  wire.Record // nil: none
}

// planWrite makes the checks of a write that is not in a multi.
func planWrite(p *Pair) ([]Check, Reason) {
	o := outcome{op: p.Op, code: p.Header.Err}
	switch p.Op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		o.request, o.result = new(wire.CreateRequest), new(wire.PathStatResponse)
		if p.Op == wire.OpCreate {
			o.result = new(wire.PathResponse)
		}
	case wire.OpCreateTTL:
		o.request, o.result = new(wire.CreateTTLRequest), new(wire.PathStatResponse)
	case wire.OpDelete:
		o.request = new(wire.PathVersionRequest)
	case wire.OpSetData:
		o.request, o.result = new(wire.SetDataRequest), new(wire.StatResponse)
	default:
		o.request, o.result = new(wire.SetACLRequest), new(wire.StatResponse)
	}
	if wire.Decode(p.Request, o.request) != nil {
		return nil, NotDecoded
	}
	if o.code != wire.OK {
		return o.failed()
	}
	if o.result != nil && wire.Decode(p.Answer, o.result) != nil {
		return nil, NotDecoded
	}
	return []Check{o.succeeded(p)}, ""
}

// planMulti makes the checks of a multi. Its results describe the tree between its operations. So of each
// znode only the last operation is checked, without the fields that a later operation on a child changes.
func planMulti(p *Pair) ([]Check, Reason) {
	var q wire.MultiRequest
	var r wire.MultiResponse
	if p.Header.Err != wire.OK || wire.Decode(p.Request, &q) != nil || wire.Decode(p.Answer, &r) != nil || len(q.Ops) != len(r.Results) {
		return nil, NotDecoded
	}
	var all []Check
	changed, parents := map[string]bool{}, map[string]bool{} // by later operations
	for i := len(q.Ops) - 1; i >= 0; i-- {
		o := outcome{q.Ops[i].Type, q.Ops[i].Request, r.Results[i].Err, r.Results[i].Response}
		if r.Results[i].Type == wire.OpError {
			if o.code != wire.OK && o.code != wire.ErrRuntimeInconsistency {
				return o.failedInMulti(q.Ops[:i])
			}
			continue
		}
		if !o.fits() {
			return nil, NotDecoded
		}
		c := o.succeeded(p)
		if !changed[c.Path] {
			if parents[c.Path] {
				c.want.known &^= childFields
			}
			all = append(all, c)
		}
		if o.op != wire.OpCheck {
			changed[c.Path] = true
		}
		if o.op != wire.OpCheck && o.op != wire.OpSetData {
			parents[parentOf(c.Path)] = true
		}
	}
	return all, ""
}

// fits reports whether the result is one that the operation can have.
func (o *outcome) fits() bool {
	switch o.op {
	case wire.OpDelete, wire.OpCheck:
		return o.result == nil
	case wire.OpSetData:
		_, ok := o.result.(*wire.StatResponse)
		return ok
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		switch o.result.(type) {
		case *wire.PathResponse, *wire.PathStatResponse:
			return true
		}
	}
	return false
}

// succeeded makes the check of a write that has succeeded.
func (o *outcome) succeeded(p *Pair) Check {
	c := Check{Ask: wire.OpGetData, want: claim{write: true}}
	switch r := o.request.(type) {
	case *wire.CreateRequest:
		o.created(&c, r, p)
	case *wire.CreateTTLRequest:
		o.created(&c, &r.CreateRequest, p)
	case *wire.PathVersionRequest:
		c.Path = r.Path
		switch {
		case o.op == wire.OpDelete:
			c.want.absent = true
		case r.Version != -1:
			c.want.known, c.want.stat.Version = fieldVersion, r.Version
		}
	case *wire.SetDataRequest:
		c.Path, c.want.data = r.Path, &r.Data
		c.want.says(o.result)
	case *wire.SetACLRequest:
		c.Path, c.Ask = r.Path, wire.OpGetACL
		c.want.says(o.result)
		if !namesAuth(r.ACL) {
			c.want.acl = &r.ACL
		}
	}
	if volatile(c.Path) { // the server counts after it has made the reply
		c.want.data, c.want.known = nil, c.want.known&^fieldLength
	}
	return c
}

// created fills the check of a create. If the reply has only the path, the rest follows from the request and the zxid.
func (o *outcome) created(c *Check, r *wire.CreateRequest, p *Pair) {
	c.want.data = &r.Data
	switch res := o.result.(type) {
	case *wire.PathStatResponse:
		c.Path, c.want.stat, c.want.known = res.Path, res.Stat, allFields
	case *wire.PathResponse:
		z := p.Header.Zxid
		c.Path = res.Path
		c.want.stat = wire.Stat{Czxid: z, Mzxid: z, Pzxid: z, DataLength: int32(len(r.Data))}
		c.want.known = allFields &^ timeFields
		if (o.op == wire.OpCreate || o.op == wire.OpCreate2) && (r.Flags == wire.FlagEphemeral || r.Flags == wire.FlagEphemeralSequential) {
			c.want.stat.EphemeralOwner = p.Session
		}
	}
}

// namesAuth reports whether a list has the scheme auth, which the server replaces.
func namesAuth(list []wire.ACL) bool {
	for _, a := range list {
		if a.ID.Scheme == wire.SchemeAuth {
			return true
		}
	}
	return false
}

// condition is a statement about a stat that must hold because a write has failed.
type condition struct {
	part  part
	text  string
	holds func(*wire.Stat) bool
	shown func(*wire.Stat) string
}

// failed makes the check of a write that has failed.
func (o *outcome) failed() ([]Check, Reason) {
	path, version := o.target()
	c := Check{Path: path, Ask: wire.OpExists, want: claim{write: true}}
	creates := o.op == wire.OpCreate || o.op == wire.OpCreate2 || o.op == wire.OpCreateContainer || o.op == wire.OpCreateTTL
	switch {
	case o.code == wire.ErrNoNode && creates:
		c.Path, c.want.absent = parentOf(path), true
	case o.code == wire.ErrNoNode:
		c.want.absent = true
	case o.code == wire.ErrNodeExists && !o.sequential():
		// The znode exists; nothing else is known.
	case o.code == wire.ErrNoChildrenForEphemerals:
		c.Path, c.want.must = parentOf(path), &condition{identityPart, "ephemeral",
			func(s *wire.Stat) bool { return s.EphemeralOwner != 0 }, func(s *wire.Stat) string { return "owner " + s.EphemeralOwner.String() }}
	case o.code == wire.ErrNotEmpty:
		c.want.must = &condition{childPart, "with children",
			func(s *wire.Stat) bool { return s.NumChildren > 0 }, func(s *wire.Stat) string { return fmt.Sprintf("%d children", s.NumChildren) }}
	case o.code == wire.ErrBadVersion && o.op == wire.OpSetACL:
		c.want.must = &condition{aclPart, fmt.Sprintf("aversion other than %d", version),
			func(s *wire.Stat) bool { return s.Aversion != version }, func(s *wire.Stat) string { return fmt.Sprintf("aversion %d", s.Aversion) }}
	case o.code == wire.ErrBadVersion:
		c.want.must = &condition{dataPart, fmt.Sprintf("version other than %d", version),
			func(s *wire.Stat) bool { return s.Version != version }, func(s *wire.Stat) string { return fmt.Sprintf("version %d", s.Version) }}
	default:
		return nil, NotErrorWrite
	}
	return []Check{c}, ""
}

// failedInMulti makes the check of the operation that made a multi fail. An earlier operation of the multi that
// would have changed the same znode, its parent or a child hides the state that caused the error.
func (o *outcome) failedInMulti(earlier []wire.Op) ([]Check, Reason) {
	path, _ := o.target()
	for _, e := range earlier {
		other, _ := (&outcome{request: e.Request}).target()
		if e.Type != wire.OpCheck && (other == path || parentOf(other) == path || parentOf(path) == other) {
			return nil, NotErrorWrite
		}
	}
	return o.failed()
}

// target returns the path and the version of the request; of a create the path without the suffix of a
// sequential znode.
func (o *outcome) target() (path string, version int32) {
	switch r := o.request.(type) {
	case *wire.CreateRequest:
		return r.Path, -1
	case *wire.CreateTTLRequest:
		return r.Path, -1
	case *wire.PathVersionRequest:
		return r.Path, r.Version
	case *wire.SetDataRequest:
		return r.Path, r.Version
	case *wire.SetACLRequest:
		return r.Path, r.Version
	case *wire.PathWatchRequest:
		return r.Path, -1
	}
	return "", -1
}

// sequential reports whether the request creates a znode whose name the server completes.
func (o *outcome) sequential() bool {
	var flags int32
	switch r := o.request.(type) {
	case *wire.CreateRequest:
		flags = r.Flags
	case *wire.CreateTTLRequest:
		flags = r.Flags
	}
	return flags == wire.FlagPersistentSequential || flags == wire.FlagEphemeralSequential || flags == wire.FlagPersistentSequentialTTL
}

// parentOf returns the path of the parent.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
