package recipe

import (
	"fmt"
	"path"

	"bellwether/wire"
)

// The fake server's tree: what each operation does.

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
	case wire.OpRemoveWatches:
		var r wire.WatchesRequest
		read(&r)
		if n := s.nodes[r.Path]; n != nil {
			delete(n.watch, p)
		}
		delete(p.exists, r.Path)
		return wire.OK, nil
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
		s.zxid++
		s.remove(r.Path)
		return wire.OK, nil
	}
	var r wire.PathWatchRequest
	read(&r)
	return s.get(p, op, r)
}

// get answers the reads of one znode.
func (s *fakeServer) get(p *peer, op wire.OpCode, r wire.PathWatchRequest) (wire.Code, wire.Record) {
	n := s.nodes[r.Path]
	if n == nil {
		if op == wire.OpExists && r.Watch {
			p.exists[r.Path] = true
		}
		return wire.ErrNoNode, nil
	}
	if r.Watch {
		n.watched(p)
	}
	switch op {
	case wire.OpExists:
		return wire.OK, &wire.StatResponse{Stat: n.stat}
	case wire.OpGetData:
		return wire.OK, &wire.DataResponse{Data: n.data, Stat: n.stat}
	case wire.OpGetChildren2:
		return wire.OK, &wire.ChildrenStatResponse{Children: s.children(r.Path), Stat: n.stat}
	}
	s.t.Errorf("the fake server does not know %v", op)
	return wire.ErrUnimplemented, nil
}

func (n *fakeNode) watched(p *peer) {
	if n.watch == nil {
		n.watch = map[*peer]bool{}
	}
	n.watch[p] = true
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

func (s *fakeServer) setWatches(p *peer, r wire.SetWatchesRequest) {
	for _, name := range r.Data {
		if n := s.nodes[name]; n == nil {
			s.event(p, wire.EventNodeDeleted, name)
		} else {
			n.watched(p)
		}
	}
	for _, name := range r.Exist {
		if s.nodes[name] != nil {
			s.event(p, wire.EventNodeCreated, name)
		} else {
			p.exists[name] = true
		}
	}
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
	parent.seq++
	n := &fakeNode{data: r.Data, stat: wire.Stat{Czxid: s.zxid, Mzxid: s.zxid, DataLength: int32(len(r.Data))}}
	if r.Flags&1 != 0 {
		n.stat.EphemeralOwner = p.session
	}
	s.nodes[name] = n
	for other := range s.peers {
		if other.exists[name] {
			delete(other.exists, name)
			s.event(other, wire.EventNodeCreated, name)
		}
	}
	return name, wire.OK
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

// multi checks everything first; no test needs one whose operations depend on
// each other but for a delete before a create of the same path.
func (s *fakeServer) multi(p *peer, ops []wire.Op) *wire.MultiResponse {
	var out wire.MultiResponse
	gone := map[string]bool{}
	for i, o := range ops {
		code := wire.OK
		switch r := o.Request.(type) {
		case *wire.PathVersionRequest:
			code = s.check(r)
			gone[r.Path] = o.Type == wire.OpDelete
		case *wire.CreateRequest:
			if s.nodes[r.Path] != nil && !gone[r.Path] {
				code = wire.ErrNodeExists
			} else if s.nodes[path.Dir(r.Path)] == nil {
				code = wire.ErrNoNode
			}
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
