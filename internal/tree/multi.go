package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// prepareMulti prepares the operations one after the other, each over the earlier ones.
// If one fails, the changes of the earlier ones are rolled back, and the transaction,
// which is logged all the same, says so. If one fails with ErrMarshalling the whole
// request fails with it.
//
// A create2 is stored as a create, because the tree does the same for both, and servers
// of ZooKeeper 3.8.0 and 3.8.1 silently ignore a create2 in a multi.
func (p *proposal) prepareMulti(req *Request) (wire.OpCode, record.TxnBody, wire.Code) {
	var r wire.MultiRequest
	if decode(wire.OpMulti, req.Body, &r) != wire.OK || !allWrites(r.Ops) {
		return wire.OpMulti, nil, wire.ErrMarshalling
	}
	if code := p.checkSession(); code != wire.OK {
		return wire.OpMulti, nil, code
	}
	p.multi, req.Plain = true, plainCreates(r.Ops)
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
// ZooKeeper refuses the whole request instead of one operation. The flags of a createTTL
// are checked later.
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

// multiType returns the type of an operation. Only within a multi, the container flag
// makes an ordinary create one of a container.
func multiType(op wire.Op) wire.OpCode {
	if r, ok := op.Request.(*wire.CreateRequest); ok && r.Flags == wire.FlagContainer {
		return wire.OpCreateContainer
	}
	return op.Type
}

// applyMulti applies all operations in their order under one zxid, or none. Each create
// is answered as a create2; AsAsked turns the result into that of the request.
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

// subResult turns the result of an operation into one of a multi's results.
func subResult(op wire.OpCode, r Result) wire.OpResult {
	switch {
	case r.Err != wire.OK:
		return wire.OpResult{Type: wire.OpError, Err: r.Err}
	case op == wire.OpCreateContainer || op == wire.OpCreateTTL:
		op = wire.OpCreate2
	}
	return wire.OpResult{Type: op, Response: r.Response}
}

// AsAsked gives the results of a multi the types of its request: a create is
// answered without a stat, a create2 with one, and the transaction says the same of
// both. plain tells which operations are creates; Prepare sets it, or PlainCreates
// finds it.
func AsAsked(m *wire.MultiResponse, plain []bool) {
	for i := range min(len(m.Results), len(plain)) {
		if r, ok := m.Results[i].Response.(*wire.PathStatResponse); ok && plain[i] {
			m.Results[i] = wire.OpResult{Type: wire.OpCreate, Response: &wire.PathResponse{Path: r.Path}}
		}
	}
}

// PlainCreates decodes the body of a multi that another server has prepared, and
// reports which of its operations are creates that are answered without a stat; nil:
// none, or the body cannot be decoded.
func PlainCreates(body []byte) []bool {
	var r wire.MultiRequest
	if decode(wire.OpMulti, body, &r) != wire.OK {
		return nil
	}
	return plainCreates(r.Ops)
}

func plainCreates(ops []wire.Op) []bool {
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
