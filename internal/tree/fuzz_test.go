package tree

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// seeds returns requests of every kind.
func seeds() []*Request {
	return []*Request{
		create("/a", 0), create("/a/b-", 3), container("/c"), createTTL("/t", 5, 10), setData("/a", "x", -1), remove("/a", -1),
		setACL("/a", -1, acl(31, "digest:a:b"), acl(1, "ip:1.2.3.4/8"), acl(1, "x509:CN=a,O=\"b\"")),
		multi(opCreate("/m", 0), opCheck("/m", 0), opSet("/m", "y", 0), opDelete("/m")), multi(opCheck("/no", 0), opCreate("/m", 1)),
		closeSession(alice), deleteContainer("/c"), request(wire.OpReconfig, &wire.ReconfigRequest{}),
		{Session: bob, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}},
		create("/zookeeper/quota/zookeeper_limits", 0), create("/zookeeper/quota/zookeeper_stats", 0), create("/", 2),
	}
}

// FuzzPrepare: no request body causes a panic. Each resulting transaction can be encoded
// and decoded, and leaves a consistent tree.
func FuzzPrepare(f *testing.F) {
	for _, req := range seeds() {
		f.Add(int32(req.Op), req.Body, []byte{})
	}
	f.Fuzz(func(t *testing.T, op int32, first, second []byte) {
		l := newLeader(1)
		for _, req := range seeds() {
			if txn := l.prepare(req); txn != nil {
				l.tree.Apply(txn)
			}
		}
		for _, body := range [][]byte{first, second} {
			txn := l.prepare(&Request{Session: bob, Op: wire.OpCode(op), Body: body, Identities: []wire.ID{id("digest:a:b")}})
			if txn == nil {
				continue
			}
			back, err := record.DecodeTxn(txn.Append(nil))
			if err != nil {
				t.Fatalf("%+v: %v", txn, err)
			}
			l.tree.Apply(back)
		}
		audit(t, l.tree)
	})
}

// FuzzApply: no decodable transaction causes a panic, even if it makes no sense. The tree
// can be saved and loaded afterwards.
func FuzzApply(f *testing.F) {
	l := newLeader(1)
	for _, req := range seeds() {
		if txn := l.prepare(req); txn != nil {
			l.tree.Apply(txn)
			f.Add(txn.Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		txn, err := record.DecodeTxn(b)
		if err != nil {
			return
		}
		txn.Digest = nil
		l := newLeader(1)
		for _, req := range []*Request{create("/a", 0), create("/a/b", 1), container("/c"), create("/c/kid", 0)} {
			l.tree.Apply(l.prepare(req))
		}
		l.tree.Apply(txn)
		l.tree.Apply(txn)
		audit(t, l.tree)
		copied := New(Options{})
		load(t, l.tree.Snapshot(), copied, func() {})
	})
}
