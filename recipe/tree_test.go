package recipe

import (
	"fmt"
	"path"
	"time"

	"bellwether/wire"
)

// This file holds the tree of the fake server: what each operation does.

func (s *fakeServer) do(p *peer, op wire.OpCode, body []byte) (wire.Code, wire.Record) {
	read := func(r wire.Record) {
		if err := wire.Decode(body, r); err != nil {
			s.t.Errorf("%v: %v", op, err)
		}
	}
	switch op {
	case wire.OpPing:
		return wire.OK, nil
	case wire.OpSync:
		return wire.OK, &wire.PathResponse{Path: pathOf(op, body)}
	case wire.OpCloseSession:
		s.endSession(p.session)
		return wire.OK, nil
	case wire.OpMulti:
		var m wire.MultiRequest
		read(&m)
		return wire.OK, s.multi(p, m.Ops)
	case wire.OpMultiRead:
		var m wire.MultiRequest
		read(&m)
		var out wire.MultiResponse
		for _, o := range m.Ops {
			out.Results = append(out.Results, s.readOne(o))
		}
		return wire.OK, &out
	case wire.OpSetWatches:
		var r wire.SetWatchesRequest
		read(&r)
		s.setWatches(p, r)
		return wire.OK, nil
	case wire.OpSetWatches2:
		var r wire.SetWatches2Request
		read(&r)
		s.setWatches(p, r.SetWatchesRequest)
		for _, name := range r.Persistent {
			p.streams[name] = wire.WatchPersistent
		}
		for _, name := range r.PersistentRecursive {
			p.streams[name] = wire.WatchPersistentRecursive
		}
		return wire.OK, nil
	case wire.OpAddWatch:
		var r wire.AddWatchRequest
		read(&r)
		p.streams[r.Path] = r.Mode
		return wire.OK, nil
	case wire.OpRemoveWatches:
		var r wire.WatchesRequest
		read(&r)
		s.removeWatches(p, r)
		return wire.OK, nil
	case wire.OpSetData:
		var r wire.SetDataRequest
		read(&r)
		if code := s.check(&wire.PathVersionRequest{Path: r.Path, Version: r.Version}); code != wire.OK {
			return code, nil
		}
		s.zxid++
		s.set(&r)
		return wire.OK, &wire.StatResponse{Stat: s.nodes[r.Path].stat}
	case wire.OpCreate, wire.OpCreate2:
		var r wire.CreateRequest
		read(&r)
		s.zxid++
		name, code := s.create(p, &r)
		if code != wire.OK {
			return code, nil
		}
		if op == wire.OpCreate {
			return wire.OK, &wire.PathResponse{Path: name}
		}
		return wire.OK, &wire.PathStatResponse{Path: name, Stat: s.nodes[name].stat}
	case wire.OpDelete:
		var r wire.PathVersionRequest
		read(&r)
		if code := s.check(&r); code != wire.OK {
			return code, nil
		}
		if len(s.children(r.Path)) > 0 {
			return wire.ErrNotEmpty, nil
		}
		s.zxid++
		s.remove(r.Path)
		return wire.OK, nil
	case wire.OpGetACL:
		var r wire.PathRequest
		read(&r)
		if s.nodes[r.Path] == nil {
			return wire.ErrNoNode, nil
		}
		return wire.OK, &wire.ACLResponse{ACL: wire.OpenACL(), Stat: s.nodes[r.Path].stat}
	}
	var r wire.PathWatchRequest
	read(&r)
	return s.get(p, op, r)
}

// get answers a read of one znode.
func (s *fakeServer) get(p *peer, op wire.OpCode, r wire.PathWatchRequest) (wire.Code, wire.Record) {
	s.reads++
	n := s.nodes[r.Path]
	if n == nil {
		if op == wire.OpExists && r.Watch {
			p.exists[r.Path] = true
		}
		return wire.ErrNoNode, nil
	}
	switch op {
	case wire.OpExists:
		n.watched(p, &n.watch, r.Watch)
		return wire.OK, &wire.StatResponse{Stat: n.stat}
	case wire.OpGetData:
		n.watched(p, &n.watch, r.Watch)
		return wire.OK, &wire.DataResponse{Data: n.data, Stat: n.stat}
	case wire.OpGetChildren2:
		n.watched(p, &n.child, r.Watch)
		return wire.OK, &wire.ChildrenStatResponse{Children: s.children(r.Path), Stat: n.stat}
	}
	s.t.Errorf("the fake server does not know %v", op)
	return wire.ErrUnimplemented, nil
}

func (s *fakeServer) children(parent string) []string {
	names := []string{}
	for name := range s.nodes {
		if name != "/" && path.Dir(name) == parent {
			names = append(names, path.Base(name))
		}
	}
	return names
}

func (s *fakeServer) readOne(o wire.Op) wire.OpResult {
	s.reads++
	r := o.Request.(*wire.PathWatchRequest)
	n := s.nodes[r.Path]
	switch {
	case n == nil:
		return wire.OpResult{Type: wire.OpError, Err: wire.ErrNoNode}
	case o.Type == wire.OpGetChildren:
		return wire.OpResult{Type: o.Type, Response: &wire.ChildrenResponse{Children: s.children(r.Path)}}
	}
	return wire.OpResult{Type: o.Type, Response: &wire.DataResponse{Data: n.data, Stat: n.stat}}
}

func (s *fakeServer) create(p *peer, r *wire.CreateRequest) (string, wire.Code) {
	parent := s.nodes[path.Dir(r.Path)]
	if parent == nil {
		return "", wire.ErrNoNode
	}
	name := r.Path
	if r.Flags&2 != 0 {
		name += fmt.Sprintf("%010d", parent.seq)
	}
	if s.nodes[name] != nil {
		return "", wire.ErrNodeExists
	}
	if parent.stat.EphemeralOwner != 0 {
		return "", wire.ErrNoChildrenForEphemerals
	}
	parent.seq++
	n := &fakeNode{data: r.Data, stat: wire.Stat{Czxid: s.zxid, Mzxid: s.zxid, Pzxid: s.zxid, DataLength: int32(len(r.Data)),
		Ctime: time.Now().Add(s.ahead).UnixMilli()}}
	if r.Flags&1 != 0 {
		n.stat.EphemeralOwner = p.session
	}
	s.nodes[name] = n
	s.parentChanged(name, 1)
	s.fire(wire.EventNodeCreated, name)
	s.childrenChanged(name)
	return name, wire.OK
}

// set replaces the data of an existing znode.
func (s *fakeServer) set(r *wire.SetDataRequest) {
	n := s.nodes[r.Path]
	n.data = r.Data
	n.stat.Mzxid, n.stat.DataLength = s.zxid, int32(len(r.Data))
	n.stat.Version++
	s.fire(wire.EventNodeDataChanged, r.Path, n.watch)
}

func (s *fakeServer) check(r *wire.PathVersionRequest) wire.Code {
	switch n := s.nodes[r.Path]; {
	case n == nil:
		return wire.ErrNoNode
	case r.Version != -1 && r.Version != n.stat.Version:
		return wire.ErrBadVersion
	}
	return wire.OK
}

// multi checks all operations first. An operation may depend on an earlier one only in these cases: a
// delete before a create of the same path, and a create or delete of a parent and of its children.
func (s *fakeServer) multi(p *peer, ops []wire.Op) *wire.MultiResponse {
	var out wire.MultiResponse
	gone, made := map[string]bool{}, map[string]bool{}
	for i, o := range ops {
		code := wire.OK
		switch r := o.Request.(type) {
		case *wire.PathVersionRequest:
			if code = s.check(r); made[r.Path] {
				code = wire.OK
			}
			gone[r.Path] = o.Type == wire.OpDelete
			for _, child := range s.children(r.Path) {
				if gone[r.Path] && !gone[r.Path+"/"+child] {
					code = wire.ErrNotEmpty
				}
			}
		case *wire.SetDataRequest:
			if code = s.check(&wire.PathVersionRequest{Path: r.Path, Version: r.Version}); s.guarded {
				code = wire.ErrNoAuth
			}
		case *wire.CreateRequest:
			if s.nodes[r.Path] != nil && !gone[r.Path] {
				code = wire.ErrNodeExists
			} else if parent := path.Dir(r.Path); s.nodes[parent] == nil && !made[parent] {
				code = wire.ErrNoNode
			}
			made[r.Path] = true
		}
		if code != wire.OK {
			for j := range ops {
				res := wire.OpResult{Type: wire.OpError}
				if j == i {
					res.Err = code
				} else if j > i {
					res.Err = wire.ErrRuntimeInconsistency
				}
				out.Results = append(out.Results, res)
			}
			return &out
		}
	}
	s.zxid++
	for _, o := range ops {
		res := wire.OpResult{Type: o.Type}
		switch r := o.Request.(type) {
		case *wire.PathVersionRequest:
			if o.Type == wire.OpDelete {
				s.remove(r.Path)
			}
		case *wire.SetDataRequest:
			s.set(r)
			res.Response = &wire.StatResponse{Stat: s.nodes[r.Path].stat}
		case *wire.CreateRequest:
			name, _ := s.create(p, r)
			res.Response = &wire.PathStatResponse{Path: name, Stat: s.nodes[name].stat}
			if o.Type == wire.OpCreate {
				res.Response = &wire.PathResponse{Path: name}
			}
		}
		out.Results = append(out.Results, res)
	}
	return &out
}
