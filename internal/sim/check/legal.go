package check

import (
	"fmt"
	"maps"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// legal checks the meaning of writes and reads: each committed transaction does what its request asks for, given
// everything before it, or has failed with the right code; each read shows what the history says at its zxid; and a
// client gets events only of znodes that it may read.
// It compares with a model of its own.
type legal struct {
	history       *History
	model         *model
	asked         map[attempt]asked
	open          map[wire.SessionID]bool // false: its end is committed
	writes, reads int
	hidden        int // reads of ACLs with passwords by clients that may not change them
	told          int // events of znodes that not everybody may read
}

// asked is a write that a client has sent.
type asked struct {
	op     wire.OpCode
	body   []byte
	client int
}

func newLegal(h *History) *legal {
	return &legal{history: h, model: newModel(), asked: map[attempt]asked{}, open: map[wire.SessionID]bool{}}
}

func (*legal) Name() string { return "Legal" }

func (c *legal) Met() []Count {
	return []Count{{"a write", c.writes}, {"a read", c.reads}, {"a password is hidden", c.hidden}, {"an event of a znode that not everybody may read", c.told}}
}

func (c *legal) See(o any) string {
	switch e := o.(type) {
	case Issued:
		if e.Op.IsWrite() {
			c.asked[attempt{e.Session, e.Xid}] = asked{e.Op, e.Body, e.Client}
		}
	case Committed:
		wrong := c.committed(e.Txn)
		if wrong == "" {
			wrong = c.compare()
		}
		c.model.settle(e.Txn.Zxid)
		if wrong != "" {
			return fmt.Sprintf("%v, a %v of session %v: %s", e.Txn.Zxid, e.Txn.Type, e.Txn.Session, wrong)
		}
	case Answered:
		return c.answered(&e)
	case Notified:
		return c.notified(&e)
	}
	return ""
}

// committed carries out a transaction in the model, and says what is wrong with it.
func (c *legal) committed(t *record.Txn) string {
	switch t.Type {
	case wire.OpCreateSession:
		c.open[t.Session] = true
		return ""
	case wire.OpCloseSession:
		return c.closed(t)
	case wire.OpDeleteContainer:
		return c.unused(t)
	case wire.OpReconfig:
		if b, ok := t.Body.(*record.SetDataTxn); ok {
			n := c.model.znodes[b.Path]
			n.data, n.version, n.mzxid, n.mtime = b.Data, b.Version, t.Zxid, t.Time
			c.model.put(b.Path, n)
		}
		return ""
	}
	q, known := c.asked[attempt{t.Session, t.Cxid}]
	code := codeOf(t)
	switch {
	case turnsAway(t), !known, q.op == wire.OpReconfig, code == wire.ErrEphemeralOnLocalSession:
		return ""
	}
	if lives, ended := c.open[t.Session]; ended && !lives {
		return "the session has ended before"
	}
	c.writes++
	c.model.who = IdentityOf(q.client)
	if q.op == wire.OpMulti {
		return c.multi(t, q.body)
	}
	r := requestOf(q.op)
	if r == nil {
		return ""
	}
	if err := wire.Decode(q.body, r); err != nil {
		return err.Error()
	}
	if want := c.model.write(&t.TxnHeader, q.op, r); want != code {
		return fmt.Sprintf("ends with %v, should end with %v", code, want)
	}
	return ""
}

// codeOf returns with which code a transaction answers its request.
func codeOf(t *record.Txn) wire.Code {
	if e, ok := t.Body.(*record.ErrorTxn); ok {
		return e.Err
	}
	return wire.OK
}

// requestOf returns an empty request of a kind; nil if the model does not know it.
func requestOf(op wire.OpCode) wire.Record {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		return new(wire.CreateRequest)
	case wire.OpCreateTTL:
		return new(wire.CreateTTLRequest)
	case wire.OpDelete:
		return new(wire.PathVersionRequest)
	case wire.OpSetData:
		return new(wire.SetDataRequest)
	case wire.OpSetACL:
		return new(wire.SetACLRequest)
	}
	return nil
}

// multi compares which operation of a multi has failed, and how.
func (c *legal) multi(t *record.Txn, body []byte) string {
	q := new(wire.MultiRequest)
	b, ok := t.Body.(*record.MultiTxn)
	if err := wire.Decode(body, q); err != nil || !ok || len(b.Ops) != len(q.Ops) {
		return fmt.Sprintf("does not fit its request of %d operations (%v)", len(q.Ops), err)
	}
	at, code := 0, wire.OK
	for i := len(b.Ops) - 1; i >= 0; i-- {
		if e, ok := b.Ops[i].Body.(*record.ErrorTxn); ok && e.Err != wire.OK {
			at, code = i, e.Err
		}
	}
	if i, want := c.model.multi(&t.TxnHeader, q); i != at || want != code {
		return fmt.Sprintf("operation %d ends with %v, but operation %d should end with %v", at, code, i, want)
	}
	return ""
}

// closed ends a session in the model.
func (c *legal) closed(t *record.Txn) string {
	if lives, known := c.open[t.Session]; known && !lives {
		return "the session has ended before"
	}
	c.open[t.Session] = false
	owned := c.model.owned(int64(t.Session))
	for _, path := range slices.Sorted(maps.Keys(owned)) {
		c.model.remove(t.Zxid, path)
	}
	b, ok := t.Body.(*record.CloseSessionTxn)
	if !ok {
		return ""
	}
	for _, path := range b.Paths {
		if !owned[path] {
			return fmt.Sprintf("%s is no ephemeral of the session", path)
		}
	}
	if len(b.Paths) != len(owned) {
		return fmt.Sprintf("lists the ephemerals %v, should list %v", b.Paths, slices.Sorted(maps.Keys(owned)))
	}
	return ""
}

// unused removes a container, or a znode whose TTL has passed.
func (c *legal) unused(t *record.Txn) string {
	b, ok := t.Body.(*record.DeleteTxn)
	if !ok {
		return ""
	}
	n := c.model.znodes[b.Path]
	due := n.owner == record.OwnerContainer && n.creates > 0
	if ttl := ttlOf(n.owner); ttl > 0 {
		due = t.Time-n.mtime > ttl
	}
	if !n.there || n.children > 0 || !due {
		return fmt.Sprintf("%s is in use: %d children of %d, changed %d ms before", b.Path, n.children, n.creates, t.Time-n.mtime)
	}
	c.model.remove(t.Zxid, b.Path)
	return ""
}

// compare compares the znodes that the transaction has changed with those in the committed tree.
func (c *legal) compare() string {
	for _, d := range c.model.made {
		n := c.model.znodes[d.path]
		var r wire.StatResponse
		code := c.history.Tree.Exists(reader{}, d.path, false, &r)
		if wrong := n.read(code, &r, wire.PermRead, wire.ID{}); wrong != "" && d.path != configPath {
			return d.path + " " + wrong
		}
	}
	return ""
}

// answered compares the answer to a read.
func (c *legal) answered(e *Answered) string {
	isRead := e.Op == wire.OpGetData || e.Op == wire.OpExists || e.Op == wire.OpGetChildren2 || e.Op == wire.OpGetACL
	if !isRead || e.NoQuorum || e.Header.Zxid <= 0 || e.Path == configPath || e.Header.Err == wire.ErrSessionExpired || e.Header.Err == wire.ErrSessionMoved {
		return ""
	}
	n, known := c.model.at(e.Path, e.Header.Zxid)
	if !known {
		return ""
	}
	c.reads++
	who, perm := IdentityOf(e.Client), int32(wire.PermRead)
	if e.Op == wire.OpGetACL {
		perm |= wire.PermAdmin
		if n.permits(wire.PermRead, who) && !n.permits(wire.PermAdmin, who) && !slices.Equal(masked(n.acl), n.acl) {
			c.hidden++
		}
	}
	if wrong := n.read(e.Header.Err, e.Record, perm, who); wrong != "" {
		return fmt.Sprintf("client %d reads %s at %v and %s", e.Client, e.Path, e.Header.Zxid, wrong)
	}
	return ""
}

// notified checks that a client may read the znode of an event. Whoever may read a znode that is deleted is told of its
// end.
func (c *legal) notified(e *Notified) string {
	z := e.Event.Zxid
	if z <= 0 { // it answers setWatches, which asks for no permission
		return ""
	}
	n, known := c.model.at(e.Event.Path, z)
	if known && !n.there {
		n, known = c.model.at(e.Event.Path, z-1)
	}
	if !known || !n.there {
		return ""
	}
	if !n.permits(wire.PermRead, wire.ID{}) {
		c.told++
	}
	if !n.permits(wire.PermRead, IdentityOf(e.Client)) {
		return fmt.Sprintf("client %d gets the event %v of %s at %v, but may not read it", e.Client, e.Event.Type, e.Event.Path, z)
	}
	return ""
}
