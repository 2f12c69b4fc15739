package sim

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// player is a state machine of package claim that a client drives.
type player interface {
	attached()
	disconnected()
	expired()
	proven(at claim.Moment) // a ping that was sent then has been answered
	eager() bool            // it pings every tenth of the timeout
	crashed()               // its process has ended, another begins
}

// runner carries out what a state machine asks for, over its client's session.
type runner struct {
	c     *client
	step  func(claim.Event)
	alarm int64
	n     uint64 // of the request under way, as its state machine counts
	round int    // of requests: an answer to an earlier one means nothing
	life  int    // of state machines: a watch of an earlier one tells nothing
	// answered is the last round whose answer was stepped. What the watches of
	// a later one have to tell is held back until it is.
	answered int
	held     []claim.Fired
	// Of a cache: its reads are one request, and maybe its servers know no
	// watches of trees.
	together, oneShot bool
}

func (h *runner) now() claim.Moment { return h.c.clock.moment(h.c.sim.now) }

// proven, eager, disconnected and expired are those of a player that counts on
// no deadline.
func (h *runner) proven(claim.Moment) {}
func (h *runner) eager() bool         { return false }
func (h *runner) disconnected()       { h.step(claim.Disconnected{}) }
func (h *runner) expired()            { h.step(claim.Expired{}) }

// soon does something after a while, unless the process ends before.
func (h *runner) soon(within int64, do func()) {
	life := h.life
	h.c.sim.after(h.c.random.below(within), func() {
		switch {
		case h.life != life:
		case h.c.silent: // it stands still
			h.soon(within, do)
		default:
			do()
		}
	})
}

// ask carries out a request, if there is one.
func (h *runner) ask(req *claim.Request) {
	if req != nil {
		h.round++
		h.held, h.n = nil, req.N
		h.carryOut(h.round, *req, nil)
	}
}

// drop forgets the request under way, and all watches.
func (h *runner) drop() {
	h.round++
	h.life++
}

// wake steps a tick when the state machine wants one.
func (h *runner) wake(in time.Duration) {
	if in == 0 {
		return
	}
	at := h.c.sim.now + int64(in/time.Microsecond)
	if h.alarm > h.c.sim.now && h.alarm <= at {
		return
	}
	h.alarm = at
	h.c.after(at-h.c.sim.now, func() {
		if h.alarm == at && !h.c.silent {
			h.alarm = 0
			h.step(claim.Tick{})
		}
	})
}

// carryOut carries out the operations of a request, one after the other or, in a
// claim.Batch, one behind the other.
func (h *runner) carryOut(round int, req claim.Request, done []claim.Result) {
	if len(done) == len(req.Ops) {
		h.answer(round, claim.Reply{N: req.N, Results: done})
		return
	}
	left := req.Ops[len(done):]
	all := func(r ...claim.Result) { h.carryOut(round, req, append(done, r...)) }
	next := func(r claim.Result) { all(r) }
	op := &left[0]
	switch err := h.hindrance(req.Session); {
	case h.round != round: // nobody asks any more
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

// hindrance is why nothing can be asked for within a session; nil: it can.
func (h *runner) hindrance(session wire.SessionID) error {
	switch {
	case !h.c.attached:
		return wire.ErrConnectionLoss
	case h.c.session != session:
		return wire.ErrSessionExpired
	}
	return nil
}

// carryOne makes the requests that one operation takes, as long as somebody asks.
func (h *runner) carryOne(round int, session wire.SessionID, c *claim.Plan, next func(claim.Result)) {
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
		h.request(&op, took)
	}
}

// unwatch has the watches of a znode tell nothing.
func (h *runner) unwatch(path string) {
	for i := range h.c.watches {
		if h.c.watches[i].path == path {
			h.c.watches[i].tell = nil
		}
	}
}

// batch sends operations without waiting in between.
func (h *runner) batch(ops []claim.Op, next func([]claim.Result)) {
	results, open := make([]claim.Result, len(ops)), len(ops)
	for i := range ops {
		h.request(&ops[i], func(r claim.Result) {
			results[i] = r
			if open--; open == 0 {
				next(results)
			}
		})
	}
}

// answer steps the answer to a request, and then what its watches had to tell.
func (h *runner) answer(round int, r claim.Reply) {
	if h.round != round {
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

// request makes one request.
func (h *runner) request(op *claim.Op, next func(claim.Result)) {
	q := requestOf(op)
	switch op.Kind {
	case claim.OpWatch, claim.OpExists:
		q.watch = h.watch(op.Path, false)
	case claim.OpWatchAll:
		q.watch = h.watch(op.Path, true)
	}
	q.then = func(r *response) {
		if r == nil {
			next(claim.Result{Err: wire.ErrConnectionLoss})
		} else {
			next(resultOf(r))
		}
	}
	h.c.send(q)
}

// watch is one that tells the state machine.
func (h *runner) watch(path string, kids bool) *watch {
	life, round, n := h.life, h.round, h.n
	return &watch{path: path, kids: kids, tell: func(t wire.EventType) {
		f := claim.Fired{Path: path, Type: t, N: n}
		switch {
		case h.life != life || h.c.silent:
		case h.round == round && h.answered != round:
			h.held = append(h.held, f)
		default:
			h.step(f)
		}
	}}
}

// requestOf is an operation as the protocol has it.
func requestOf(op *claim.Op) *call {
	q := &call{path: op.Path}
	var body wire.Record
	switch op.Kind {
	case claim.OpSync:
		q.op, body = wire.OpSync, &wire.PathRequest{Path: op.Path}
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
	case claim.OpExists, claim.OpStat:
		q.op, body = wire.OpExists, &wire.PathWatchRequest{Path: op.Path, Watch: op.Kind == claim.OpExists}
	case claim.OpSet:
		q.op, body = wire.OpSetData, &wire.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version}
	case claim.OpDelete:
		q.op, body = wire.OpDelete, &wire.PathVersionRequest{Path: op.Path, Version: op.Version}
	case claim.OpMulti:
		m := new(wire.MultiRequest)
		for i := range op.Ops {
			m.Ops = append(m.Ops, partOf(&op.Ops[i]))
		}
		q.op, body = wire.OpMulti, m
	default:
		panic("sim: a state machine asks for " + op.Kind.String())
	}
	q.body = wire.Append(nil, body)
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

// partOf is an operation of a multi.
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

// resultOf is an answer as a state machine wants it.
func resultOf(r *response) claim.Result {
	res := claim.Result{Failed: -1}
	if r.header.Err != wire.OK {
		res.Err = r.header.Err
	}
	switch m := r.record.(type) {
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
