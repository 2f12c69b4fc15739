package tree

import "bellwether/wire"

// prepareMulti prepares the operations one after the other, each over the
// earlier ones. The first that fails ends it: what the earlier ones changed
// is taken back, and the transaction, which is logged all the same, says so.
func (p *proposal) prepareMulti(body []byte) (wire.OpCode, wire.TxnBody, wire.Code) {
	var r wire.MultiRequest
	if decode(wire.OpMulti, body, &r) != wire.OK || !allWrites(r.Ops) {
		return wire.OpMulti, nil, wire.ErrMarshalling
	}
	if code := p.checkSession(); code != wire.OK {
		return wire.OpMulti, nil, code
	}
	p.multi = true
	start := p.mark()
	txn := &wire.MultiTxn{Ops: make([]wire.SubTxn, len(r.Ops))}
	for i, op := range r.Ops {
		sub, body, code := p.one(multiType(op), op.Request)
		if code != wire.OK {
			p.rollback(start)
			fail(txn.Ops[i:], code)
			break
		}
		txn.Ops[i] = wire.SubTxn{Type: sub, Body: body}
	}
	return wire.OpMulti, txn, wire.OK
}

// fail marks the operation that failed and those behind it.
func fail(ops []wire.SubTxn, code wire.Code) {
	for i := range ops {
		ops[i] = wire.SubTxn{Type: wire.OpError, Body: &wire.ErrorTxn{Err: code}}
		code = wire.ErrRuntimeInconsistency
	}
}

// allWrites refuses reads, and flags for which ZooKeeper refuses the whole
// request instead of one operation.
func allWrites(ops []wire.Op) bool {
	for _, op := range ops {
		switch r := op.Request.(type) {
		case *wire.CreateRequest:
			if r.Flags < wire.FlagPersistent || r.Flags > wire.FlagContainer {
				return false
			}
		case *wire.CreateTTLRequest:
			if r.Flags < wire.FlagPersistent || r.Flags > wire.FlagPersistentSequentialTTL {
				return false
			}
		case *wire.PathWatchRequest:
			return false
		}
	}
	return true
}

// multiType: within a multi, and there alone, the container flag of an
// ordinary create makes a container.
func multiType(op wire.Op) wire.OpCode {
	if r, ok := op.Request.(*wire.CreateRequest); ok && r.Flags == wire.FlagContainer {
		return wire.OpCreateContainer
	}
	return op.Type
}

// applyMulti applies the operations in their order under one zxid, or none.
func (t *Tree) applyMulti(m *wire.MultiTxn, h *wire.TxnHeader) Result {
	response := &wire.MultiResponse{Results: make([]wire.OpResult, 0, len(m.Ops))}
	failed := m.Failed()
	for _, op := range m.Ops {
		if !failed {
			sub := *h
			sub.Type = op.Type
			response.Results = append(response.Results, subResult(op.Type, t.applyBody(op.Body, &sub)))
			continue
		}
		result := wire.OpResult{Type: wire.OpError}
		if e, ok := op.Body.(*wire.ErrorTxn); ok {
			result.Err = e.Err
		}
		response.Results = append(response.Results, result)
	}
	return Result{Zxid: h.Zxid, Response: response}
}

// subResult turns an operation's own result into one of a multi's.
func subResult(op wire.OpCode, r Result) wire.OpResult {
	switch {
	case r.Err != wire.OK:
		return wire.OpResult{Type: wire.OpError, Err: r.Err}
	case op == wire.OpCreateContainer || op == wire.OpCreateTTL:
		op = wire.OpCreate2
	}
	return wire.OpResult{Type: op, Response: r.Response}
}
