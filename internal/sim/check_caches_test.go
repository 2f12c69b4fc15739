package sim

import (
	"bellwether/internal/claim/cache"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// brokenCaches are sequences of observations that break the rule of caches.
var brokenCaches = []broken{
	{"shown with data that it never had", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 1, "other"))}
	}},
	{"shown as of a change that never was", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 3, "a"))}
	}},
	{"taken for another that was made before", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 4, "c"))}
	}},
	{"an earlier state behind a later one", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 2, "b")), wasSet(k, leafNode(1, 1, "a"), leafNode(1, 2, "b"))}
	}},
	{"one that was deleted, behind that", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 1, "a")), went(k, leafNode(1, 1, "a")), came(k, leafNode(1, 2, "b"))}
	}},
	{"a change told twice", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 2, "b")), wasSet(k, leafNode(1, 2, "b"), leafNode(1, 2, "b"))}
	}},
	{"another taken for the same", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 2, "b")), wasSet(k, leafNode(4, 4, "c"), leafNode(1, 2, "b"))}
	}},
	{"two that come at one place", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(1, 2, "b")), came(k, leafNode(4, 4, "c"))}
	}},
	{"one gone that was not told", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, went(k, leafNode(1, 2, "b"))}
	}},
	{"one gone that is there", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(4, 4, "c")), went(k, leafNode(4, 4, "c"))}
	}},
	{"a child without its parent", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, &cache.Node{Path: "/"}), came(k, &cache.Node{Path: "/p/x", Data: []byte("x"), Stat: wire.Stat{Czxid: z(1, 5), Mzxid: z(1, 5)}})}
	}},
	{"shown and not told", cacheRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		k := grown(h)
		return []any{cacheBegan{k}, came(k, leafNode(4, 4, "c")), cacheShows{k}}
	}},
}

// brokenStreams are sequences of observations in which the watch of a tree misses
// something.
var brokenStreams = []broken{
	{"an answer that knows of more than was told", streamRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		c := grown(h).c
		c.streams = []*stream{{root: "/", since: z(1, 1), told: map[string]wire.Zxid{"/leaf": z(1, 4)}}}
		answer := func(n uint32) answered {
			return answered{&call{client: c}, response{header: wire.ReplyHeader{Zxid: z(1, n)}}}
		}
		return []any{answer(1), answer(4), answer(5)}
	}},
	{"an event from elsewhere", streamRule, func(h *check.History, _ *Sim, _, _ *server) []any {
		c := grown(h).c
		c.streams = []*stream{{root: "/leaf"}}
		event := func(path string) notified {
			return notified{c, tree.Event{Type: wire.EventNodeDataChanged, Path: path, Zxid: z(1, 2)}}
		}
		return []any{event("/leaf"), event("/leaf/x"), event("/leafy")}
	}},
}

func streamRule(h *check.History, _ *Sim) check.Checker { return newWatchOrder(h) }

func cacheRule(h *check.History, _ *Sim) check.Checker { return newCaches(h) }

// grown returns a cache of a tree in which /leaf was created with data a, set to b,
// deleted, and created again with c. After that /p/x was created.
func grown(h *check.History) *cacheClient {
	for i, body := range []record.TxnBody{
		&record.CreateTxn{Path: "/leaf", Data: []byte("a")}, &record.SetDataTxn{Path: "/leaf", Data: []byte("b")}, &record.DeleteTxn{Path: "/leaf"},
		&record.CreateTxn{Path: "/leaf", Data: []byte("c")}, &record.CreateTxn{Path: "/p/x", Data: []byte("x")},
	} {
		t := &record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, uint32(i+1))}, Body: body}
		h.Note(t.Zxid, t.Type, body)
		h.Index[t.Zxid] = len(h.Entries)
		h.Entries = append(h.Entries, check.Entry{Zxid: t.Zxid, Txn: t})
	}
	k := newCacheClient(&client{})
	k.m = cache.NewCache(cache.CacheConfig{Root: "/"})
	return k
}

// leafNode returns /leaf as created by one transaction and set by another.
func leafNode(czxid, mzxid uint32, data string) *cache.Node {
	return &cache.Node{Path: "/leaf", Data: []byte(data), Stat: wire.Stat{Czxid: z(1, czxid), Mzxid: z(1, mzxid)}}
}

func came(k *cacheClient, n *cache.Node) cacheTold {
	return cacheTold{k, cache.CacheEvent{Type: cache.NodeAdded, Node: n}}
}

func wasSet(k *cacheClient, n, old *cache.Node) cacheTold {
	return cacheTold{k, cache.CacheEvent{Type: cache.NodeChanged, Node: n, Old: old}}
}

func went(k *cacheClient, n *cache.Node) cacheTold {
	return cacheTold{k, cache.CacheEvent{Type: cache.NodeRemoved, Node: n}}
}
