package client

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// cacheClient keeps a cache of znodes that it and other clients change. Now and then it
// closes the cache and begins another one.
type cacheClient struct {
	Runner
	m   *cache.Cache
	cfg cache.Config
}

func newCacheClient(c *Client) *cacheClient {
	k := &cacheClient{}
	k.Runner = Runner{c: c, step: k.step, together: true}
	return k
}

// cacheRoots are the roots of the caches: the whole tree, and znodes that are created and
// deleted.
var cacheRoots = []string{"/", "/n0", "/n0", "/n1", "/r0"}

func (k *cacheClient) begin() {
	d := k.c.random
	k.cfg = cache.Config{Root: cacheRoots[d.Below(int64(len(cacheRoots)))], ChildrenOnly: d.Chance(25), NodesMax: 100_000, BytesMax: 1 << 30}
	k.oneShot = d.Chance(25)
	k.m = cache.NewCache(k.cfg)
	k.c.group.See(check.CacheBegan{Client: k.c.ID})
	k.soon(60*machine.Second, func() { k.step(claim.Resign{}) })
	k.soon(machine.Second, k.changeZnodes)
}

// extraPaths are the znodes that cache clients create, set and delete in addition.
var extraPaths = []string{"/n0", "/n0/k", "/n0/k/a", "/n0/k/b", "/n1", "/n1/k"}

// changeZnodes changes a znode, again and again.
func (k *cacheClient) changeZnodes() {
	c, d := k.c, k.c.random
	k.soon(4*c.group.Settings().ThinkMS*machine.Millisecond, k.changeZnodes)
	if !c.Attached || c.group.Phase().Calm || len(c.Calls) >= callsMax {
		return
	}
	switch path := extraPaths[d.Below(int64(len(extraPaths)))]; d.Below(5) {
	case 0, 1:
		c.create(path, wire.FlagPersistent)
	case 2:
		c.set(path)
	case 3:
		c.Send(&Call{Op: wire.OpDelete, Path: path, Body: wire.Append(nil, &wire.PathVersionRequest{Path: path, Version: -1})})
	default: // the znode is deleted and created anew
		v := c.UniqueValue()
		c.Send(&Call{Op: wire.OpMulti, Path: path, value: v, Body: wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path, Version: -1}},
			{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path, Data: []byte(v), ACL: wire.OpenACL()}},
		}})})
	}
}

func (k *cacheClient) attached() {
	if k.m == nil {
		k.begin()
	}
	k.step(claim.Attached{Session: k.c.Session})
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
		k.c.group.See(check.CacheTold{Client: k.c.ID, Event: e})
	}
	k.c.group.See(check.CacheShows{Client: k.c.ID, Cache: m})
	k.request(rd.Request)
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
		k.c.group.Fail("Caches", "the cache of client %d ends: %v %v", k.c.ID, m.Outcome(), m.Err())
		return
	}
	k.drop()
	k.m, k.c.treeWatches = nil, nil // a watch that was not removed ends with the lost connection
	k.soon(machine.Second, func() {
		if k.m == nil && k.c.Attached {
			k.attached()
		}
	})
}

// cacheClients returns all cache clients of the run.
func (s *Group) cacheClients() (all []*cacheClient) {
	for _, c := range s.All {
		if k, ok := c.Player.(*cacheClient); ok {
			all = append(all, k)
		}
	}
	return all
}

// CachesBehind says which cache does not yet equal the tree. It returns an empty text if all
// do.
func (s *Group) CachesBehind() string {
	for _, k := range s.cacheClients() {
		if k.m == nil || k.m.Stale() {
			return fmt.Sprintf("the cache of client %d is not current", k.c.ID)
		}
		n := 0
		wrong := ""
		s.History().Walk(k.cfg.Root, func(path string, stat wire.Stat, data []byte) {
			if !k.m.Covers(path) {
				return
			}
			n++
			if !check.Shows(k.m.Get(path), path, &stat, data) {
				wrong = fmt.Sprintf("the cache of client %d does not show %s of %v", k.c.ID, path, stat.Mzxid)
			}
		})
		if wrong == "" && k.m.Len() != n {
			wrong = fmt.Sprintf("the cache of client %d shows %d znodes, there are %d", k.c.ID, k.m.Len(), n)
		}
		if wrong != "" {
			return wrong
		}
	}
	return ""
}
