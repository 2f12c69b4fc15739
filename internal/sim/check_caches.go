package sim

import (
	"fmt"

	"bellwether/internal/claim/cache"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// caches checks that a cache shows only states that existed at some moment, and never goes
// back. The cache reports each change once and in the order of the znode's history. It
// reports the creation of parents before that of children, and their deletion after that of
// children. Its content is what it has reported.
type caches struct {
	history *check.History
	shown   map[*cacheClient]*shows
}

// shows is what one cache has reported.
type shows struct {
	nodes map[string]*cache.Node
	last  map[string]wire.Zxid // zxid of the newest change reported, by path
}

func newCaches(h *check.History) *caches { return &caches{h, map[*cacheClient]*shows{}} }

func (*caches) Name() string { return "Caches" }

func (c *caches) See(o any) string {
	switch e := o.(type) {
	case cacheBegan:
		c.shown[e.k] = &shows{map[string]*cache.Node{}, map[string]wire.Zxid{}}
	case cacheTold:
		if wrong := c.told(c.shown[e.k], e.e); wrong != "" {
			return fmt.Sprintf("client %d: %s", e.k.c.id, wrong)
		}
	case cacheShows:
		if wrong := c.shown[e.k].differ(e.k.m); wrong != "" {
			return fmt.Sprintf("client %d: %s", e.k.c.id, wrong)
		}
	}
	return ""
}

// told checks an event of a cache.
func (c *caches) told(s *shows, e cache.CacheEvent) string {
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
		switch above := s.nodes[check.ParentOf(n.Path)]; {
		case e.Type == cache.NodeChanged && n.Stat.Mzxid <= last, e.Type == cache.NodeAdded && had == nil && n.Stat.Czxid < last:
			return fmt.Sprintf("%s of %v is told behind %v", n.Path, n.Stat.Mzxid, last)
		case e.Type == cache.NodeChanged && (!same(had, e.Old) || had.Stat.Czxid != n.Stat.Czxid):
			return fmt.Sprintf("%s is said to have changed, and had another one before", n.Path)
		case e.Type == cache.NodeAdded && had != nil:
			return fmt.Sprintf("%s is told to have come, and is there", n.Path)
		case e.Type == cache.NodeAdded && above == nil && len(s.nodes) > 0:
			return fmt.Sprintf("%s comes without its parent", n.Path)
		}
		s.nodes[n.Path], s.last[n.Path] = n, n.Stat.Mzxid
	case cache.NodeRemoved:
		gone := c.goneAt(n)
		switch {
		case !same(had, n):
			return fmt.Sprintf("%s is told to be gone, and was not there", n.Path)
		case gone == 0:
			return fmt.Sprintf("%s of %v is told to be gone, and nobody has deleted it", n.Path, n.Stat.Mzxid)
		case s.hasBelow(n.Path):
			return fmt.Sprintf("%s goes before what is below it", n.Path)
		}
		delete(s.nodes, n.Path)
		s.last[n.Path] = gone
	}
	return ""
}

// same reports whether both are the same znode with the same data. Their counts of children
// may differ.
func same(a, b *cache.Node) bool {
	return a != nil && b != nil && a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid && string(a.Data) == string(b.Data)
}

func (s *shows) hasBelow(path string) bool {
	for p := range s.nodes {
		if p != path && check.ParentOf(p) == path {
			return true
		}
	}
	return false
}

// differ compares the content of a cache with what the cache has reported. It returns an
// empty text if they agree.
func (s *shows) differ(m *cache.Cache) string {
	if m.Len() != len(s.nodes) {
		return fmt.Sprintf("%d znodes are shown, %d were told", m.Len(), len(s.nodes))
	}
	for p, n := range s.nodes {
		if !same(m.Get(p), n) {
			return "what is shown is not what was told" // the message names no path, because that would depend on the order of the map
		}
	}
	return ""
}

// wasThere checks that the history contains such a znode. It returns what is wrong, or
// nothing.
func (c *caches) wasThere(n *cache.Node) string {
	ch := c.history.Changes[n.Path]
	if ch == nil || len(ch.Data) == 0 { // the znode is part of the initial tree
		if n.Stat.Mzxid > 0 {
			return fmt.Sprintf("%s of %v is shown, and never was", n.Path, n.Stat.Mzxid)
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
	return fmt.Sprintf("%s of %v, made at %v, is shown with %q, and never was", n.Path, n.Stat.Mzxid, n.Stat.Czxid, n.Data)
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
