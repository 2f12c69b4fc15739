package sim

import (
	"errors"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// electionPath is the znode below which all candidates bid.
const electionPath = "/election"

// candidate stands for election, or in another line, over its client's
// session, bid after bid.
type candidate struct {
	c      *client
	line   bidder
	parent string // of the bid
	shared bool   // it is a reader's
	lease  claim.Lease
	eager  bool // pings every tenth of the timeout
	alarm  int64
	round  int // of requests: an answer to an earlier one means nothing
}

func newCandidate(c *client) *candidate {
	k := &candidate{c: c}
	k.bid()
	return k
}

func (k *candidate) now() claim.Moment { return k.c.clock.moment(k.c.sim.now) }

// attached begins with what the connection itself proves; how long a server
// may be mistaken about a session it has to be asked.
func (k *candidate) attached() {
	c := k.c
	timeout := time.Duration(c.timeoutMS) * time.Millisecond
	tick := time.Duration(c.sim.opt.TickMS) * time.Millisecond
	sent := k.now()
	back := time.Duration(c.mono()-c.helloAt+1) * time.Millisecond
	sent.Mono -= back
	sent.Wall -= back
	k.lease = claim.Lease{Sent: sent, Timeout: timeout, Delay: 7 * tick}
	c.send(&call{op: wire.OpSync, body: wire.Append(nil, &wire.PathRequest{Path: wire.LeaseQuestion}), then: func(r *response) {
		if r == nil || r.header.Err != wire.OK {
			return
		}
		if p, ok := r.record.(*wire.NullPathResponse); ok {
			if ms, ok := wire.ParseLeaseAnswer(p.Path.String); ok {
				k.lease.Delay = time.Duration(ms) * time.Millisecond
			}
		}
		k.step(claim.Attached{Session: c.session, Lease: k.lease})
	}})
}

// proven: a ping that was sent at that moment has been answered.
func (k *candidate) proven(at claim.Moment) {
	k.lease.Sent = at
	k.step(claim.Confirmed{Lease: k.lease})
	k.c.sim.see(termProven{k})
}

func (k *candidate) disconnected() { k.step(claim.Disconnected{}) }
func (k *candidate) expired()      { k.step(claim.Expired{}) }

// step hands an event to the bid and does what comes of it.
func (k *candidate) step(ev claim.Event) {
	k.line.Step(k.now(), ev)
	rd, st := k.line.Ready(), k.line.State()
	for _, h := range rd.Happenings {
		k.c.sim.tell("candidate %d: %v", k.c.id, h)
		if h, leads := h.(claim.Leads); leads {
			k.began(h)
		}
	}
	k.eager = rd.KeepAlive
	if rd.Request != nil {
		k.round++
		k.carryOut(k.round, *rd.Request, nil)
	}
	if st.Phase == claim.Done {
		k.line = nil
		k.bid()
		k.c.sim.after(k.c.dice.below(k.pauseMax()), func() {
			if k.c.attached && !k.c.silent && k.line.State().Phase == claim.Joining {
				k.step(claim.Attached{Session: k.c.session, Lease: k.lease})
			}
		})
		return
	}
	k.wake(rd.Wake)
}

// wake steps a tick when the bid wants one.
func (k *candidate) wake(in time.Duration) {
	if in == 0 {
		return
	}
	at := k.c.sim.now + int64(in/time.Microsecond)
	if k.alarm > k.c.sim.now && k.alarm <= at {
		return
	}
	k.alarm = at
	k.c.sim.at(at, func() {
		if k.alarm == at && !k.c.silent {
			k.alarm = 0
			k.step(claim.Tick{})
		}
	})
}

// carryOut carries out the operations of a request, one after the other.
func (k *candidate) carryOut(round int, req claim.Request, done []claim.Result) {
	if len(done) == len(req.Ops) {
		if k.round == round {
			k.step(claim.Reply{N: req.N, Results: done})
		}
		return
	}
	next := func(r claim.Result) { k.carryOut(round, req, append(done, r)) }
	op := &req.Ops[len(done)]
	switch {
	case k.c.session != req.Session && k.c.attached:
		next(claim.Result{Err: wire.ErrSessionExpired})
	case !k.c.attached:
		next(claim.Result{Err: wire.ErrConnectionLoss})
	case op.Kind == claim.OpUnwatch:
		for i := range k.c.watches {
			if k.c.watches[i].path == op.Path {
				k.c.watches[i].tell = nil
			}
		}
		next(claim.Result{})
	default:
		k.carryOne(op, next)
	}
}

// carryOne sends one operation.
func (k *candidate) carryOne(op *claim.Op, next func(claim.Result)) {
	q := requestOf(op)
	if op.Kind == claim.OpWatch || op.Kind == claim.OpWatchAll {
		path := op.Path
		q.watch = &watch{path: path, kids: op.Kind == claim.OpWatchAll, tell: func() { k.step(claim.Fired{Path: path}) }}
	}
	q.then = func(r *response) {
		if r == nil {
			next(claim.Result{Err: wire.ErrConnectionLoss})
			return
		}
		next(resultOf(op, r))
	}
	k.c.send(q)
}

// requestOf is an operation as the protocol has it.
func requestOf(op *claim.Op) *call {
	q := &call{path: op.Path}
	var body wire.Record
	switch op.Kind {
	case claim.OpSync:
		q.op, body = wire.OpSync, &wire.PathRequest{Path: op.Path}
	case claim.OpParents:
		q.op, body = wire.OpCreate2, &wire.CreateRequest{Path: op.Path, ACL: wire.OpenACL()}
	case claim.OpCreate:
		q.op, body = wire.OpCreate2, creation(op)
	case claim.OpList:
		q.op, body = wire.OpGetChildren2, &wire.PathWatchRequest{Path: op.Path}
	case claim.OpWatchAll:
		q.op, body = wire.OpGetChildren2, &wire.PathWatchRequest{Path: op.Path, Watch: true}
	case claim.OpGet:
		q.op, body = wire.OpGetData, &wire.PathWatchRequest{Path: op.Path}
	case claim.OpWatch:
		q.op, body = wire.OpGetData, &wire.PathWatchRequest{Path: op.Path, Watch: true}
	case claim.OpDelete:
		q.op, body = wire.OpDelete, &wire.PathVersionRequest{Path: op.Path, Version: op.Version}
	case claim.OpMulti:
		m := new(wire.MultiRequest)
		for i := range op.Ops {
			m.Ops = append(m.Ops, partOf(&op.Ops[i]))
		}
		q.op, body = wire.OpMulti, m
	default:
		panic("sim: a candidate asks for " + op.Kind.String())
	}
	q.body = wire.Append(nil, body)
	return q
}

func creation(op *claim.Op) *wire.CreateRequest {
	flags := wire.FlagEphemeral
	if op.Sequential {
		flags = wire.FlagEphemeralSequential
	}
	return &wire.CreateRequest{Path: op.Path, Data: op.Data, ACL: wire.OpenACL(), Flags: flags}
}

// partOf is an operation of a multi.
func partOf(op *claim.Op) wire.Op {
	switch op.Kind {
	case claim.OpCheck:
		return wire.Op{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: op.Path, Version: op.Version}}
	case claim.OpCreate:
		return wire.Op{Type: wire.OpCreate2, Request: creation(op)}
	case claim.OpDelete:
		return wire.Op{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: op.Path, Version: op.Version}}
	}
	panic("sim: a candidate asks for a multi with " + op.Kind.String())
}

// resultOf is an answer as a bid wants it.
func resultOf(op *claim.Op, r *response) claim.Result {
	res := claim.Result{Failed: -1}
	if r.header.Err != wire.OK {
		res.Err = r.header.Err
	}
	if op.Kind == claim.OpParents && errors.Is(res.Err, wire.ErrNodeExists) {
		res.Err = nil
	}
	switch m := r.record.(type) {
	case *wire.PathStatResponse:
		res.Path, res.Stat = m.Path, m.Stat
	case *wire.DataResponse:
		res.Data, res.Stat = m.Data, m.Stat
	case *wire.ChildrenStatResponse:
		res.Names, res.Stat = m.Children, m.Stat
	case *wire.MultiResponse:
		for i, part := range m.Results {
			if part.Type == wire.OpError && part.Err != wire.OK && part.Err != wire.ErrRuntimeInconsistency {
				res.Failed, res.Err = i, part.Err
				break
			}
		}
	}
	return res
}
