package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// atMostOnce checks that each request of a client becomes at most one transaction.
type atMostOnce struct{ done map[attempt]wire.Zxid }

// attempt identifies a request. A simulated client never uses an xid twice.
type attempt struct {
	session wire.SessionID
	xid     int32
}

func newAtMostOnce() *atMostOnce { return &atMostOnce{map[attempt]wire.Zxid{}} }

func (*atMostOnce) Name() string { return "AtMostOnce" }

func (c *atMostOnce) See(o any) string {
	e, ok := o.(check.Committed)
	if !ok || e.Txn.Cxid <= 0 { // a transaction that a server made by itself
		return ""
	}
	a := attempt{e.Txn.Session, e.Txn.Cxid}
	if before, twice := c.done[a]; twice {
		return fmt.Sprintf("request %d of session %v is carried out by %v and by %v", a.xid, a.session, before, e.Txn.Zxid)
	}
	c.done[a] = e.Txn.Zxid
	return ""
}

// ackedWrites checks that a write that was answered is in the history, with the result that
// the answer gives.
type ackedWrites struct{ history *check.History }

func (ackedWrites) Name() string { return "AckedWrites" }

func (c ackedWrites) See(o any) string {
	e, ok := o.(answered)
	if !ok || !e.call.op.IsWrite() || e.response.header.Err != wire.OK {
		return ""
	}
	k, z := e.call, e.response.header.Zxid
	i, known := c.history.Index[z]
	if !known {
		return fmt.Sprintf("client %d was told that %v %s is done by %v, which nobody has", k.client.id, k.op, k.path, z)
	}
	if t := c.history.Entries[i].Txn; t.Session != k.session || t.Cxid != k.xid {
		return fmt.Sprintf("client %d was told that its request %d is done by %v, which is request %d of session %v",
			k.client.id, k.xid, z, t.Cxid, t.Session)
	}
	return ""
}

// sessionOrder checks that answers come in the order of the requests, and that a session is
// never shown a state older than one that it was shown before.
type sessionOrder struct{}

func (sessionOrder) Name() string { return "SessionOrder" }

func (sessionOrder) See(o any) string {
	e, ok := o.(answered)
	if !ok {
		return ""
	}
	k, h := e.call, e.response.header
	switch {
	case h.Xid != k.xid:
		return fmt.Sprintf("client %d waits for the answer to %d and gets that to %d", k.client.id, k.xid, h.Xid)
	case h.Zxid < k.client.seen && h.Zxid > 0:
		return fmt.Sprintf("client %d has seen %v and is shown %v", k.client.id, k.client.seen, h.Zxid)
	}
	return ""
}

// watchOrder checks that an event comes before any answer that shows the change it reports,
// and that the client had a watch for the event.
type watchOrder struct{ history *check.History }

func newWatchOrder(h *check.History) watchOrder { return watchOrder{h} }

func (watchOrder) Name() string { return "WatchOrder" }

func (c watchOrder) See(o any) string {
	switch e := o.(type) {
	case answered:
		for i := range e.call.client.watches {
			if wrong := c.missed(e.call.client, &e.call.client.watches[i], e.response.header.Zxid); wrong != "" {
				return wrong
			}
		}
		for _, w := range e.call.client.streams {
			if wrong := c.missedBelow(e.call.client, w, e.response.header.Zxid); wrong != "" {
				return wrong
			}
		}
	case notified:
		if e.event.Zxid == -1 {
			return "" // setWatches reports these once for each watch of a path
		}
		if slices.ContainsFunc(e.client.streams, func(w *stream) bool { return w.means(e.event) }) {
			return ""
		}
		for i := range e.client.watches {
			if e.client.watches[i].meets(e.event) {
				return ""
			}
		}
		return fmt.Sprintf("client %d is told %v of %s at %v, which it does not watch", e.client.id, e.event.Type, e.event.Path, e.event.Zxid)
	}
	return ""
}

// missed returns what is wrong if an answer as of z comes before an event that should have
// come first.
func (c watchOrder) missed(k *client, w *watch, z wire.Zxid) string {
	ch := c.history.Changes[w.path]
	if ch == nil {
		return ""
	}
	at := check.Within(ch.Data, w.zxid, z)
	if w.kids {
		at = check.Within(ch.Kids, w.zxid, z)
	}
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("client %d watches %s since %v and is shown %v, but not told of the change at %v", k.id, w.path, w.zxid, z, at)
}

// missedBelow does what missed does, for the watch of a tree.
func (c watchOrder) missedBelow(k *client, w *stream, z wire.Zxid) string {
	if w.local || w.since == 0 {
		return ""
	}
	first, where := wire.Zxid(0), ""
	for path, ch := range c.history.Changes {
		if !w.covers(path) {
			continue
		}
		if at := check.Within(ch.Data, max(w.since, w.told[path]), z); at > 0 && (first == 0 || at < first || at == first && path < where) {
			first, where = at, path
		}
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("client %d watches all of %s since %v and is shown %v, but not told of %s at %v", k.id, w.root, w.since, z, where, first)
}

// realTime checks linearizability against real time: what was answered before a request was
// issued comes before that request. A later write has a later zxid, and a read behind a
// sync shows all writes that were answered before the sync was issued.
type realTime struct {
	newest wire.Zxid // the largest zxid of the writes answered so far
}

func newRealTime() *realTime { return &realTime{} }

func (*realTime) Name() string { return "RealTime" }

func (c *realTime) See(o any) string {
	switch e := o.(type) {
	case issued:
		e.call.floor = c.newest
	case answered:
		k, h := e.call, e.response.header
		if h.Err != wire.OK {
			return ""
		}
		if (k.op.IsWrite() || k.synced) && h.Zxid < k.floor {
			return fmt.Sprintf("client %d asked for %v %s when %v was answered, and is shown %v", k.client.id, k.op, k.path, k.floor, h.Zxid)
		}
		if k.op.IsWrite() {
			c.newest = max(c.newest, h.Zxid)
		}
	}
	return ""
}
