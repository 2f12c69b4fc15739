package check

import (
	"fmt"
	"slices"

	"bellwether/wire"
)

// atMostOnce checks that each request of a client becomes at most one transaction. A request that was sent on a
// connection which its session had left becomes none, except one that has failed, and one that was sent behind the end of
// its session becomes none at all.
type atMostOnce struct {
	done map[attempt]wire.Zxid
	old  map[attempt]bool // true: behind the end
}

// attempt identifies a request. A simulated client never uses an xid twice.
type attempt struct {
	session wire.SessionID
	xid     int32
}

func newAtMostOnce() *atMostOnce { return &atMostOnce{map[attempt]wire.Zxid{}, map[attempt]bool{}} }

func (*atMostOnce) Name() string { return "AtMostOnce" }

func (c *atMostOnce) See(o any) string {
	if e, ok := o.(SentOld); ok {
		c.old[attempt{e.Session, e.Xid}] = e.Behind
		return ""
	}
	e, ok := o.(Committed)
	if !ok || e.Txn.Cxid <= 0 { // a transaction that a server made by itself
		return ""
	}
	a := attempt{e.Txn.Session, e.Txn.Cxid}
	switch behind, old := c.old[a]; {
	case behind:
		return fmt.Sprintf("request %d of session %v becomes %v, but its client sent it behind the end of the session", a.xid, a.session, e.Txn.Zxid)
	case old && e.Txn.Type != wire.OpError:
		return fmt.Sprintf("request %d of session %v is carried out by %v, but its client sent it on a connection that the session had left", a.xid, a.session, e.Txn.Zxid)
	}
	if before, twice := c.done[a]; twice {
		return fmt.Sprintf("request %d of session %v is carried out by %v and by %v", a.xid, a.session, before, e.Txn.Zxid)
	}
	c.done[a] = e.Txn.Zxid
	return ""
}

// ackedWrites checks that a write that was answered is in the history, with the result that
// the answer gives.
type ackedWrites struct{ history *History }

func (ackedWrites) Name() string { return "AckedWrites" }

func (c ackedWrites) See(o any) string {
	e, ok := o.(Answered)
	if !ok || !e.Op.IsWrite() || e.Header.Err != wire.OK {
		return ""
	}
	k, z := &e.Request, e.Header.Zxid
	i, known := c.history.Index[z]
	if !known {
		return fmt.Sprintf("client %d got the answer that transaction %[4]v has done %[2]v %[3]s, but the history has no such transaction", k.Client, k.Op, k.Path, z)
	}
	if t := c.history.Entries[i].Txn; t.Session != k.Session || t.Cxid != k.Xid {
		return fmt.Sprintf("client %d got the answer that its request %d is done by %v, but that is request %d of session %v",
			k.Client, k.Xid, z, t.Cxid, t.Session)
	}
	return ""
}

// sessionOrder checks that answers come in the order of the requests, that a session is
// never shown a state older than one that it was shown before, and that a server accepts no client that has
// seen more than the server has applied.
type sessionOrder struct{}

func (sessionOrder) Name() string { return "SessionOrder" }

func (sessionOrder) See(o any) string {
	if a, ok := o.(Attached); ok && a.Zxid < a.Seen && a.Seen.Counter() > 0 {
		return fmt.Sprintf("server %d at %v accepts session %v, which has seen %v", a.Server, a.Zxid, a.Session, a.Seen)
	}
	e, ok := o.(Answered)
	if !ok {
		return ""
	}
	k, h := &e.Request, &e.Header
	switch {
	case h.Xid != k.Xid:
		return fmt.Sprintf("client %d waits for the answer to request %d and gets the answer to %d", k.Client, k.Xid, h.Xid)
	case h.Zxid < e.Seen && h.Zxid > 0:
		return fmt.Sprintf("client %d has seen %v, but an answer shows %v", k.Client, e.Seen, h.Zxid)
	}
	return ""
}

// watchOrder checks that an event comes before any answer that shows the change it reports,
// and that the client had a watch for the event. Watches of a znode that its client may not read are not compared
// (see Legal). When a client sets its watches again, an event reports a change
// of data that the client has not seen.
type watchOrder struct {
	history *History
	again   map[int]wire.Zxid // what a client had seen when it set its watches again last
}

func newWatchOrder(h *History) watchOrder { return watchOrder{h, map[int]wire.Zxid{}} }

func (watchOrder) Name() string { return "WatchOrder" }

func (c watchOrder) See(o any) string {
	switch e := o.(type) {
	case Issued:
		var q wire.SetWatchesRequest
		if e.Op == wire.OpSetWatches && wire.Decode(e.Body, &q) == nil {
			c.again[e.Client] = q.RelativeZxid
		}
	case Answered:
		if e.Header.Err == wire.ErrSessionExpired { // the watches end with the session
			return ""
		}
		for i := range e.Watches {
			if wrong := c.missed(e.Client, &e.Watches[i], e.Header.Zxid); wrong != "" {
				return wrong
			}
		}
		for i := range e.Trees {
			if wrong := c.missedBelow(e.Client, &e.Trees[i], e.Header.Zxid); wrong != "" {
				return wrong
			}
		}
	case Notified:
		if e.Event.Zxid == -1 {
			return c.repeated(&e) // the answer to setWatches has such an event for each watch of a path whose znode has changed
		}
		if slices.ContainsFunc(e.Trees, func(w TreeWatch) bool { return w.Means(e.Event) }) {
			return ""
		}
		for i := range e.Watches {
			if e.Watches[i].Meets(e.Event) {
				return ""
			}
		}
		return fmt.Sprintf("client %d gets the event %v of %s at %v, but does not watch for it", e.Client, e.Event.Type, e.Event.Path, e.Event.Zxid)
	}
	return ""
}

// repeated checks an event that a client gets because it sets a watch again.
func (c watchOrder) repeated(e *Notified) string {
	seen, ok := c.again[e.Client]
	if !ok || e.Event.Type != wire.EventNodeDataChanged || slices.ContainsFunc(e.Trees, func(w TreeWatch) bool { return w.Covers(e.Event.Path) }) {
		return ""
	}
	if ch := c.history.Changes[e.Event.Path]; ch != nil && len(ch.Data) > 0 && ch.Data[len(ch.Data)-1] > seen {
		return ""
	}
	return fmt.Sprintf("client %d, which had seen %v, sets its watches again and is told of a later change of %s, but there is none", e.Client, seen, e.Event.Path)
}

// missed returns what is wrong if an answer as of z comes before an event that should have
// come first.
func (c watchOrder) missed(client int, w *Watch, z wire.Zxid) string {
	ch := c.history.Changes[w.Path]
	if ch == nil || w.Path == SecretPath {
		return ""
	}
	at := Within(ch.Data, w.Zxid, z)
	if w.Children {
		at = Within(ch.Children, w.Zxid, z)
	}
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("client %d watches %s since %v and is shown %v, but got no event for the change at %v", client, w.Path, w.Zxid, z, at)
}

// missedBelow does what missed does, for the watch of a tree.
func (c watchOrder) missedBelow(client int, w *TreeWatch, z wire.Zxid) string {
	switch {
	case w.Local || w.Since == 0:
		return ""
	case w.One:
		return c.missedAt(client, w, z)
	}
	first, where := wire.Zxid(0), ""
	for path, ch := range c.history.Changes {
		if !w.Covers(path) {
			continue
		}
		if at := Within(ch.Data, max(w.Since, w.Told[path]), z); at > 0 && (first == 0 || at < first || at == first && path < where) {
			first, where = at, path
		}
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("client %d watches the tree %s since %v and is shown %v, but got no event for %s at %v", client, w.Root, w.Since, z, where, first)
}

// missedAt does what missed does, for a persistent watch.
func (c watchOrder) missedAt(client int, w *TreeWatch, z wire.Zxid) string {
	ch := c.history.Changes[w.Root]
	if ch == nil {
		return ""
	}
	since := max(w.Since, w.Told[w.Root])
	at := max(Within(ch.Data, since, z), Within(ch.Children, since, z))
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("client %d has a persistent watch of %s since %v and is shown %v, but got no event for the change at %v", client, w.Root, w.Since, z, at)
}

// realTime checks linearizability against real time: what was answered before a request was
// issued comes before that request. A later write has a later zxid, and a read behind a
// sync shows all writes that were answered before the sync was issued.
type realTime struct {
	newest wire.Zxid           // the largest zxid of the writes answered so far
	floors map[int64]wire.Zxid // newest when a request was sent, by the number of the request
}

func newRealTime() *realTime { return &realTime{floors: map[int64]wire.Zxid{}} }

func (*realTime) Name() string { return "RealTime" }

func (c *realTime) See(o any) string {
	switch e := o.(type) {
	case Issued:
		if e.Op.IsWrite() || e.Synced {
			c.floors[e.N] = c.newest
		}
	case Lost:
		delete(c.floors, e.N)
	case Answered:
		k, h, floor := &e.Request, &e.Header, c.floors[e.N]
		delete(c.floors, k.N)
		if h.Err != wire.OK {
			return ""
		}
		if (k.Op.IsWrite() || k.Synced) && h.Zxid < floor {
			return fmt.Sprintf("client %d sent %v %s when %v had been answered, but the answer shows %v", k.Client, k.Op, k.Path, floor, h.Zxid)
		}
		if k.Op.IsWrite() {
			c.newest = max(c.newest, h.Zxid)
		}
	}
	return ""
}
