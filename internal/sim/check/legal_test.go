package check

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// author shows the checker requests and the transactions that a correct server makes of them.
type author struct {
	t     *tree.Tree
	h     History
	c     *legal
	last  wire.Zxid
	xid   int32
	wrong []string // what the checker has said of each observation
}

func newAuthor() *author {
	made := func() *tree.Tree { return tree.New(tree.Options{Seed: 1, ExtendedTypes: true, Reconfig: true}) }
	a := &author{t: made(), h: NewHistory(made())}
	a.c = newLegal(&a.h)
	a.commit(wire.OpCreateSession, &record.CreateSessionTxn{TimeoutMS: 1000})
	return a
}

// commit makes a transaction that no request asks for.
func (a *author) commit(op wire.OpCode, body record.TxnBody) {
	a.last = max(a.last, z(1, 0)) + 1
	a.add(&record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: a.last, Type: op}, Body: body})
}

func (a *author) see(o any) { a.wrong = append(a.wrong, a.c.See(o)) }

func (a *author) add(t *record.Txn) {
	a.t.Apply(t)
	a.h.Add(t)
	a.see(Committed{1, len(a.h.Entries) - 1, t})
}

// ask issues a request and commits what the tree prepares for it.
func (a *author) ask(op wire.OpCode, path string, q wire.Record) {
	a.xid++
	body := wire.Append(nil, q)
	a.see(Issued{Request{Session: 1, Xid: a.xid, Op: op, Path: path, Body: body}})
	a.last++
	txn, _ := a.t.Prepare(&tree.Request{Session: 1, Cxid: a.xid, Op: op, Body: body, Identities: []wire.ID{IdentityOf(0)}}, a.last, int64(a.xid))
	a.add(txn)
}

func (a *author) create(path string, flags int32) {
	a.ask(wire.OpCreate, path, &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: flags})
}

// other issues a request, but commits another transaction for it.
func (a *author) other(op wire.OpCode, q wire.Record, made wire.OpCode, body record.TxnBody) {
	a.xid++
	a.see(Issued{Request{Session: 1, Xid: a.xid, Op: op, Body: wire.Append(nil, q)}})
	a.last++
	a.add(&record.Txn{TxnHeader: record.TxnHeader{Session: 1, Cxid: a.xid, Zxid: a.last, Type: made}, Body: body})
}

// TestLegalWrites checks that the model agrees with the tree about requests of all kinds.
func TestLegalWrites(t *testing.T) {
	a := newAuthor()
	a.create("/a", wire.FlagPersistent)
	a.create("/a", wire.FlagPersistent)
	a.create("/missing/a", wire.FlagPersistent)
	a.create("/a/e", wire.FlagEphemeral)
	a.create("/a/e/k", wire.FlagPersistent)
	a.create("/a/s-", wire.FlagPersistentSequential)
	a.ask(wire.OpDelete, "/a/s-0000000001", &wire.PathVersionRequest{Path: "/a/s-0000000001", Version: 3})
	a.ask(wire.OpDelete, "/a/s-0000000001", &wire.PathVersionRequest{Path: "/a/s-0000000001", Version: 0})
	a.create("/a/s-", wire.FlagEphemeralSequential)
	a.ask(wire.OpDelete, "/a", &wire.PathVersionRequest{Path: "/a", Version: -1})
	a.ask(wire.OpSetData, "/a", &wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: 0})
	a.ask(wire.OpSetData, "/a", &wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: 0})
	a.ask(wire.OpSetACL, "/a", &wire.SetACLRequest{Path: "/a", ACL: wire.ReadACL(), Version: -1})
	a.create("/a/x", wire.FlagPersistent)
	a.create("/o", wire.FlagPersistent)
	for range 2 { // the owner may change the ACL again
		a.ask(wire.OpSetACL, "/o", &wire.SetACLRequest{Path: "/o", ACL: wire.CreatorACL(), Version: -1})
	}
	a.ask(wire.OpSetACL, "/o", &wire.SetACLRequest{Path: "/o", ACL: []wire.ACL{{Perms: wire.PermAll, ID: IdentityOf(1)}}, Version: -1})
	a.ask(wire.OpSetACL, "/o", &wire.SetACLRequest{Path: "/o", ACL: wire.OpenACL(), Version: -1})
	a.ask(wire.OpCreateContainer, "/c", &wire.CreateRequest{Path: "/c", ACL: wire.OpenACL(), Flags: wire.FlagContainer})
	a.ask(wire.OpCreateTTL, "/t", &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/t", ACL: wire.OpenACL(), Flags: wire.FlagPersistentTTL}, TTL: 5})
	for _, version := range []int32{-1, 7} {
		a.ask(wire.OpMulti, "/m", &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/m", ACL: wire.OpenACL()}},
			{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/m", Version: 0}},
			{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a", Version: version}},
			{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/m", Version: 1}},
		}})
	}
	txn, _ := a.t.Prepare(&tree.Request{Session: 1, Op: wire.OpCloseSession}, a.last+1, 100)
	a.add(txn)

	for i, wrong := range a.wrong {
		if wrong != "" {
			t.Fatalf("observation %d: %s", i, wrong)
		}
	}
	if a.c.writes != int(a.xid) {
		t.Errorf("%d writes were compared, want %d", a.c.writes, a.xid)
	}
	if got := a.c.model.owned(1); len(got) > 0 {
		t.Errorf("after the end of the session its ephemerals are %v", got)
	}
}

// brokenMeanings are transactions and answers that do something else than they should.
// The last observation shows it.
var brokenMeanings = []struct {
	rule string
	tell func(a *author)
}{
	{"a refusal without a reason", func(a *author) {
		a.other(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()}, wire.OpError, &record.ErrorTxn{Err: wire.ErrNodeExists})
	}},
	{"a write in spite of its version", func(a *author) {
		a.create("/a", wire.FlagPersistent)
		a.other(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: 7}, wire.OpSetData, &record.SetDataTxn{Path: "/a", Version: 8})
	}},
	{"a wrong version", func(a *author) {
		a.create("/a", wire.FlagPersistent)
		a.other(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}, wire.OpSetData, &record.SetDataTxn{Path: "/a", Version: 8})
	}},
	{"a wrong sequence number", func(a *author) {
		q := &wire.CreateRequest{Path: "/s-", ACL: wire.OpenACL(), Flags: wire.FlagPersistentSequential}
		a.other(wire.OpCreate, q, wire.OpCreate, &record.CreateTxn{Path: "/s-0000000001", ACL: wire.OpenACL(), ParentCversion: 1})
	}},
	{"half of a multi", func(a *author) {
		q := &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()}},
			{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/b", Version: -1}},
		}}
		a.other(wire.OpMulti, q, wire.OpMulti, &record.MultiTxn{Ops: []record.SubTxn{
			{Type: wire.OpCreate, Body: &record.CreateTxn{Path: "/a", ACL: wire.OpenACL(), ParentCversion: 1}},
			{Type: wire.OpCheck, Body: &record.CheckTxn{Path: "/b", Version: -1}},
		}})
	}},
	{"an ephemeral that the end of its session leaves", func(a *author) {
		a.create("/e", wire.FlagEphemeral)
		a.commit(wire.OpCloseSession, &record.CloseSessionTxn{})
	}},
	{"a session that ends twice", func(a *author) {
		a.commit(wire.OpCloseSession, &record.CloseSessionTxn{})
		a.commit(wire.OpCloseSession, &record.CloseSessionTxn{})
	}},
	{"a write after the end of its session", func(a *author) {
		a.commit(wire.OpCloseSession, &record.CloseSessionTxn{})
		a.other(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()}, wire.OpCreate, &record.CreateTxn{Path: "/a", ACL: wire.OpenACL(), ParentCversion: 1})
	}},
	{"a container that is removed before its first use", func(a *author) {
		a.ask(wire.OpCreateContainer, "/c", &wire.CreateRequest{Path: "/c", ACL: wire.OpenACL(), Flags: wire.FlagContainer})
		a.commit(wire.OpDeleteContainer, &record.DeleteTxn{Path: "/c"})
	}},
	{"a TTL that is not over", func(a *author) {
		a.ask(wire.OpCreateTTL, "/t", &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/t", ACL: wire.OpenACL(), Flags: wire.FlagPersistentTTL}, TTL: 5})
		a.commit(wire.OpDeleteContainer, &record.DeleteTxn{Path: "/t"})
	}},
	{"a password that is shown", func(a *author) {
		list := []wire.ACL{{Perms: wire.PermRead, ID: anyone}, {Perms: wire.PermAll, ID: IdentityOf(1)}}
		a.ask(wire.OpCreate, "/a", &wire.CreateRequest{Path: "/a", ACL: list})
		read := func(client int, list []wire.ACL) Answered {
			return Answered{Request: Request{Client: client, Op: wire.OpGetACL, Path: "/a"}, Header: wire.ReplyHeader{Zxid: a.last},
				Record: &wire.ACLResponse{ACL: list, Stat: wire.Stat{Czxid: a.last, Mzxid: a.last, Pzxid: a.last}}}
		}
		a.see(read(1, list))
		a.see(read(2, masked(list)))
		a.see(read(2, list))
	}},
	{"an event of a znode that its client may not read", func(a *author) {
		list := []wire.ACL{{Perms: wire.PermAll, ID: IdentityOf(0)}}
		event := func(client int) Notified {
			return Notified{Client: client, Event: tree.Event{Type: wire.EventNodeDataChanged, Path: "/a", Zxid: a.last}}
		}
		a.ask(wire.OpCreate, "/a", &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()})
		a.see(event(1))
		a.ask(wire.OpSetACL, "/a", &wire.SetACLRequest{Path: "/a", ACL: list, Version: -1})
		a.ask(wire.OpSetData, "/a", &wire.SetDataRequest{Path: "/a", Version: -1})
		a.see(event(2))
		a.ask(wire.OpDelete, "/a", &wire.PathVersionRequest{Path: "/a", Version: -1})
		a.see(event(2))
		a.see(event(1))
	}},
	{"a read of other data", func(a *author) {
		a.create("/a", wire.FlagPersistent)
		stat := wire.Stat{Czxid: a.last, Mzxid: a.last, Pzxid: a.last}
		read := func(data string) Answered {
			stat.DataLength = int32(len(data))
			return Answered{Request: Request{Op: wire.OpGetData, Path: "/a"}, Header: wire.ReplyHeader{Zxid: a.last}, Record: &wire.DataResponse{Data: []byte(data), Stat: stat}}
		}
		a.see(read(""))
		a.see(read("x"))
	}},
}

func TestBrokenMeanings(t *testing.T) {
	for _, b := range brokenMeanings {
		t.Run(b.rule, func(t *testing.T) {
			a := newAuthor()
			b.tell(a)
			for i, wrong := range a.wrong {
				if last := i == len(a.wrong)-1; (wrong != "") != last {
					t.Errorf("Legal says %q of observation %d of %d", wrong, i+1, len(a.wrong))
				}
			}
		})
	}
}
