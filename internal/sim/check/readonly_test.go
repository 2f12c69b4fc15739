package check

import (
	"bellwether/internal/replica"
	"bellwether/wire"
)

func onlyCommittedOf(h *History) Checker { return onlyCommitted{h} }

// readsAlone says that a server answers a read at a zxid without a quorum, with the tree of the history.
func readsAlone(h *History, at wire.Zxid) ReadAlone {
	return ReadAlone{Server: a, Zxid: at, Digest: h.Last().Digest}
}

var brokenReadOnly = []broken{
	{"a server without a quorum shows what is not committed", onlyCommittedOf, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{readsAlone(h, z(1, 1)), readsAlone(h, z(1, 2))}
	}},
	{"a server without a quorum shows another tree", onlyCommittedOf, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		wrong := readsAlone(h, z(1, 1))
		wrong.Digest++
		return []any{readsAlone(h, z(1, 1)), wrong}
	}},
	{"a server that serves answers a read-only session", onlyCommittedOf, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		serves := readsAlone(h, z(1, 1))
		serves.Standing = replica.Status{Serving: true}
		return []any{readsAlone(h, z(1, 1)), serves}
	}},
	{"a server without a quorum carries out a write", onlyCommittedOf, func(*History) []any { return answersAlone(wire.OpSetData) }},
	{"a server without a quorum answers a sync", onlyCommittedOf, func(*History) []any { return answersAlone(wire.OpSync) }},
}

// answersAlone are answers of a server without a quorum: to a read, to a request that it refuses, and to one that it does not.
func answersAlone(op wire.OpCode) []any {
	answer := func(op wire.OpCode, err wire.Code) Answered {
		return Answered{Request: Request{Op: op}, NoQuorum: true, Header: wire.ReplyHeader{Err: err}}
	}
	return []any{answer(wire.OpGetData, wire.OK), answer(op, wire.ErrNotReadOnly), answer(op, wire.OK)}
}
