package client

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// player is a state machine of package claim that a client drives.
type player interface {
	attached()
	disconnected()
	expired()
	proven(at claim.Moment) // a ping that the client sent at that moment was answered
	pingsOften() bool       // whether the client must ping every tenth of the timeout
	crashed()               // the client's process has ended, and another one begins
}

// Runner carries out the requests of a state machine, over its client's session.
//
// At most one request is under way, the one of the present round. Answers of earlier rounds
// and watches of earlier lives are ignored. answered <= round.
type Runner struct {
	c     *Client
	step  func(claim.Event)
	alarm int64
	n     uint64 // number of the request under way, as the state machine counts
	round int    // number of requests and resets so far
	life  int    // number of state machines so far
	// answered is the last round whose answer was passed to the state machine. The events of
	// watches that a later round has set are held back until the answer of that round was
	// passed too.
	answered int
	held     []claim.Fired
	// together makes the reads of a cache one request. oneShot says that the cache uses
	// one-shot watches, as if its servers had no watches of trees.
	together, oneShot bool
}

func (h *Runner) now() claim.Moment { return h.c.Clock.Moment(h.c.group.Now()) }

// Client returns the client of the runner.
func (h *Runner) Client() *Client { return h.c }

// proven, pingsOften, disconnected and expired are the methods of a player that relies on
// no deadline.
func (h *Runner) proven(claim.Moment) {}
func (h *Runner) pingsOften() bool    { return false }
func (h *Runner) disconnected()       { h.step(claim.Disconnected{}) }
func (h *Runner) expired()            { h.step(claim.Expired{}) }

// soon runs do after a while, unless the process ends before.
func (h *Runner) soon(within int64, do func()) {
	life := h.life
	h.c.group.After(h.c.random.Below(within), func() {
		switch {
		case h.life != life:
		case h.c.Hung: // the process hangs
			h.soon(within, do)
		default:
			do()
		}
	})
}

// request carries out a request, if there is one.
func (h *Runner) request(req *claim.Request) {
	if req != nil {
		h.round++
		h.held, h.n = nil, req.N
		h.carryOut(h.round, *req, nil)
	}
}

// drop forgets the request under way, and all watches.
func (h *Runner) drop() {
	h.round++
	h.life++
}

// wake schedules a tick if the state machine asks for one.
func (h *Runner) wake(in time.Duration) {
	if in == 0 {
		return
	}
	at := h.c.group.Now() + int64(in/time.Microsecond)
	if h.alarm > h.c.group.Now() && h.alarm <= at {
		return
	}
	h.alarm = at
	late := int64(0)
	if d := h.c.oddities(); d != nil && d.Below(4) == 0 { // the process is busy when its alarm is due
		late = d.Below(100 * machine.Millisecond)
	}
	h.c.after(at-h.c.group.Now()+late, func() {
		if h.alarm == at && !h.c.Hung {
			h.alarm = 0
			h.step(claim.Tick{})
		}
	})
}

// carryOut carries out the operations of a request. Each waits for the answer to the one
// before, except in a claim.Batch, whose operations are sent without waiting.
func (h *Runner) carryOut(round int, req claim.Request, done []claim.Result) {
	if len(done) == len(req.Ops) {
		h.answer(round, claim.Reply{N: req.N, Results: done})
		return
	}
	left := req.Ops[len(done):]
	all := func(r ...claim.Result) { h.carryOut(round, req, append(done, r...)) }
	next := func(r claim.Result) { all(r) }
	op := &left[0]
	switch err := h.hindrance(req.Session); {
	case h.round != round: // the request was dropped
	case err != nil:
		next(claim.Result{Err: err})
	case h.together && plainReads(left) > 0:
		h.readTogether(left[:plainReads(left)], all)
	case op.Kind == claim.OpWatchTree, op.Kind == claim.OpListen, op.Kind == claim.OpSince, h.together && op.Kind == claim.OpUnwatch:
		h.carryTree(op, next)
	case claim.Batch(left) > 1:
		h.batch(left[:claim.Batch(left)], func(r []claim.Result) { all(r...) })
	default:
		c := claim.NewPlan(*op)
		h.carryOne(round, req.Session, &c, next)
	}
}

// hindrance returns why no request can be sent within a session; nil: it can.
func (h *Runner) hindrance(session wire.SessionID) error {
	switch {
	case !h.c.Attached:
		return wire.ErrConnectionLoss
	case h.c.Session != session:
		return wire.ErrSessionExpired
	}
	return nil
}

// carryOne sends the requests that one operation needs, unless the state machine drops it.
func (h *Runner) carryOne(round int, session wire.SessionID, c *claim.Plan, next func(claim.Result)) {
	op, more := c.Next()
	if !more {
		next(c.Result())
		return
	}
	took := func(r claim.Result) {
		c.Took(r)
		h.carryOne(round, session, c, next)
	}
	switch err := h.hindrance(session); {
	case h.round != round:
	case err != nil:
		took(claim.Result{Err: err})
	case op.Kind == claim.OpUnwatch:
		h.unwatch(op.Path)
		took(claim.Result{})
	default:
		h.send(&op, took)
	}
}

// unwatch makes the watches of a znode report nothing any more.
func (h *Runner) unwatch(path string) {
	for i := range h.c.watches {
		if h.c.watches[i].Path == path {
			h.c.watches[i].tell = nil
		}
	}
}

// batch sends operations without waiting in between.
func (h *Runner) batch(ops []claim.Op, next func([]claim.Result)) {
	results, open := make([]claim.Result, len(ops)), len(ops)
	for i := range ops {
		h.send(&ops[i], func(r claim.Result) {
			results[i] = r
			if open--; open == 0 {
				next(results)
			}
		})
	}
}

// answer passes the answer of a request to the state machine, and then what the watches of
// the request have reported.
func (h *Runner) answer(round int, r claim.Reply) { h.deliver(round, r, true) }

// deliver does what answer does. If the client is careless, the answer may come late.
func (h *Runner) deliver(round int, r claim.Reply, mayWait bool) {
	if h.round != round {
		return
	}
	if d := h.c.oddities(); d != nil && mayWait && d.Below(8) == 0 { // the reply waits for its turn in the process
		life := h.life
		if d.Below(4) == 0 {
			h.c.endSession()
		}
		h.c.group.After(d.Below(machine.Second), func() {
			h.c.arrive(func() {
				if h.life == life {
					h.deliver(round, r, false)
				}
			})
		})
		return
	}
	fired, life := h.held, h.life
	h.answered, h.held = round, nil
	h.step(r)
	for _, f := range fired {
		if h.life == life {
			h.step(f)
		}
	}
}

// send sends one request.
func (h *Runner) send(op *claim.Op, next func(claim.Result)) {
	q := RequestOf(op)
	switch op.Kind {
	case claim.OpWatch, claim.OpExists:
		q.watch = h.watch(op.Path, false)
	case claim.OpWatchAll:
		q.watch = h.watch(op.Path, true)
	}
	q.Then = func(r *Response) {
		if r == nil {
			next(claim.Result{Err: wire.ErrConnectionLoss})
		} else {
			next(resultOf(r))
		}
	}
	h.c.Send(q)
	if q.Op.IsWrite() {
		h.c.carelessWrite()
	}
}

// watch returns a watch that reports to the state machine.
func (h *Runner) watch(path string, kids bool) *watch {
	life, round, n := h.life, h.round, h.n
	return &watch{Watch: check.Watch{Path: path, Children: kids}, tell: func(t wire.EventType) {
		f := claim.Fired{Path: path, Type: t, N: n}
		switch {
		case h.life != life || h.c.Hung:
		case h.round == round && h.answered != round:
			h.held = append(h.held, f)
		default:
			h.step(f)
		}
	}}
}

// RequestOf returns an operation as a request of the protocol.
func RequestOf(op *claim.Op) *Call {
	q := &Call{Path: op.Path}
	var body wire.Record
	switch op.Kind {
	case claim.OpSync:
		q.Op, body = wire.OpSync, &wire.PathRequest{Path: op.Path}
	case claim.OpCreate:
		q.Op, body = wire.OpCreate2, creation(op)
	case claim.OpList:
		q.Op, body = wire.OpGetChildren2, &wire.PathWatchRequest{Path: op.Path}
	case claim.OpWatchAll:
		q.Op, body = wire.OpGetChildren2, &wire.PathWatchRequest{Path: op.Path, Watch: true}
	case claim.OpGet:
		q.Op, body = wire.OpGetData, &wire.PathWatchRequest{Path: op.Path}
	case claim.OpWatch:
		q.Op, body = wire.OpGetData, &wire.PathWatchRequest{Path: op.Path, Watch: true}
	case claim.OpExists, claim.OpStat:
		q.Op, body = wire.OpExists, &wire.PathWatchRequest{Path: op.Path, Watch: op.Kind == claim.OpExists}
	case claim.OpSet:
		q.Op, body = wire.OpSetData, &wire.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version}
	case claim.OpDelete:
		q.Op, body = wire.OpDelete, &wire.PathVersionRequest{Path: op.Path, Version: op.Version}
	case claim.OpMulti:
		m := new(wire.MultiRequest)
		for i := range op.Ops {
			m.Ops = append(m.Ops, partOf(&op.Ops[i]))
		}
		q.Op, body = wire.OpMulti, m
	default:
		panic("sim: a state machine asks for " + op.Kind.String())
	}
	q.Body = wire.Append(nil, body)
	return q
}

func creation(op *claim.Op) *wire.CreateRequest {
	flags := wire.FlagPersistent
	if !op.Persistent {
		flags |= wire.FlagEphemeral
	}
	if op.Sequential {
		flags |= wire.FlagPersistentSequential
	}
	return &wire.CreateRequest{Path: op.Path, Data: op.Data, ACL: wire.OpenACL(), Flags: flags}
}

// partOf returns an operation as a part of a multi.
func partOf(op *claim.Op) wire.Op {
	switch op.Kind {
	case claim.OpCheck:
		return wire.Op{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: op.Path, Version: op.Version}}
	case claim.OpCreate:
		return wire.Op{Type: wire.OpCreate2, Request: creation(op)}
	case claim.OpSet:
		return wire.Op{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version}}
	case claim.OpDelete:
		return wire.Op{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: op.Path, Version: op.Version}}
	}
	panic("sim: a state machine asks for a multi with " + op.Kind.String())
}

// resultOf returns an answer in the form that a state machine takes.
func resultOf(r *Response) claim.Result {
	res := claim.Result{Failed: -1}
	if r.Header.Err != wire.OK {
		res.Err = r.Header.Err
	}
	switch m := r.Record.(type) {
	case *wire.PathStatResponse:
		res.Path, res.Stat = m.Path, m.Stat
	case *wire.StatResponse:
		res.Stat = m.Stat
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
