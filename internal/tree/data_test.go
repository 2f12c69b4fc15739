package tree

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

func TestSetDataErrorOrder(t *testing.T) {
	w := newWorld(t, Options{EnforceQuota: true})
	w.ok(createACL("/closed", acl(31&^2, "world:anyone")))
	w.ok(create("/q", 0))
	w.setQuota("/q", "count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=-1")
	const dead = wire.SessionID(99)
	null := &Request{Session: alice, Op: wire.OpSetData, Body: []byte{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}}
	for _, row := range []struct {
		name string
		req  *Request
		want wire.Code
	}{
		{"cut short", &Request{Session: dead, Op: wire.OpSetData, Body: []byte{0}}, wire.ErrMarshalling},
		{"null path", null, wire.ErrBadArguments},
		{"session", setData("nope", "", 7).by(dead), wire.ErrSessionExpired},
		{"path", setData("/missing/", "", 7), wire.ErrBadArguments},
		{"empty path", setData("", "", 7), wire.ErrBadArguments},
		{"existence", setData("/missing", "", 7), wire.ErrNoNode},
		{"permission", setData("/closed", "", 7), wire.ErrNoAuth},
		{"quota before version", setData("/q", "too much", 7), wire.ErrQuotaExceeded},
		{"version", setData("/q", "", 7), wire.ErrBadVersion},
		{"version -2", setData("/q", "", -2), wire.ErrBadVersion},
		{"fine", setData("/q", "12345", 0), wire.OK},
		{"the same again", setData("/q", "12345", 1), wire.OK},
		{"root", setData("/", "root", 0), wire.OK},
		{"below zookeeper", setData("/zookeeper", "", -1), wire.OK},
		{"less, over the limit", setData("/q", "1", 2), wire.OK},
	} {
		w.expect(row.name, row.req, row.want)
	}
	if v := w.stat("/q").Version; v != 3 {
		t.Errorf("version %d", v)
	}
}

// TestVersionNeverMinusOne_ZOOKEEPER_4743: a version that wraps around skips -1. With
// version -1 every conditional write would succeed.
func TestVersionNeverMinusOne_ZOOKEEPER_4743(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/n", 0))
	n := w.tree.find("/n")
	w.tree.digest -= w.tree.sum(n)
	n.version, n.aversion = -3, -2
	w.tree.digest += w.tree.sum(n)
	w.ok(setData("/n", "a", -3))
	w.expect("old version", setData("/n", "b", -3), wire.ErrBadVersion)
	w.ok(multi(opCheck("/n", -2), opSet("/n", "b", -2), opCheck("/n", 0), opSet("/n", "c", 0)))
	if v := w.stat("/n").Version; v != 1 {
		t.Errorf("version %d after two writes to version -2, want 1", v)
	}
	w.ok(setACL("/n", -2, wire.OpenACL()...))
	if v := w.stat("/n").Aversion; v != 0 {
		t.Errorf("ACL version %d after version -2, want 0", v)
	}
}

// TestCheckOnlyInMulti_ZOOKEEPER_2623: a check outside a multi is an unknown operation
// and proposes nothing.
func TestCheckOnlyInMulti_ZOOKEEPER_2623(t *testing.T) {
	w := newWorld(t, Options{})
	txn, code := w.prepare(request(wire.OpCheck, &wire.PathVersionRequest{Path: "/", Version: 0}))
	if txn != nil || code != wire.ErrUnimplemented {
		t.Errorf("check: %v, %v", txn, code)
	}
}

// TestNoWrites: a request that is not a write proposes nothing.
func TestNoWrites(t *testing.T) {
	w := newWorld(t, Options{})
	for _, op := range []wire.OpCode{wire.OpGetData, wire.OpSync, wire.OpPing, wire.OpError, 0, 77, wire.OpMultiRead} {
		if txn, code := w.prepare(&Request{Session: alice, Op: op}); txn != nil || code != wire.ErrUnimplemented {
			t.Errorf("%v: %v, %v", op, txn, code)
		}
	}
}

// TestReconfigStandalone: a standalone server refuses reconfigurations.
func TestReconfigStandalone(t *testing.T) {
	for _, row := range []struct {
		on      bool
		session wire.SessionID
		want    wire.Code
	}{
		{false, alice, wire.ErrReconfigDisabled}, {true, alice, wire.ErrUnimplemented}, {true, 99, wire.ErrSessionExpired},
	} {
		w := newWorld(t, Options{Reconfig: row.on})
		w.expect("reconfig", request(wire.OpReconfig, &wire.ReconfigRequest{ConfigID: -1}).by(row.session), row.want)
	}
	w := newWorld(t, Options{})
	w.expect("cut short", &Request{Session: alice, Op: wire.OpReconfig}, wire.ErrMarshalling)
}

// TestReconfigTransaction: the transaction of a reconfiguration is prepared and applied
// as in an ensemble.
func TestReconfigTransaction(t *testing.T) {
	w := newWorld(t, Options{})
	c := &conn{}
	w.tree.GetData(c, configPath, true, new(wire.DataResponse))
	c.take()
	w.z++
	res := w.apply(&record.Txn{
		TxnHeader: record.TxnHeader{Zxid: w.z, Type: wire.OpReconfig, Time: 5},
		Body:      &record.SetDataTxn{Path: configPath, Data: []byte("server.1=x"), Version: -1},
	})
	r, ok := res.Response.(*wire.DataResponse)
	if !ok || string(r.Data) != "server.1=x" || r.Stat.Version != -1 || r.Stat.Mzxid != w.z {
		t.Errorf("answers %+v", res)
	}
	if e := c.events(); len(e) != 1 || e[0] != "NodeDataChanged /zookeeper/config 3" {
		t.Errorf("events %v", e)
	}
}

// TestRequestAfterAPendingReconfig: a request that is prepared before a reconfiguration is applied finds the configuration
// znode as the reconfiguration leaves it, with version -1.
func TestRequestAfterAPendingReconfig(t *testing.T) {
	w := newWorld(t, Options{Reconfig: true, SkipACL: true})
	w.ok(setData(configPath, "server.1=x", -1))
	version := w.stat(configPath).Version
	reconfig := request(wire.OpReconfig, &wire.ReconfigRequest{ConfigID: -1})
	reconfig.Reconfigure = func(*wire.ReconfigRequest, bool, wire.Zxid) (string, wire.Code) { return "server.1=y", wire.OK }
	txn, code := w.prepare(reconfig)
	if code != wire.OK || version == -1 {
		t.Fatalf("%v, version %d before", code, version)
	}
	set, _ := w.prepare(setData(configPath, "server.1=z", version))
	if e, ok := set.Body.(*record.ErrorTxn); !ok || e.Err != wire.ErrBadVersion {
		t.Errorf("before the reconfiguration is applied, version %d is taken: %+v", version, set.Body)
	}
	if w.apply(txn); w.stat(configPath).Version != -1 {
		t.Errorf("version %d", w.stat(configPath).Version)
	}
}
