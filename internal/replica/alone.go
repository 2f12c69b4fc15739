package replica

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// alone is what stands in the place of Zab on a standalone server: its own
// synced log is the quorum.
type alone struct {
	proposed   wire.Zxid // the last zxid given out
	durable    wire.Zxid // the last one that is committed
	generation uint64
	full       bool // the log has no room: writes are refused
	room       bool // there is room again, but committed ones are still to be applied
	inflight   fifo.Queue[*record.Txn]
	append     []*record.Txn
}

func newAlone(last wire.Zxid) *alone {
	return &alone{proposed: last, durable: last, generation: 1}
}

func (r *Replica) stepAlone(e Event) {
	switch e := e.(type) {
	case Synced:
		r.alone.synced(e)
	case LogFull:
		r.logFull(e)
	case LogFree:
		r.logFree()
	}
}

func (a *alone) propose(txn *record.Txn) {
	a.proposed = txn.Zxid
	a.inflight.Push(txn)
	a.append = append(a.append, txn)
}

func (a *alone) ready() Ready {
	rd := Ready{Wake: Never, Dial: peerwire.NoServer}
	if len(a.append) > 0 {
		rd.Duties = []Duty{{Append: a.append, Generation: a.generation}}
	}
	a.append = nil
	return rd
}

// synced commits what has become durable; Next applies it.
func (a *alone) synced(e Synced) {
	if e.Generation == a.generation && e.Zxid > a.durable {
		a.durable = min(e.Zxid, a.proposed)
	}
}

// nextAlone applies the next committed transaction; false if there is none.
func (r *Replica) nextAlone() bool {
	a := r.alone
	p := a.inflight.First()
	if p == nil && a.room {
		r.resume()
		return r.outputs.Len() > 0
	}
	if p == nil || (*p).Zxid > a.durable {
		return false
	}
	r.apply(a.inflight.Pop())
	return true
}
