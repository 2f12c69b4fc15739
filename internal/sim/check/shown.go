package check

import (
	"fmt"
	"sort"

	"bellwether/internal/record"
	"bellwether/wire"
)

// shown checks that a client reads what the history has at the zxid of the answer, and that
// this zxid is in the history. So no client sees a state that can be taken back.
type shown struct{ history *History }

func (shown) Name() string { return "Shown" }

func (c shown) See(o any) string {
	e, ok := o.(Answered)
	if !ok || e.Header.Zxid <= 0 {
		return ""
	}
	k, h := &e.Request, &e.Header
	if last := c.history.Last().Zxid; h.Zxid > last && h.Zxid.Counter() > 0 {
		return fmt.Sprintf("client %d is shown %v, but the history ends at %v", k.Client, h.Zxid, last)
	}
	ch := c.history.Changes[k.Path]
	if ch == nil || k.Op != wire.OpGetData && k.Op != wire.OpExists && k.Op != wire.OpGetChildren2 {
		return ""
	}
	mzxid, lives := ch.AsOf(h.Zxid)
	switch {
	case mzxid == 0:
	case h.Err == wire.ErrNoNode && lives:
		return fmt.Sprintf("client %d is shown no %s at %v, but it exists since %v", k.Client, k.Path, h.Zxid, mzxid)
	case h.Err == wire.OK && !lives:
		return fmt.Sprintf("client %d is shown %s at %v, but it is deleted since %v", k.Client, k.Path, h.Zxid, mzxid)
	case h.Err == wire.OK:
		if s := statOf(e.Record); s != nil && s.Mzxid != mzxid {
			return fmt.Sprintf("client %d is shown %s of %v at %v, but it was changed at %v", k.Client, k.Path, s.Mzxid, h.Zxid, mzxid)
		}
	}
	return ""
}

func statOf(r wire.Record) *wire.Stat {
	switch r := r.(type) {
	case *wire.DataResponse:
		return &r.Stat
	case *wire.StatResponse:
		return &r.Stat
	case *wire.ChildrenStatResponse:
		return &r.Stat
	case *wire.ACLResponse:
		return &r.Stat
	}
	return nil
}

// asIssued checks that servers carry out only requests that the client of the session has
// sent, in the order in which it sent them.
type asIssued struct {
	asked map[attempt]wire.OpCode
	last  map[wire.SessionID]int32
}

func newAsIssued() *asIssued {
	return &asIssued{map[attempt]wire.OpCode{}, map[wire.SessionID]int32{}}
}

func (*asIssued) Name() string { return "AsIssued" }

func (c *asIssued) See(o any) string {
	switch e := o.(type) {
	case Issued:
		if e.Op.IsWrite() || e.Op == wire.OpCloseSession {
			c.asked[attempt{e.Session, e.Xid}] = e.Op
		}
	case Committed:
		t := e.Txn
		if t.Cxid <= 0 || turnsAway(t) {
			return ""
		}
		op, ok := c.asked[attempt{t.Session, t.Cxid}]
		switch {
		case !ok, t.Type != wire.OpError && op != t.Type:
			return fmt.Sprintf("%v, a %v, is request %d of session %v, but no client has sent it", t.Zxid, t.Type, t.Cxid, t.Session)
		case t.Cxid < c.last[t.Session]:
			return fmt.Sprintf("%v is request %d of session %v and comes after request %d", t.Zxid, t.Cxid, t.Session, c.last[t.Session])
		}
		c.last[t.Session] = t.Cxid
	}
	return ""
}

// turnsAway reports whether a transaction only refuses a request that came too late, for a
// session that has ended or has moved to another server. Such a transaction changes
// nothing.
func turnsAway(t *record.Txn) bool {
	e, ok := t.Body.(*record.ErrorTxn)
	return ok && (e.Err == wire.ErrSessionMoved || e.Err == wire.ErrSessionExpired)
}

// realEvents checks that an event reports a change that is in the history and was made
// after the watch was set, and that the events of a connection come in the order of the
// changes.
type realEvents struct {
	history *History
	last    map[int]told // by client
}

// told is the last event of a connection.
type told struct {
	connection int
	zxid       wire.Zxid
}

func newRealEvents(h *History) *realEvents { return &realEvents{h, map[int]told{}} }

func (*realEvents) Name() string { return "RealEvents" }

func (c *realEvents) See(o any) string {
	e, ok := o.(Notified)
	if !ok || e.Event.Zxid <= 0 { // an event that answers setWatches belongs to no particular change
		return ""
	}
	z, before := e.Event.Zxid, c.last[e.Client]
	if before.connection == e.Connection && z < before.zxid {
		return fmt.Sprintf("client %d gets an event of %v after one of %v", e.Client, z, before.zxid)
	}
	c.last[e.Client] = told{e.Connection, z}
	ch := c.history.Changes[e.Event.Path]
	if ch == nil || !contains(ch.Data, z) && !contains(ch.Children, z) {
		return fmt.Sprintf("client %d gets the event %v of %s at %v, but that transaction did not change it", e.Client, e.Event.Type, e.Event.Path, z)
	}
	return ""
}

func contains(sorted []wire.Zxid, z wire.Zxid) bool {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= z })
	return i < len(sorted) && sorted[i] == z
}
