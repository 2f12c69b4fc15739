package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// prepareMulti prepares the operations one after the other, each over the effects of the
// earlier ones. If an operation fails, the changes of the earlier ones are rolled back;
// the transaction is logged all the same and records the failure. If an operation fails
// with ErrMarshalling, the whole request fails with that code.
//
// A create2 is stored as a create, because the tree does the same for both, and servers
// of ZooKeeper 3.8.0 and 3.8.1 silently ignore a create2 in a multi.
func (p *proposal) prepareMulti(req *Request) (wire.OpCode, record.TxnBody, wire.Code) {
	r := req.Multi
	if r == nil {
		r = DecodeMulti(req.Body)
	}
	if r == nil || !allWrites(r.Ops) {
		return wire.OpMulti, nil, wire.ErrMarshalling
	}
	if code := p.checkSession(); code != wire.OK {
		return wire.OpMulti, nil, code
	}
	p.multi, req.WithoutStat = true, createsWithoutStat(r.Ops)
	start := p.mark()
	txn := &record.MultiTxn{Ops: make([]record.SubTxn, len(r.Ops))}
	for i, op := range r.Ops {
		p.t.mayYield(i)
		sub, body, code := p.one(multiType(op), op.Request)
		if code != wire.OK {
			p.rollback(start)
			if code == wire.ErrMarshalling {
				return wire.OpMulti, nil, code
			}
			fail(txn.Ops[i:], code)
			break
		}
		if sub == wire.OpCreate2 {
			sub = wire.OpCreate
		}
		txn.Ops[i] = record.SubTxn{Type: sub, Body: body}
	}
	return wire.OpMulti, txn, wire.OK
}

// fail marks the operation that failed and those after it.
func fail(ops []record.SubTxn, code wire.Code) {
	for i := range ops {
		ops[i] = record.SubTxn{Type: wire.OpError, Body: &record.ErrorTxn{Err: code}}
		code = wire.ErrRuntimeInconsistency
	}
}

// allWrites reports whether all operations are writes, and no create has flags for which
// ZooKeeper refuses the whole request and not only the operation. The flags of a
// createTTL are checked later.
func allWrites(ops []wire.Op) bool {
	for _, op := range ops {
		switch r := op.Request.(type) {
		case *wire.CreateRequest:
			if r.Flags < wire.FlagPersistent || r.Flags > wire.FlagContainer {
				return false
			}
		case *wire.PathWatchRequest:
			return false
		}
	}
	return true
}

// multiType returns the type of an operation. An ordinary create with the container flag
// makes a container, but only within a multi.
func multiType(op wire.Op) wire.OpCode {
	if r, ok := op.Request.(*wire.CreateRequest); ok && r.Flags == wire.FlagContainer {
		return wire.OpCreateContainer
	}
	return op.Type
}

// applyMulti applies all operations in their order under one zxid, or none of them. The
// result of each create has the form of a create2; RestoreCreateTypes gives it the form
// that the request asked for.
func (t *Tree) applyMulti(m *record.MultiTxn, h *record.TxnHeader) Result {
	if t.unanswered {
		t.replayMulti(m, h)
		return Result{Zxid: h.Zxid}
	}
	response := &wire.MultiResponse{Results: make([]wire.OpResult, 0, len(m.Ops))}
	failed := m.Failed()
	for i, op := range m.Ops {
		t.mayYield(i)
		if !failed {
			sub := *h
			if sub.Type = op.Type; op.Type == wire.OpCreate {
				sub.Type = wire.OpCreate2
			}
			response.Results = append(response.Results, subResult(sub.Type, t.applyBody(op.Body, &sub)))
			continue
		}
		result := wire.OpResult{Type: wire.OpError}
		if e, ok := op.Body.(*record.ErrorTxn); ok {
			result.Err = e.Err
		}
		response.Results = append(response.Results, result)
	}
	return Result{Zxid: h.Zxid, Response: response}
}

func (t *Tree) replayMulti(m *record.MultiTxn, h *record.TxnHeader) {
	if m.Failed() {
		return
	}
	for i, op := range m.Ops {
		t.mayYield(i)
		sub := *h
		sub.Type = op.Type
		t.applyBody(op.Body, &sub)
	}
}

// subResult turns the Result of one operation into its entry in the reply to the multi.
func subResult(op wire.OpCode, r Result) wire.OpResult {
	switch {
	case r.Err != wire.OK:
		return wire.OpResult{Type: wire.OpError, Err: r.Err}
	case op == wire.OpCreateContainer || op == wire.OpCreateTTL:
		op = wire.OpCreate2
	}
	return wire.OpResult{Type: op, Response: r.Response}
}

// RestoreCreateTypes gives the results of a multi the types of its request. The result of
// a create has no stat and that of a create2 has one, but the transaction does not
// distinguish them. plain says which operations are creates; Prepare sets it
// (Request.WithoutStat), and CreatesWithoutStat computes it.
func RestoreCreateTypes(m *wire.MultiResponse, plain []bool) {
	for i := range min(len(m.Results), len(plain)) {
		if r, ok := m.Results[i].Response.(*wire.PathStatResponse); ok && plain[i] {
			m.Results[i] = wire.OpResult{Type: wire.OpCreate, Response: &wire.PathResponse{Path: r.Path}}
		}
	}
}

// DecodeMulti decodes the body of a multi. It returns nil if the body cannot be decoded. The
// result keeps parts of the body.
func DecodeMulti(body []byte) *wire.MultiRequest {
	r := new(wire.MultiRequest)
	if decode(wire.OpMulti, body, r) != wire.OK {
		return nil
	}
	return r
}

// CreatesWithoutStat reports which operations of a multi that another server has prepared are
// creates whose results have no stat; nil: there are none, or m is nil.
func CreatesWithoutStat(m *wire.MultiRequest) []bool {
	if m == nil {
		return nil
	}
	return createsWithoutStat(m.Ops)
}

func createsWithoutStat(ops []wire.Op) []bool {
	var plain []bool
	for i, op := range ops {
		if multiType(op) != wire.OpCreate {
			continue
		}
		if plain == nil {
			plain = make([]bool, len(ops))
		}
		plain[i] = true
	}
	return plain
}
