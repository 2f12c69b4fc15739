package tree

import (
	"errors"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Prepare turns a request into the transaction with the given zxid and time (ms since
// 1970). A request that must fail becomes an error transaction, even if it cannot be
// decoded. If the returned transaction is nil, nothing is proposed and z is not used.
// Then the server answers the request with the returned code and the current zxid, or
// drops it if it came from the server itself. The code is ErrUnimplemented if the request
// is not a write, and ErrMarshalling if it is a reconfig or a createSession that cannot be
// decoded.
//
// Session 0 is the server itself (deleteContainer). The body of a createSession is the
// timeout in ms as an int32; that of a closeSession is ignored.
func (t *Tree) Prepare(req *Request, z wire.Zxid, nowMS int64) (*record.Txn, wire.Code) {
	if t.pend.touched.Len() == 0 {
		t.pend.digest = t.digest
	}
	p := proposal{t: t, zxid: z, now: nowMS, session: req.Session, ids: req.Identities, reconfigure: req.Reconfigure}
	p.local = req.Local && !t.open(req.Session)
	op, body, code := p.prepare(req)
	switch {
	case op == wire.OpError, code != wire.OK && (op == wire.OpDeleteContainer || op == wire.OpCloseSession),
		code == wire.ErrMarshalling && (op == wire.OpReconfig || op == wire.OpCreateSession):
		return nil, code
	case code != wire.OK:
		return &record.Txn{TxnHeader: p.header(req, wire.OpError), Body: &record.ErrorTxn{Err: code}}, wire.OK
	}
	txn := &struct {
		record.Txn
		digest record.TxnDigest
	}{Txn: record.Txn{TxnHeader: p.header(req, op), Body: body}}
	if !t.o.DigestOff {
		txn.digest = record.TxnDigest{Version: record.DigestVersion, Tree: t.pend.digest}
		txn.Digest = &txn.digest
	}
	return &txn.Txn, wire.OK
}

func (p *proposal) header(req *Request, op wire.OpCode) record.TxnHeader {
	return record.TxnHeader{Session: req.Session, Cxid: req.Cxid, Zxid: p.zxid, Time: p.now, Type: op}
}

// prepare returns the transaction's type and body. The type OpError means that the
// operation has no transaction.
func (p *proposal) prepare(req *Request) (wire.OpCode, record.TxnBody, wire.Code) {
	switch req.Op {
	case wire.OpCreateSession:
		body, code := p.t.prepareCreateSession(p, req.Body)
		return req.Op, body, code
	case wire.OpCloseSession:
		body, code := p.t.prepareCloseSession(p)
		return req.Op, body, code
	case wire.OpMulti:
		return p.prepareMulti(req)
	}
	rec := newRequest(req.Op)
	if rec == nil {
		return wire.OpError, nil, wire.ErrUnimplemented
	}
	if code := decode(req.Op, req.Body, rec); code != wire.OK {
		return req.Op, nil, code
	}
	return p.one(req.Op, rec)
}

// newRequest returns an empty record for a write, nil for anything else.
func newRequest(op wire.OpCode) wire.Record {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		return new(wire.CreateRequest)
	case wire.OpCreateTTL:
		return new(wire.CreateTTLRequest)
	case wire.OpDelete:
		return new(wire.PathVersionRequest)
	case wire.OpDeleteContainer:
		return new(wire.PathRequest)
	case wire.OpSetData:
		return new(wire.SetDataRequest)
	case wire.OpSetACL:
		return new(wire.SetACLRequest)
	case wire.OpReconfig:
		return new(wire.ReconfigRequest)
	}
	return nil
}

// decode decodes a request from its body; the record keeps parts of the body. A setData
// without a path fails with the code for a bad path, not as undecodable.
func decode(op wire.OpCode, body []byte, rec wire.Record) wire.Code {
	c := wire.Decoder(body)
	c.Alias = true
	rec.Code(&c)
	switch err := c.Err(); {
	case err == nil:
		return wire.OK
	case op == wire.OpSetData && errors.Is(err, wire.ErrNull):
		return wire.ErrBadArguments
	}
	return wire.ErrMarshalling
}

// one prepares one operation, which may be part of a multi.
func (p *proposal) one(op wire.OpCode, rec wire.Record) (wire.OpCode, record.TxnBody, wire.Code) {
	switch r := rec.(type) {
	case *wire.CreateRequest:
		return p.prepareCreate(op, r, -1)
	case *wire.CreateTTLRequest:
		return p.prepareCreate(op, &r.CreateRequest, r.TTL)
	case *wire.SetDataRequest:
		return p.prepareSetData(r)
	case *wire.SetACLRequest:
		return p.prepareSetACL(r)
	case *wire.PathRequest:
		return p.prepareDeleteContainer(r)
	case *wire.ReconfigRequest:
		return p.prepareReconfig(r)
	case *wire.PathVersionRequest:
		if op == wire.OpCheck {
			return p.prepareCheck(r)
		}
		return p.prepareDelete(r)
	}
	return op, nil, wire.ErrUnimplemented
}

// checkSession refuses requests of sessions that are closing or do not exist. It accepts
// an operation within a multi, because prepareMulti has checked the session of the whole
// request.
func (p *proposal) checkSession() wire.Code {
	if p.multi || p.local || p.t.open(p.session) {
		return wire.OK
	}
	return wire.ErrSessionExpired
}

// nextVersion returns the version after v. It is never -1, which in a request means any
// version (ZooKeeper lets versions wrap to -1; ZOOKEEPER-4743).
func nextVersion(v int32) int32 {
	if v == -2 {
		return 0
	}
	return v + 1
}

// versionFits reports whether the version that a request asks for is the znode's.
func versionFits(want, have int32) bool { return want == -1 || want == have }
