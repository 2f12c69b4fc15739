package sim

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/wire"
)

// cacheClient keeps a cache of znodes that it and other clients change. Now and then it
// closes the cache and begins another one.
type cacheClient struct {
	runner
	m   *cache.Cache
	cfg cache.CacheConfig
}

// Observations of cache clients, for the checkers.
type (
	// cacheBegan says that a new cache begins, which holds nothing.
	cacheBegan struct{ k *cacheClient }
	// cacheTold says that the cache has reported an event.
	cacheTold struct {
		k *cacheClient
		e cache.CacheEvent
	}
	// cacheShows says that the cache has reported all events that were due.
	cacheShows struct{ k *cacheClient }
)

func newCacheClient(c *client) *cacheClient {
	k := &cacheClient{}
	k.runner = runner{c: c, step: k.step, together: true}
	return k
}

// cacheRoots are the roots of the caches: the whole tree, and znodes that are created and
// deleted.
var cacheRoots = []string{"/", "/n0", "/n0", "/n1", "/r0"}

func (k *cacheClient) begin() {
	d := k.c.random
	k.cfg = cache.CacheConfig{Root: cacheRoots[d.below(int64(len(cacheRoots)))], ChildrenOnly: d.chance(25), NodesMax: 100_000, BytesMax: 1 << 30}
	k.oneShot = d.chance(25)
	k.m = cache.NewCache(k.cfg)
	k.c.sim.see(cacheBegan{k})
	k.soon(60*second, func() { k.step(claim.Resign{}) })
	k.soon(second, k.stir)
}

// twigs are the znodes that cache clients create, set and delete in addition.
var twigs = []string{"/n0", "/n0/k", "/n0/k/a", "/n0/k/b", "/n1", "/n1/k"}

// stir changes a znode, again and again.
func (k *cacheClient) stir() {
	c, d := k.c, k.c.random
	k.soon(4*c.sim.opt.ThinkMS*millisecond, k.stir)
	if !c.attached || c.sim.calm || len(c.calls) >= callsMax {
		return
	}
	switch path := twigs[d.below(int64(len(twigs)))]; d.below(5) {
	case 0, 1:
		c.create(path, wire.FlagPersistent)
	case 2:
		c.set(path)
	case 3:
		c.send(&call{op: wire.OpDelete, path: path, body: wire.Append(nil, &wire.PathVersionRequest{Path: path, Version: -1})})
	default: // the znode is deleted and created anew
		v := c.mark()
		c.send(&call{op: wire.OpMulti, path: path, value: v, body: wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path, Version: -1}},
			{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path, Data: []byte(v), ACL: wire.OpenACL()}},
		}})})
	}
}

func (k *cacheClient) attached() {
	if k.m == nil {
		k.begin()
	}
	k.step(claim.Attached{Session: k.c.session})
}

// crashed drops the cache: the next process begins with an empty one.
func (k *cacheClient) crashed() {
	k.drop()
	k.m = nil
}

// step passes an event to the state machine and carries out what the machine asks for.
func (k *cacheClient) step(ev claim.Event) {
	m := k.m
	if m == nil {
		return
	}
	m.Step(k.now(), ev)
	rd := m.Ready()
	for _, e := range m.Events() {
		k.c.sim.see(cacheTold{k, e})
	}
	k.c.sim.see(cacheShows{k})
	k.ask(rd.Request)
	switch {
	case k.m != m:
	case m.Over():
		k.over(m)
	default:
		k.wake(rd.Wake)
	}
}

// over handles the end of a cache that was given up, and begins another one.
func (k *cacheClient) over(m *cache.Cache) {
	if m.Outcome() != claim.Withdrawn {
		k.c.sim.fail("Caches", "the cache of client %d ends: %v %v", k.c.id, m.Outcome(), m.Err())
		return
	}
	k.drop()
	k.m, k.c.streams = nil, nil // a watch that was not removed ends with the lost connection
	k.soon(second, func() {
		if k.m == nil && k.c.attached {
			k.attached()
		}
	})
}

// cacheClients returns all cache clients of the run.
func (s *Sim) cacheClients() (all []*cacheClient) {
	for _, c := range s.clients {
		if k, ok := c.player.(*cacheClient); ok {
			all = append(all, k)
		}
	}
	return all
}

// allCached says which cache does not yet equal the tree. It returns an empty text if all
// do.
func (s *Sim) allCached() string {
	for _, k := range s.cacheClients() {
		if k.m == nil || k.m.Stale() {
			return fmt.Sprintf("the cache of client %d is not current", k.c.id)
		}
		n := 0
		wrong := ""
		s.walk(k.cfg.Root, func(path string, stat wire.Stat, data []byte) {
			if !k.m.Covers(path) {
				return
			}
			n++
			if got := k.m.Get(path); got == nil || got.Stat.Mzxid != stat.Mzxid || got.Stat.Czxid != stat.Czxid || string(got.Data) != string(data) {
				wrong = fmt.Sprintf("the cache of client %d does not show %s of %v", k.c.id, path, stat.Mzxid)
			}
		})
		if wrong == "" && k.m.Len() != n {
			wrong = fmt.Sprintf("the cache of client %d shows %d znodes, there are %d", k.c.id, k.m.Len(), n)
		}
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

// walk calls see for each znode of the committed tree at and below a path.
func (s *Sim) walk(path string, see func(string, wire.Stat, []byte)) {
	var r wire.DataResponse
	if s.history.Tree.GetData(&conn{}, path, false, &r) != wire.OK {
		return
	}
	see(path, r.Stat, r.Data)
	for _, name := range s.names(path) {
		s.walk(claim.Join(path, name), see)
	}
}
