package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// Apply carries out a committed transaction, queues the events it causes, and returns
// what its reply says. Applied twice, or over a snapshot that contains parts of it, it
// leaves the same tree.
func (t *Tree) Apply(txn *record.Txn) Result {
	t.mu.Lock()
	res := t.applyBody(txn.Body, &txn.TxnHeader)
	t.watches.unwatched = "" // a client may set a watch before the next transaction is applied
	t.last = max(t.last, txn.Zxid)
	t.checkDigest(txn)
	t.mu.Unlock()
	t.pend.applied(txn.Zxid)
	return res
}

// Replay is Apply for a transaction whose reply no client of this server waits for: its
// Result has no Response. A follower replays the writes of clients of other servers, and
// a starting server replays its log.
func (t *Tree) Replay(txn *record.Txn) Result {
	t.unanswered = true
	res := t.Apply(txn)
	t.unanswered = false
	return res
}

// applyBody carries out a transaction or one operation of a multi.
func (t *Tree) applyBody(body record.TxnBody, h *record.TxnHeader) Result {
	res := Result{Zxid: h.Zxid}
	switch b := body.(type) {
	case *record.CreateTxn:
		c := created{path: b.Path, data: b.Data, acl: b.ACL, counter: b.ParentCversion}
		if b.Ephemeral {
			c.owner = int64(h.Session)
		}
		t.create(&res, &c, h)
	case *record.CreateContainerTxn:
		t.create(&res, &created{b.Path, b.Data, b.ACL, b.ParentCversion, record.OwnerContainer}, h)
	case *record.CreateTTLTxn:
		t.create(&res, &created{b.Path, b.Data, b.ACL, b.ParentCversion, record.TTLOwner(b.TTL & record.TTLMax)}, h)
	case *record.DeleteTxn:
		res.Err = t.applyDelete(b.Path, h.Zxid)
	case *record.SetDataTxn:
		t.setData(&res, b, h)
	case *record.SetACLTxn:
		var n *node
		n, res.Err = t.applySetACL(b)
		t.respondStat(&res, n)
	case *record.ErrorTxn:
		res.Err = b.Err
	case *record.CreateSessionTxn:
		t.openSession(h.Session, b.TimeoutMS)
	case *record.CloseSessionTxn:
		t.applyCloseSession(h.Session, h.Zxid, b.Paths)
	case *record.MultiTxn:
		return t.applyMulti(b, h)
	case nil:
		if h.Type == wire.OpCloseSession {
			t.applyCloseSession(h.Session, h.Zxid, nil)
		}
	}
	return res
}

// create applies every kind of create and builds its reply.
func (t *Tree) create(res *Result, c *created, h *record.TxnHeader) {
	var n *node
	if n, res.Err = t.applyCreate(c, h); res.Err != wire.OK || t.unanswered {
		return
	}
	if h.Type == wire.OpCreate {
		res.Response = &wire.PathResponse{Path: c.path}
		return
	}
	r := &wire.PathStatResponse{Path: c.path}
	t.stat(n, &r.Stat)
	res.Response = r
}

func (t *Tree) setData(res *Result, s *record.SetDataTxn, h *record.TxnHeader) {
	var n *node
	if n, res.Err = t.applySetData(s, h); res.Err == wire.OK && h.Type == wire.OpReconfig && !t.unanswered {
		r := &wire.DataResponse{Data: n.data()}
		t.stat(n, &r.Stat)
		res.Response = r
		return
	}
	t.respondStat(res, n)
}

func (t *Tree) respondStat(res *Result, n *node) {
	if res.Err == wire.OK && !t.unanswered {
		r := new(wire.StatResponse)
		t.stat(n, &r.Stat)
		res.Response = r
	}
}
