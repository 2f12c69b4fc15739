package check

import (
	"fmt"

	"bellwether/internal/claim/cache"
	"bellwether/internal/record"
	"bellwether/wire"
)

// caches checks that a cache shows only states that existed at some moment, and never goes
// back. The cache reports each change once and in the order of the znode's history. It
// reports the creation of parents before that of children, and their deletion after that of
// children. Its content is what it has reported.
type caches struct {
	history *History
	shown   map[int]*shows // by client
}

// shows holds what one cache has reported.
type shows struct {
	nodes map[string]*cache.Node
	last  map[string]wire.Zxid // zxid of the newest change reported, by path
}

func newCaches(h *History) *caches { return &caches{h, map[int]*shows{}} }

func (*caches) Name() string { return "Caches" }

func (c *caches) See(o any) string {
	switch e := o.(type) {
	case CacheBegan:
		c.shown[e.Client] = &shows{map[string]*cache.Node{}, map[string]wire.Zxid{}}
	case CacheTold:
		if wrong := c.told(c.shown[e.Client], e.Event); wrong != "" {
			return fmt.Sprintf("client %d: %s", e.Client, wrong)
		}
	case CacheShows:
		if wrong := c.shown[e.Client].differ(e.Cache); wrong != "" {
			return fmt.Sprintf("client %d: %s", e.Client, wrong)
		}
	}
	return ""
}

// told checks an event of a cache.
func (c *caches) told(s *shows, e cache.Event) string {
	n := e.Node
	if n == nil {
		return ""
	}
	had, last := s.nodes[n.Path], s.last[n.Path]
	switch e.Type {
	case cache.NodeAdded, cache.NodeChanged:
		if wrong := c.wasThere(n); wrong != "" {
			return wrong
		}
		switch above := s.nodes[ParentOf(n.Path)]; {
		case e.Type == cache.NodeChanged && n.Stat.Mzxid <= last, e.Type == cache.NodeAdded && had == nil && n.Stat.Czxid < last:
			return fmt.Sprintf("the change of %s by %v is reported after the change by %v", n.Path, n.Stat.Mzxid, last)
		case e.Type == cache.NodeChanged && (!same(had, e.Old) || had.Stat.Czxid != n.Stat.Czxid):
			return fmt.Sprintf("%s is reported as changed, but the cache had not shown the former state", n.Path)
		case e.Type == cache.NodeAdded && had != nil:
			return fmt.Sprintf("%s is reported as created, but the cache shows it already", n.Path)
		case e.Type == cache.NodeAdded && above == nil && len(s.nodes) > 0:
			return fmt.Sprintf("%s is reported as created, but its parent is not shown", n.Path)
		}
		s.nodes[n.Path], s.last[n.Path] = n, n.Stat.Mzxid
	case cache.NodeRemoved:
		gone := c.goneAt(n)
		switch {
		case !same(had, n):
			return fmt.Sprintf("%s is reported as deleted, but was not shown", n.Path)
		case gone == 0:
			return fmt.Sprintf("%s of %v is reported as deleted, but no transaction has deleted it", n.Path, n.Stat.Mzxid)
		case s.hasBelow(n.Path):
			return fmt.Sprintf("%s is reported as deleted before its children", n.Path)
		}
		delete(s.nodes, n.Path)
		s.last[n.Path] = gone
	}
	return ""
}

// same reports whether a and b are the same znode with the same data. Their counts of children
// may differ.
func same(a, b *cache.Node) bool {
	return a != nil && b != nil && a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid && string(a.Data) == string(b.Data)
}

func (s *shows) hasBelow(path string) bool {
	for p := range s.nodes {
		if p != path && ParentOf(p) == path {
			return true
		}
	}
	return false
}

// differ compares the content of a cache with what the cache has reported. It returns an empty
// text if both agree.
func (s *shows) differ(m CacheContent) string {
	if m.Len() != len(s.nodes) {
		return fmt.Sprintf("the cache shows %d znodes, but has reported %d", m.Len(), len(s.nodes))
	}
	for p, n := range s.nodes {
		if !same(m.Get(p), n) {
			return "the cache shows something else than it has reported" // the message names no path, because that would depend on the order of the map
		}
	}
	return ""
}

// configPath is the znode of the membership. Servers also write it without a transaction;
// the checker of memberships compares them.
const configPath = "/zookeeper/config"

// Shows reports whether a cache that is current shows a znode as the history has it. The znode of the membership has other
// content until a transaction writes it.
func Shows(n *cache.Node, path string, stat *wire.Stat, data []byte) bool {
	switch {
	case n == nil || n.Stat.Czxid != stat.Czxid:
		return false
	case path == configPath && stat.Mzxid == 0:
		return true
	}
	return n.Stat.Mzxid == stat.Mzxid && string(n.Data) == string(data)
}

// wasThere checks that the history contains a znode with this state. It returns what is
// wrong, or an empty text.
func (c *caches) wasThere(n *cache.Node) string {
	if n.Path == configPath {
		return ""
	}
	ch := c.history.Changes[n.Path]
	if ch == nil || len(ch.Data) == 0 { // the znode is part of the initial tree
		if n.Stat.Mzxid > 0 {
			return fmt.Sprintf("%s of %v is shown, but never existed", n.Path, n.Stat.Mzxid)
		}
		return ""
	}
	for i := len(ch.Data) - 1; i >= 0; i-- {
		if ch.Data[i] != n.Stat.Mzxid || !ch.Lives[i] {
			continue
		}
		made := i
		for made > 0 && ch.Lives[made-1] {
			made--
		}
		if data, ok := c.dataAt(n); ch.Data[made] == n.Stat.Czxid && ok && string(data) == string(n.Data) {
			return ""
		}
	}
	return fmt.Sprintf("%s of %v, created by %v, is shown with %q, but never existed", n.Path, n.Stat.Mzxid, n.Stat.Czxid, n.Data)
}

// dataAt returns the data that the last change of a znode wrote.
func (c *caches) dataAt(n *cache.Node) (data []byte, ok bool) {
	i, known := c.history.Index[n.Stat.Mzxid]
	if !known {
		return nil, false
	}
	for _, body := range changesOf(c.history.Entries[i].Txn) {
		switch b := body.(type) {
		case *record.CreateTxn:
			if b.Path == n.Path {
				data, ok = b.Data, true
			}
		case *record.CreateContainerTxn:
			if b.Path == n.Path {
				data, ok = b.Data, true
			}
		case *record.CreateTTLTxn:
			if b.Path == n.Path {
				data, ok = b.Data, true
			}
		case *record.SetDataTxn:
			if b.Path == n.Path {
				data, ok = b.Data, true
			}
		}
	}
	return data, ok
}

// goneAt returns the zxid at which a znode was deleted; 0: it was not.
func (c *caches) goneAt(n *cache.Node) wire.Zxid {
	ch := c.history.Changes[n.Path]
	if ch == nil {
		return 0
	}
	gone := wire.Zxid(0)
	for i := len(ch.Data) - 1; i >= 0 && (ch.Data[i] != n.Stat.Mzxid || !ch.Lives[i]); i-- {
		if !ch.Lives[i] {
			gone = ch.Data[i]
		}
	}
	return gone
}
