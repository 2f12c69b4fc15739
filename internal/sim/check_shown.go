package sim

import (
	"fmt"
	"sort"

	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// shown checks that a client reads what the history has at the zxid of the answer, and that
// this zxid is in the history. So no client sees a state that can be taken back.
type shown struct{ history *check.History }

func (shown) Name() string { return "Shown" }

func (c shown) See(o any) string {
	e, ok := o.(answered)
	if !ok || e.response.header.Zxid <= 0 {
		return ""
	}
	k, h := e.call, e.response.header
	if last := c.history.Last().Zxid; h.Zxid > last && h.Zxid.Counter() > 0 {
		return fmt.Sprintf("client %d is shown %v, the history ends at %v", k.client.id, h.Zxid, last)
	}
	ch := c.history.Changes[k.path]
	if ch == nil || k.op != wire.OpGetData && k.op != wire.OpExists && k.op != wire.OpGetChildren2 {
		return ""
	}
	mzxid, lives := ch.AsOf(h.Zxid)
	switch {
	case mzxid == 0:
	case h.Err == wire.ErrNoNode && lives:
		return fmt.Sprintf("client %d is shown no %s at %v, it is there since %v", k.client.id, k.path, h.Zxid, mzxid)
	case h.Err == wire.OK && !lives:
		return fmt.Sprintf("client %d is shown %s at %v, it is gone since %v", k.client.id, k.path, h.Zxid, mzxid)
	case h.Err == wire.OK:
		if s := statOf(e.response.record); s != nil && s.Mzxid != mzxid {
			return fmt.Sprintf("client %d is shown %s of %v at %v, it was changed at %v", k.client.id, k.path, s.Mzxid, h.Zxid, mzxid)
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
	case issued:
		if e.call.op.IsWrite() || e.call.op == wire.OpCloseSession {
			c.asked[attempt{e.call.session, e.call.xid}] = e.call.op
		}
	case check.Committed:
		t := e.Txn
		if t.Cxid <= 0 || turnsAway(t) {
			return ""
		}
		op, ok := c.asked[attempt{t.Session, t.Cxid}]
		switch {
		case !ok, t.Type != wire.OpError && op != t.Type:
			return fmt.Sprintf("%v, a %v, is request %d of session %v, which nobody has issued", t.Zxid, t.Type, t.Cxid, t.Session)
		case t.Cxid < c.last[t.Session]:
			return fmt.Sprintf("%v is request %d of session %v, behind request %d", t.Zxid, t.Cxid, t.Session, c.last[t.Session])
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
	history *check.History
	last    map[*client]told
}

// told is the last event of a connection.
type told struct {
	tries int
	zxid  wire.Zxid
}

func newRealEvents(h *check.History) *realEvents { return &realEvents{h, map[*client]told{}} }

func (*realEvents) Name() string { return "RealEvents" }

func (c *realEvents) See(o any) string {
	e, ok := o.(notified)
	if !ok || e.event.Zxid <= 0 { // setWatches reports it for no particular change
		return ""
	}
	z, before := e.event.Zxid, c.last[e.client]
	if before.tries == e.client.tries && z < before.zxid {
		return fmt.Sprintf("client %d is told of %v behind %v", e.client.id, z, before.zxid)
	}
	c.last[e.client] = told{e.client.tries, z}
	ch := c.history.Changes[e.event.Path]
	if ch == nil || !contains(ch.Data, z) && !contains(ch.Kids, z) {
		return fmt.Sprintf("client %d is told %v of %s at %v, where nothing happened to it", e.client.id, e.event.Type, e.event.Path, z)
	}
	return ""
}

func contains(sorted []wire.Zxid, z wire.Zxid) bool {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= z })
	return i < len(sorted) && sorted[i] == z
}
