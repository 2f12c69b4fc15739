package recipe

import (
	"path"

	"bellwether/wire"
)

// This file holds the watches of the fake server: one-shot, persistent and recursive ones, and the events
// that setWatches reports for the time without a connection.

// newer are the operations that servers of version 3.4 do not know.
var newer = map[wire.OpCode]bool{wire.OpCreate2: true, wire.OpMultiRead: true, wire.OpAddWatch: true, wire.OpSetWatches2: true,
	wire.OpRemoveWatches: true, wire.OpGetEphemerals: true, wire.OpGetAllChildrenNumber: true}

// watched records a one-shot watch in one of the tables of a znode.
func (n *fakeNode) watched(p *peer, table *map[*peer]bool, on bool) {
	if !on {
		return
	}
	if *table == nil {
		*table = map[*peer]bool{}
	}
	(*table)[p] = true
}

// fire sends an event once to each client that watches for it.
func (s *fakeServer) fire(typ wire.EventType, name string, tables ...map[*peer]bool) {
	for p := range s.peers {
		wants := p.streamed(typ, name)
		if p.exists[name] && typ != wire.EventNodeChildrenChanged {
			delete(p.exists, name)
			wants = true
		}
		for _, table := range tables {
			wants = wants || table[p]
			delete(table, p)
		}
		if wants {
			s.event(p, typ, name)
		}
	}
}

// streamed reports whether one of the persistent watches of a peer covers the event.
func (p *peer) streamed(typ wire.EventType, name string) bool {
	if mode, ok := p.streams[name]; ok && mode == wire.WatchPersistent {
		return true
	}
	if typ == wire.EventNodeChildrenChanged {
		return false
	}
	for at := name; ; at = path.Dir(at) {
		if mode, ok := p.streams[at]; ok && mode == wire.WatchPersistentRecursive {
			return true
		}
		if at == "/" {
			return false
		}
	}
}

// parentChanged counts a child that was created or deleted.
func (s *fakeServer) parentChanged(name string, by int32) {
	if parent := s.nodes[path.Dir(name)]; parent != nil {
		parent.stat.Pzxid = s.zxid
		parent.stat.Cversion++
		parent.stat.NumChildren += by
	}
}

func (s *fakeServer) childrenChanged(name string) {
	if parent := s.nodes[path.Dir(name)]; parent != nil {
		s.fire(wire.EventNodeChildrenChanged, path.Dir(name), parent.child)
	}
}

func (s *fakeServer) setWatches(p *peer, r wire.SetWatchesRequest) {
	for _, name := range r.Data {
		switch n := s.nodes[name]; {
		case n == nil:
			s.event(p, wire.EventNodeDeleted, name)
		case n.stat.Mzxid > r.RelativeZxid:
			s.event(p, wire.EventNodeDataChanged, name)
		default:
			n.watched(p, &n.watch, true)
		}
	}
	for _, name := range r.Exist {
		if s.nodes[name] != nil {
			s.event(p, wire.EventNodeCreated, name)
		} else {
			p.exists[name] = true
		}
	}
	for _, name := range r.Child {
		switch n := s.nodes[name]; {
		case n == nil:
			s.event(p, wire.EventNodeDeleted, name)
		case n.stat.Pzxid > r.RelativeZxid:
			s.event(p, wire.EventNodeChildrenChanged, name)
		default:
			n.watched(p, &n.child, true)
		}
	}
}

// oneShots returns the number of one-shot watches.
func (s *fakeServer) oneShots() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		n += len(p.exists)
	}
	for _, z := range s.nodes {
		n += len(z.watch) + len(z.child)
	}
	return n
}

func (s *fakeServer) removeWatches(p *peer, r wire.WatchesRequest) {
	n := s.nodes[r.Path]
	if r.Type != wire.WatcherChildren {
		delete(p.exists, r.Path)
		if n != nil {
			delete(n.watch, p)
		}
	}
	if r.Type != wire.WatcherData && n != nil {
		delete(n.child, p)
	}
	if r.Type == wire.WatcherAny {
		delete(p.streams, r.Path)
	}
}

// change sets the data of a znode as an operator would.
func (s *fakeServer) change(name, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid++
	s.set(&wire.SetDataRequest{Path: name, Data: []byte(data)})
}

// readCount returns how many znodes were read or listed.
func (s *fakeServer) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// asked returns how many requests other than pings were served.
func (s *fakeServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for op, count := range s.requests {
		if op != wire.OpPing {
			n += count
		}
	}
	return n
}

// forgetSession ends a session but keeps its znodes for now, like a server while a closeSession is under
// way.
func (s *fakeServer) forgetSession(id wire.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[id].timer.Stop()
	delete(s.sessions, id)
	for p := range s.peers {
		if p.session == id {
			p.conn.Close()
		}
	}
}
