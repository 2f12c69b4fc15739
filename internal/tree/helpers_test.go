package tree

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"bellwether/internal/quota"
	"bellwether/internal/record"
	"bellwether/wire"
)

// conn is a client connection that records its events and replies in order.
type conn struct {
	mu      sync.Mutex
	session wire.SessionID
	ids     []wire.ID
	log     []string
}

func (c *conn) Session() wire.SessionID { return c.session }
func (c *conn) Identities() []wire.ID   { return c.ids }

func (c *conn) Notify(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%v %s %d", e.Type, e.Path, e.Zxid))
}

func (c *conn) Overflow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, "overflow")
}

func (c *conn) Reserve(z wire.Zxid) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("reply %d", z))
}

// take returns what was recorded since the last call.
func (c *conn) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

// events returns the same as take without the replies.
func (c *conn) events() []string {
	return slices.DeleteFunc(c.take(), func(s string) bool { return strings.HasPrefix(s, "reply ") })
}

// world is a tree whose requests are prepared and applied at once.
type world struct {
	*testing.T
	tree *Tree
	z    wire.Zxid
	now  int64
	txns []*record.Txn
}

// Sessions of the tests, which newWorld opens.
const (
	alice wire.SessionID = 0x100000000000001
	bob   wire.SessionID = 0x100000000000002
)

func newWorld(t *testing.T, o Options) *world {
	w := &world{T: t, tree: New(o), now: 1_000_000}
	w.open(alice)
	w.open(bob)
	return w
}

func (w *world) open(id wire.SessionID) {
	w.Helper()
	w.ok(&Request{Session: id, Op: wire.OpCreateSession, Body: binary.BigEndian.AppendUint32(nil, 30000)})
}

// prepare gives a request the next zxid. A request for which the tree proposes nothing
// uses no zxid.
func (w *world) prepare(req *Request) (*record.Txn, wire.Code) {
	w.now++
	txn, code := w.tree.Prepare(req, w.z+1, w.now)
	if txn != nil {
		w.z++
		if txn.Zxid != w.z || txn.Session != req.Session || txn.Cxid != req.Cxid || txn.Time != w.now {
			w.Fatalf("header %+v of %v", txn.TxnHeader, req)
		}
		w.txns = append(w.txns, txn)
	}
	return txn, code
}

// apply encodes and decodes a transaction, as a log does, and applies it.
func (w *world) apply(txn *record.Txn) Result {
	w.Helper()
	back, err := record.DecodeTxn(txn.Append(nil))
	if err != nil {
		w.Fatalf("transaction does not survive its encoding: %v", err)
	}
	res := w.tree.Apply(back)
	if res.Zxid != txn.Zxid {
		w.Fatalf("result of %v has zxid %v", txn.Zxid, res.Zxid)
	}
	if n, first := w.tree.DigestMismatches(); n != 0 {
		w.Fatalf("digest mismatch at %v", first)
	}
	return res
}

// do prepares and applies a request and returns the result. The result of a request that
// proposes nothing has zxid 0.
func (w *world) do(req *Request) Result {
	w.Helper()
	txn, code := w.prepare(req)
	if txn == nil {
		return Result{Err: code}
	}
	res := w.apply(txn)
	if m, ok := res.Response.(*wire.MultiResponse); ok {
		RestoreCreateTypes(m, req.WithoutStat)
	}
	return res
}

func (w *world) ok(req *Request) Result {
	w.Helper()
	res := w.do(req)
	if res.Err != wire.OK {
		w.Fatalf("%v: %v", req.Op, res.Err)
	}
	return res
}

// request makes a request of alice without identities.
func request(op wire.OpCode, rec wire.Record) *Request {
	return &Request{Session: alice, Cxid: 7, Op: op, Body: wire.Append(nil, rec)}
}

func (r *Request) by(session wire.SessionID, ids ...wire.ID) *Request {
	r.Session, r.Identities = session, ids
	return r
}

func create(path string, flags int32) *Request {
	return request(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte(path), ACL: wire.OpenACL(), Flags: flags})
}

func createACL(path string, acl ...wire.ACL) *Request {
	return request(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl})
}

func container(path string) *Request {
	return request(wire.OpCreateContainer, &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: wire.FlagContainer})
}

func createTTL(path string, flags int32, ttl int64) *Request {
	return request(wire.OpCreateTTL, &wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: flags}, TTL: ttl})
}

func remove(path string, version int32) *Request {
	return request(wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: version})
}

func setData(path, data string, version int32) *Request {
	return request(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version})
}

func setACL(path string, version int32, acl ...wire.ACL) *Request {
	return request(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl, Version: version})
}

func closeSession(id wire.SessionID) *Request {
	return &Request{Session: id, Op: wire.OpCloseSession}
}

func multi(ops ...wire.Op) *Request { return request(wire.OpMulti, &wire.MultiRequest{Ops: ops}) }

func opCreate(path string, flags int32) wire.Op {
	return wire.Op{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path, Data: []byte(path), ACL: wire.OpenACL(), Flags: flags}}
}

func opDelete(path string) wire.Op {
	return wire.Op{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path, Version: -1}}
}

func opSet(path, data string, version int32) wire.Op {
	return wire.Op{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}}
}

func opCheck(path string, version int32) wire.Op {
	return wire.Op{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: path, Version: version}}
}

// acl makes an ACL entry of perms for scheme:id.
func acl(perms int32, text string) wire.ACL {
	scheme, id, _ := strings.Cut(text, ":")
	return wire.ACL{Perms: perms, ID: wire.ID{Scheme: scheme, ID: id}}
}

func id(text string) wire.ID { return acl(0, text).ID }

func (w *world) stat(path string) wire.Stat {
	w.Helper()
	var out wire.StatResponse
	if code := w.tree.Exists(&conn{ids: []wire.ID{{Scheme: "super"}}}, path, false, &out); code != wire.OK {
		w.Fatalf("stat of %s: %v", path, code)
	}
	return out.Stat
}

func (w *world) exists(path string) bool {
	return w.tree.Exists(&conn{}, path, false, new(wire.StatResponse)) != wire.ErrNoNode
}

// dump returns every persisted field of the tree as text, for comparison. It leaves out
// the usage of quotas: loading a snapshot counts the usage again, and a client may have
// overwritten it before.
func dump(t *Tree) []string {
	var out []string
	s := t.Snapshot()
	s.Sessions(func(id wire.SessionID, timeoutMS int32) error {
		out = append(out, fmt.Sprintf("session %v %d", id, timeoutMS))
		return nil
	})
	lists := map[int64][]wire.ACL{openKey: wire.OpenACL()}
	s.ACLs(func(key int64, acl []wire.ACL) error {
		lists[key] = acl
		return nil
	})
	var usage int64
	s.Nodes(func(path string, n *record.DataNode) error {
		if strings.HasSuffix(path, "/"+quota.StatsName) {
			usage += int64(len(n.Data))
			n.Data = nil
		}
		out = append(out, fmt.Sprintf("%s %q null=%v %v %+v", path, n.Data, n.Data == nil, lists[n.ACL], n.Stat))
		return nil
	})
	c := t.Counts()
	c.Watches, c.WatchPaths, c.Watchers = 0, 0, 0
	c.DataBytes -= usage
	slices.Sort(out)
	z, digest := t.Digest()
	out = append(out, fmt.Sprintf("%+v zxid %v digest %d owned %v", c, z, digest, t.EphemeralsBySession()))
	return out
}

// diff returns the first line in which two dumps differ, empty if they are equal.
func diff(a, b []string) string {
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("\n%s\n%s", x, y)
		}
	}
	return ""
}

// recomputed returns the digest of the tree, computed from all its znodes.
func recomputed(t *Tree) uint64 {
	var sum uint64
	walk(t.root, func(n *node) {
		path := t.path(n)
		if !outsideDigest(path) {
			s := n.persisted()
			sum += t.finish(t.crcOf(path, n.data()), &s)
		}
	})
	return sum
}
