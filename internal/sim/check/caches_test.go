package check

import (
	"testing"

	"bellwether/internal/claim/cache"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// brokenCaches are sequences of observations that break the rule of caches.
var brokenCaches = []broken{
	{"shown with data that it never had", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 1, "other"))}
	}},
	{"shown as of a change that never was", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 3, "a"))}
	}},
	{"taken for another that was made before", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 4, "c"))}
	}},
	{"an earlier state behind a later one", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 2, "b")), wasSet(leafNode(1, 1, "a"), leafNode(1, 2, "b"))}
	}},
	{"one that was deleted, behind that", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 1, "a")), went(leafNode(1, 1, "a")), came(leafNode(1, 2, "b"))}
	}},
	{"a change told twice", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 2, "b")), wasSet(leafNode(1, 2, "b"), leafNode(1, 2, "b"))}
	}},
	{"another taken for the same", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 2, "b")), wasSet(leafNode(4, 4, "c"), leafNode(1, 2, "b"))}
	}},
	{"two that come at one place", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(1, 2, "b")), came(leafNode(4, 4, "c"))}
	}},
	{"one gone that was not told", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, went(leafNode(1, 2, "b"))}
	}},
	{"one gone that is there", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(4, 4, "c")), went(leafNode(4, 4, "c"))}
	}},
	{"a child without its parent", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(&cache.Node{Path: "/"}), came(&cache.Node{Path: "/p/x", Data: []byte("x"), Stat: wire.Stat{Czxid: z(1, 5), Mzxid: z(1, 5)}})}
	}},
	{"shown and not told", cacheRule, func(h *History) []any {
		grown(h)
		return []any{CacheBegan{1}, came(leafNode(4, 4, "c")), CacheShows{1, cache.NewCache(cache.Config{Root: "/"})}}
	}},
}

// brokenTreeWatches are sequences of observations in which the watch of a tree misses
// something.
var brokenTreeWatches = []broken{
	{"an answer that knows of more than was told", treeWatchRule, func(h *History) []any {
		grown(h)
		w := Watching{Trees: []TreeWatch{{Root: "/", Since: z(1, 1), Told: map[string]wire.Zxid{"/leaf": z(1, 4)}}}}
		answer := func(n uint32) Answered { return Answered{Watching: w, Header: wire.ReplyHeader{Zxid: z(1, n)}} }
		return []any{answer(1), answer(4), answer(5)}
	}},
	{"an answer that knows of a child that a persistent watch was not told of", treeWatchRule, func(h *History) []any {
		grown(h)
		w := Watching{Trees: []TreeWatch{{Root: "/p", One: true, Since: z(1, 1)}}}
		answer := func(n uint32) Answered { return Answered{Watching: w, Header: wire.ReplyHeader{Zxid: z(1, n)}} }
		return []any{answer(4), answer(5)}
	}},
	{"an answer that knows of data that a persistent watch was not told of", treeWatchRule, func(h *History) []any {
		grown(h)
		answer := func(n, told uint32) Answered {
			w := Watching{Trees: []TreeWatch{{Root: "/leaf", One: true, Since: z(1, 1), Told: map[string]wire.Zxid{"/leaf": z(1, told)}}}}
			return Answered{Watching: w, Header: wire.ReplyHeader{Zxid: z(1, n)}}
		}
		return []any{answer(2, 2), answer(3, 3), answer(3, 2)}
	}},
	{"an event below a persistent watch", treeWatchRule, func(h *History) []any {
		grown(h)
		w := Watching{Trees: []TreeWatch{{Root: "/p", One: true}}}
		event := func(typ wire.EventType, path string) Notified {
			return Notified{Watching: w, Event: tree.Event{Type: typ, Path: path, Zxid: z(1, 5)}}
		}
		return []any{event(wire.EventNodeChildrenChanged, "/p"), event(wire.EventNodeCreated, "/p/x")}
	}},
	{"an event from elsewhere", treeWatchRule, func(h *History) []any {
		grown(h)
		w := Watching{Trees: []TreeWatch{{Root: "/leaf"}}}
		event := func(path string) Notified {
			return Notified{Watching: w, Event: tree.Event{Type: wire.EventNodeDataChanged, Path: path, Zxid: z(1, 2)}}
		}
		return []any{event("/leaf"), event("/leaf/x"), event("/leafy")}
	}},
}

func treeWatchRule(h *History) Checker { return newWatchOrder(h) }

func cacheRule(h *History) Checker { return newCaches(h) }

// grown adds to the history a tree in which /leaf was created with data a, set to b,
// deleted, and created again with c. After that /p/x was created.
func grown(h *History) {
	for i, body := range []record.TxnBody{
		&record.CreateTxn{Path: "/leaf", Data: []byte("a")}, &record.SetDataTxn{Path: "/leaf", Data: []byte("b")}, &record.DeleteTxn{Path: "/leaf"},
		&record.CreateTxn{Path: "/leaf", Data: []byte("c")}, &record.CreateTxn{Path: "/p/x", Data: []byte("x")},
	} {
		t := &record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, uint32(i+1))}, Body: body}
		h.Note(t.Zxid, t.Type, body)
		h.Index[t.Zxid] = len(h.Entries)
		h.Entries = append(h.Entries, Entry{Zxid: t.Zxid, Txn: t})
	}
}

// leafNode returns /leaf as created by one transaction and set by another.
func leafNode(czxid, mzxid uint32, data string) *cache.Node {
	return &cache.Node{Path: "/leaf", Data: []byte(data), Stat: wire.Stat{Czxid: z(1, czxid), Mzxid: z(1, mzxid)}}
}

func came(n *cache.Node) CacheTold {
	return CacheTold{1, cache.Event{Type: cache.NodeAdded, Node: n}}
}

func wasSet(n, old *cache.Node) CacheTold {
	return CacheTold{1, cache.Event{Type: cache.NodeChanged, Node: n, Old: old}}
}

func went(n *cache.Node) CacheTold {
	return CacheTold{1, cache.Event{Type: cache.NodeRemoved, Node: n}}
}

// TestMembershipInACache checks that a cache may show a membership that no transaction has written, but must show the one that a
// transaction has written, and every other znode as the history has it.
func TestMembershipInACache(t *testing.T) {
	shown := func(z wire.Zxid, data string) *cache.Node {
		return &cache.Node{Data: []byte(data), Stat: wire.Stat{Mzxid: z}}
	}
	for _, c := range []struct {
		name    string
		n       *cache.Node
		path    string
		history wire.Zxid
		fine    bool
	}{
		{"as the history has it", shown(z(1, 2), "m"), configPath, z(1, 2), true},
		{"written without a transaction", shown(z(1, 0), "members"), configPath, 0, true},
		{"not shown", nil, configPath, 0, false},
		{"older than the transaction", shown(z(1, 0), "members"), configPath, z(1, 2), false},
		{"other data than the transaction's", shown(z(1, 2), "members"), configPath, z(1, 2), false},
		{"another znode that no transaction has written", shown(z(1, 0), "members"), "/zookeeper/quota", 0, false},
	} {
		if got := Shows(c.n, c.path, &wire.Stat{Mzxid: c.history}, []byte("m")); got != c.fine {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
