package replica

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// standalone takes the place of Zab on a standalone server. A transaction is committed as soon
// as it is durable in the server's own log. Invariant: durable <= proposed, and inflight
// holds the transactions that are proposed and not applied, in the order of their zxids.
type standalone struct {
	proposed   wire.Zxid // the zxid of the last transaction that was proposed
	durable    wire.Zxid // the zxid of the last transaction that is committed
	generation uint64
	full       bool // the log has no space: writes are refused
	room       bool // there is space again, but committed transactions still have to be applied
	inflight   fifo.Queue[*record.Txn]
	append     []*record.Txn
}

func newStandalone(last wire.Zxid) *standalone {
	return &standalone{proposed: last, durable: last, generation: 1}
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

func (a *standalone) propose(txn *record.Txn) {
	a.proposed = txn.Zxid
	a.inflight.Push(txn)
	a.append = append(a.append, txn)
}

func (a *standalone) ready() Ready {
	rd := Ready{Wake: Never, Dial: peerwire.NoServer}
	if len(a.append) > 0 {
		rd.Duties = []Duty{{Append: a.append, Generation: a.generation}}
	}
	a.append = nil
	return rd
}

// Restore replaces the tree of a standalone server by a restored one, which begins a history
// of its own and is durable. All connections are forgotten: the driver ends them, so the
// outcome of the requests that are not answered is unknown to their clients. The log must be
// done with everything that was proposed before.
func (r *Replica) Restore(t *tree.Tree) {
	for _, c := range r.conns {
		r.drop(c)
	}
	clear(r.creating)
	r.tree = t
	t.OnYield(r.opt.Yield)
	r.locals = newLocals(r.opt.TickMS)
	r.track()
	generation := r.alone.generation
	r.alone = newStandalone(t.LastZxid())
	r.alone.generation = generation + 1
	r.grace = r.now.Mono
}

// synced commits the transactions that have become durable. Next applies them.
func (a *standalone) synced(e Synced) {
	if e.Generation == a.generation && e.Zxid > a.durable {
		a.durable = min(e.Zxid, a.proposed)
	}
}

// nextAlone applies the next committed transaction and reports whether there was one.
func (r *Replica) nextAlone() bool {
	a := r.alone
	p := a.inflight.First()
	if p == nil && a.room {
		r.acceptWrites()
		return r.outputs.Len() > 0
	}
	if p == nil || (*p).Zxid > a.durable {
		return false
	}
	r.apply(a.inflight.Pop())
	return true
}
