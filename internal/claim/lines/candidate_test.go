package lines

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// machine is a state machine of the package.
type machine interface {
	Step(claim.Moment, claim.Event)
	Ready() claim.Ready
	State() State
	Left(claim.Moment) time.Duration
}

// lines returns the lines of a state machine.
func lines(m machine) []*Line {
	switch m := m.(type) {
	case *Line:
		return []*Line{m}
	case *Semaphore:
		if m.lease != nil {
			return []*Line{m.gate, m.lease}
		}
		return []*Line{m.gate}
	}
	panic("not in a line")
}

// outstanding reports whether a request has not been answered.
func outstanding(m machine) bool {
	if s, ok := m.(*Semaphore); ok {
		return s.asked != nil
	}
	return m.(*Line).Asked != 0
}

// candidate is a client of the model. It has one bid at a time.
type candidate struct {
	id      int
	e       machine
	naming  claim.Naming
	rule    Rule
	leases  int
	session wire.SessionID // 0: no session, or the client knows that it is over
	at      *replica       // nil: no connection
	inbox   []claim.Event
	last    *claim.Request // the last request, outstanding or answered
	req     *claim.Request // the same request while operations of it remain to be carried out
	results []claim.Result
	watches map[string]bool
	seen    wire.Zxid     // last zxid in the replies that have arrived
	learns  wire.Zxid     // last zxid in the reply on its way
	wake    time.Duration // in time of the world; 0: never
	keep    bool
	paused  bool
	woken   int
	moved   int // how often the candidate was woken while it waited at the gate

	rate      float64       // speed of its clocks
	origin    time.Duration // time of the world at which its clocks started
	suspended time.Duration
	set       time.Duration // by how much the wall clock was set
}

const (
	modelParent = "/app/job"
	modelGate   = "/app/gate"
)

func (w *world) newNonce() claim.Nonce {
	w.nonce++
	return claim.Nonce{15: w.nonce, 0: byte(w.choose(256))}
}

func (w *world) join(naming claim.Naming) *candidate { return w.joinAs(naming, Leadership, 0) }

// joinAs adds a candidate with a bid of the given rule. leases is the N of a semaphore; 0 for other rules.
func (w *world) joinAs(naming claim.Naming, rule Rule, leases int) *candidate {
	c := &candidate{id: len(w.candidates), naming: naming, rule: rule, leases: leases, rate: 1 + float64(w.choose(11)-5)/1000}
	c.origin = time.Duration(w.choose(3)) * 1000 * time.Second
	w.candidates = append(w.candidates, c)
	w.campaign(c)
	return c
}

// campaign gives the candidate a new bid and, where needed, a session.
func (w *world) campaign(c *candidate) { w.bid(c, false) }

func (w *world) bid(c *candidate, try bool) {
	cfg := Config{Parent: modelParent, ID: fmt.Sprint("c", c.id), Naming: c.naming, Nonce: w.newNonce(), Rule: c.rule, Leases: c.leases, Try: try}
	switch {
	case c.rule != Leadership:
	case c.naming == claim.Plain:
		cfg.Leader = "/app/elsewhere/LEADER"
	default:
		cfg.Leader = modelParent + "/LEADER"
	}
	cfg.Quiet = time.Duration(w.choose(2)) * time.Millisecond
	c.e, c.req, c.results, c.wake, c.keep = machine(NewLine(cfg)), nil, nil, 0, false
	if c.rule == Leases && (!try || c.naming == claim.KazooLease) { // as package recipe does
		gate := Config{Parent: modelGate, ID: cfg.ID, Nonce: w.newNonce(), Rule: Exclusive, Try: try}
		c.e = NewSemaphore(gate, cfg)
	}
	c.inbox = slices.DeleteFunc(c.inbox, func(ev claim.Event) bool { _, old := ev.(claim.Reply); return old })
	if c.session == 0 {
		c.inbox, c.watches, c.at = nil, map[string]bool{}, nil
	} else if c.at != nil {
		c.inbox = append(c.inbox, w.attached(c)) // as for a client that is connected already
	}
	w.tellf("c%d campaigns", c.id)
}

// clock returns the current reading of the candidate's two clocks.
func (w *world) clock(c *candidate) claim.Moment {
	t := time.Duration(float64(w.now-c.origin) * c.rate)
	if w.broken.oneClock {
		return claim.Moment{Mono: t - c.suspended, Wall: t - c.suspended}
	}
	return claim.Moment{Mono: t - c.suspended, Wall: t + c.set}
}

// lease returns a proof that was sent at a given moment, as the client passes it on.
func (w *world) lease(c *candidate, sent claim.Moment) claim.Lease {
	l := claim.Lease{Sent: sent, Timeout: modelTimeout, Delay: modelDelay}
	if w.broken.noDelay {
		l.Delay = 0
	}
	return l
}

func (w *world) attached(c *candidate) claim.Event {
	s := w.sessions[c.session]
	if s == nil {
		return claim.Disconnected{}
	}
	s.touched = w.now
	return claim.Attached{Session: c.session, Lease: w.lease(c, w.clock(c))}
}

// connect attaches the candidate to a server, with its session if that is alive.
func (w *world) connect(c *candidate, r *replica) {
	if c.session == 0 {
		c.session, c.seen, c.learns = w.newSession().id, 0, 0
	}
	if w.sessions[c.session] == nil {
		c.session, c.watches = 0, map[string]bool{}
		c.inbox = append(c.inbox, claim.Expired{})
		return
	}
	w.catchUp(r, c.seen)
	c.at = r
	c.inbox = append(c.inbox, w.attached(c))
	for p := range c.watches {
		if r.tree[p] == nil || w.changedBelow(r, p, c.seen) {
			c.inbox = append(c.inbox, claim.Fired{Path: p})
		} else {
			r.watch(p, c)
		}
	}
	w.tellf("c%d attached %v", c.id, c.session)
}

func (r *replica) watch(p string, c *candidate) {
	if r.watches[p] == nil {
		r.watches[p] = map[*candidate]bool{}
	}
	r.watches[p][c] = true
}

// cut ends the connection. Some of the messages in either direction still arrive.
func (w *world) cut(c *candidate) {
	if c.at == nil {
		return
	}
	for n := w.choose(4); n > 0 && c.req != nil; n-- {
		w.serve(c)
	}
	c.inbox = c.inbox[:w.choose(len(c.inbox)+1)]
	for _, watches := range c.at.watches {
		delete(watches, c)
	}
	c.at = nil
	answered := slices.ContainsFunc(c.inbox, func(e claim.Event) bool { _, ok := e.(claim.Reply); return ok })
	if outstanding(c.e) && !answered {
		w.lose(c, c.results)
	}
	c.inbox = append(c.inbox, claim.Disconnected{})
	w.tellf("c%d cut off", c.id)
}

// lose answers the outstanding request as lost, except for its first few operations.
func (w *world) lose(c *candidate, got []claim.Result) {
	req := c.last
	res := slices.Clone(got[:w.choose(len(got)+1)])
	for len(res) < len(req.Ops) {
		err := error(wire.ErrConnectionLoss)
		switch op := req.Ops[len(res)]; {
		case op.Kind == claim.OpWatch, op.Kind == claim.OpWatchAll, op.Kind == claim.OpUnwatch:
			delete(c.watches, op.Path) // without the reply the client knows of no watch
		case op.Kind == claim.OpCreate && w.broken.lostIsFailure:
			err = wire.ErrNoNode // means: not created, because the parent is missing
		}
		res = append(res, claim.Result{Err: err})
	}
	c.req, c.results = nil, nil
	c.inbox = append(c.inbox, claim.Reply{N: req.N, Results: res})
}

// serve lets the server carry out the next operation of a request.
func (w *world) serve(c *candidate) {
	if c.at == nil || c.req == nil || w.sessions[c.session] == nil {
		return
	}
	before := len(c.results)
	for plan := (*claim.Plan)(nil); len(c.results) == before; {
		c.results = claimtest.Proceed(&plan, c.results, c.req.Ops, func(op claim.Op) claim.Result {
			if c.req.Session == c.session || w.broken.anySession {
				return w.carryOut(c, op)
			}
			return claim.Result{Err: wire.ErrSessionExpired}
		})
	}
	if len(c.results) == len(c.req.Ops) {
		c.inbox = append(c.inbox, claim.Reply{N: c.req.N, Results: c.results})
		c.req = nil
	}
}

func (w *world) carryOut(c *candidate, op claim.Op) claim.Result {
	if w.refuses > 0 && w.choose(w.refuses) == 0 {
		return claimtest.Refused
	}
	if refused := w.refuse; refused != 0 {
		w.refuse = 0
		return claim.Result{Err: refused}
	}
	r := c.at
	switch op.Kind {
	case claim.OpSync:
		if !w.broken.noSync {
			w.catchUp(r, w.zxid)
		}
	case claim.OpCreate, claim.OpDelete, claim.OpMulti:
		owner := c.session
		if op.Persistent {
			owner = 0
		}
		res := w.write(owner, op)
		if res.Err == nil {
			w.noteLeader(op)
			w.catchUp(r, w.zxid)
		}
		c.learns = w.zxid
		return res
	case claim.OpUnwatch:
		if !w.broken.keepWatch {
			delete(r.watches[op.Path], c)
			delete(c.watches, op.Path)
		}
	default:
		res := r.read(op)
		if (op.Kind == claim.OpWatch || op.Kind == claim.OpWatchAll) && res.Err == nil {
			c.watches[op.Path] = true
			r.watch(op.Path, c)
		}
		c.learns = max(c.learns, w.appliedBy(r))
		return res
	}
	return claim.Result{}
}

func (w *world) appliedBy(r *replica) wire.Zxid {
	if r.applied == 0 {
		return 0
	}
	return w.log[r.applied-1].zxid
}

// ping sends a ping that is answered. The server that expires sessions may believe that it was sent up to
// D earlier.
func (w *world) ping(c *candidate) {
	s := w.sessions[c.session]
	if c.at == nil || s == nil {
		return
	}
	behind := []time.Duration{0, modelDelay / 2, modelDelay}[w.choose(3)]
	s.touched = max(s.touched, w.now-behind)
	c.inbox = append(c.inbox, claim.Confirmed{Lease: w.lease(c, w.clock(c))})
}

// deliver steps the next message.
func (w *world) deliver(c *candidate) {
	if len(c.inbox) == 0 || c.paused {
		return
	}
	ev := c.inbox[0]
	c.inbox = c.inbox[1:]
	switch ev := ev.(type) {
	case claim.Reply:
		if !slices.ContainsFunc(ev.Results, func(r claim.Result) bool { return errors.Is(r.Err, wire.ErrConnectionLoss) }) {
			c.seen = c.learns
		}
	case claim.Fired:
		delete(c.watches, ev.Path)
	case claim.Confirmed:
		if w.broken.leaseByReply {
			w.step(c, claim.Confirmed{Lease: w.lease(c, w.clock(c))})
			return
		}
	}
	w.step(c, ev)
}

func (w *world) step(c *candidate, ev claim.Event) {
	was := before(c.e)
	c.e.Step(w.clock(c), ev)
	rd := c.e.Ready()
	if w.history != nil {
		w.history.Step(w.now, fmt.Sprint("c", c.id), ev, rd, fmt.Sprintf("%+v", c.e.State()))
	}
	for _, l := range lines(c.e) {
		if wrong := l.check(was[l]); wrong != "" {
			w.violated("c%d, after %T: %s", c.id, ev, wrong)
		}
	}
	c.keep, c.wake = rd.KeepAlive, 0
	if rd.Wake > 0 {
		c.wake = w.now + rd.Wake
	}
	for _, h := range rd.Observations {
		w.tellf("c%d %v", c.id, h)
		switch h := h.(type) {
		case Leads:
			w.leads(c)
		case Woken:
			c.woken++
		case AtGate:
			if _, ok := h.Observation.(Woken); ok {
				c.moved++
			}
		}
	}
	if rd.Request != nil {
		c.last, c.req, c.results = rd.Request, rd.Request, nil
		if c.at == nil {
			w.lose(c, nil)
		}
	}
}

// leads checks the rules that must hold when a term begins.
func (w *world) leads(c *candidate) {
	s := c.e.State()
	token := s.Token
	if w.broken.seqToken {
		b, _ := claim.ParseBid(s.Bid)
		token = wire.Zxid(b.Seq) + 1
	}
	if oldest := w.outdated(c.rule); token <= oldest {
		w.violated("c%d leads with token %v after %v", c.id, token, oldest)
	}
	w.newest = max(w.newest, token)
	if c.rule != Shared {
		w.newestAlone = max(w.newestAlone, token)
	}
	p := modelParent + "/" + s.Bid
	w.handles = append(w.handles, handle{p, token, c.rule})
	switch n := w.leader[p]; {
	case n == nil:
		w.violated("c%d leads without a bid", c.id)
	case n.Owner != c.session:
		w.violated("c%d leads with a bid of session %v, not %v", c.id, n.Owner, c.session)
	case !c.mayHold(w.ahead(c, s.Bid)):
		w.violated("c%d leads with %s behind %q", c.id, s.Bid, w.ahead(c, s.Bid))
	}
}

// outdated returns the newest token; a new term under this rule must have a larger one.
func (w *world) outdated(r Rule) wire.Zxid {
	switch r {
	case Shared:
		return w.newestAlone
	case Leases:
		return 0
	}
	return w.newest
}

// ahead returns the bids ahead that a bid must wait for.
func (w *world) ahead(c *candidate, bid string) []string {
	var names []string
	for _, p := range w.bids() {
		name := path.Base(p)
		if name == bid {
			break
		}
		if b, _ := claim.ParseBid(name); c.rule != Shared || !claim.IsShared(b.Naming) {
			names = append(names, name)
		}
	}
	return names
}

func (c *candidate) mayHold(ahead []string) bool { return len(ahead) < max(c.leases, 1) }

// left returns the time until the deadline of the term, as read from the candidate's clock now.
func (w *world) left(c *candidate) time.Duration {
	return c.e.Left(w.clock(c))
}
