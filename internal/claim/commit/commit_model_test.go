package commit

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// The model of a transaction has a tree on servers that lag behind, sessions that end, and parties that
// crash, lose replies and restart with only what they had stored.

const txPath = "/app/tx/t1"

// party is a site or the coordinator (its site is "") and its client.
type party struct {
	site    string
	m       *commit
	session wire.SessionID
	seen    int // number of transactions that its server has applied
	inbox   []claim.Event
	fires   []claim.Event // events for the outstanding request, to be delivered after its reply
	req     *claim.Request
	results []claim.Result
	plan    *claim.Plan       // plan of the operation that has no result yet; nil: not begun
	watches map[string]uint64 // by path: the request that set the watch
	wake    time.Duration
	vote    Decision // its vote when it prepares
	dead    bool

	// What the party has stored, and still knows after a crash.
	prepared, begun bool
	done            Decision
}

type txWorld struct {
	choose  func(int) int
	broken  txBroken
	plain   bool
	now     time.Duration
	log     []map[string]*claimtest.Node // tree after each transaction
	nextID  wire.SessionID
	live    map[wire.SessionID]bool
	parties []*party
	voted   map[string]bool // sites that promised to commit
	ops     int             // number of operations carried out
	crashAt int             // crash after this number of operations
	events  int
	wrong   string
	trace   []string
	history *claimtest.History // notes what the parties are told and ask for; nil: nobody does
	refuses int                // the servers refuse one of so many operations; 0: none
}

// txBroken selects faults of the code under test, to show that the checks detect them.
type txBroken struct {
	noSync     bool // sync does nothing
	sweepEarly bool // every part seems to have finished
	actOnVotes bool // a site acts on the votes it sees
	staysOn    bool // a party that gives up leaves all its znodes
}

func newTxWorld(sites int, plain bool, choose func(int) int, b txBroken) *txWorld {
	w := &txWorld{choose: choose, broken: b, plain: plain, live: map[wire.SessionID]bool{}, voted: map[string]bool{}, crashAt: -1}
	w.log = []map[string]*claimtest.Node{{"/": {}, "/app": {}}}
	for i := range sites + 1 {
		p := &party{vote: Commit}
		if i > 0 {
			p.site = fmt.Sprint("s", i)
		}
		w.parties = append(w.parties, p)
		w.start(p)
	}
	return w
}

// start restarts a party with what it had stored before.
func (w *txWorld) start(p *party) {
	cfg := Config{Path: txPath, Site: p.site, Patience: 20 * time.Second, Doubt: p.prepared || p.begun}
	cfg.Finished = p.done != Undecided
	if p.site == "" {
		cfg.Plain = w.plain
		for i := 1; i <= w.sites(); i++ {
			cfg.Sites = append(cfg.Sites, fmt.Sprint("s", i))
		}
		p.begun = true
		c := NewCoordinator(cfg)
		p.m = c.commit
	} else {
		s := NewSite(cfg)
		p.m = s.commit
	}
	p.dead, p.inbox, p.fires, p.req, p.results, p.plan, p.wake, p.watches = false, nil, nil, nil, nil, nil, 0, map[string]uint64{}
	w.nextID++
	p.session, p.seen = w.nextID, w.choose(len(w.log))
	w.live[p.session] = true
	p.inbox = append(p.inbox, claim.Attached{Session: p.session})
}

// sites returns the number of sites, including those that do not exist yet.
func (w *txWorld) sites() int { return modelSites }

const modelSites = 3

func (w *txWorld) tellf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%7.1fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *txWorld) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.wrong)
	}
}

func (w *txWorld) tree() map[string]*claimtest.Node { return w.log[len(w.log)-1] }

// crash ends the process of a party. Its session stays alive for a while.
func (w *txWorld) crash(p *party) {
	w.tellf("%q crashes", p.site)
	p.dead, p.inbox, p.req, p.plan, p.fires = true, nil, nil, nil, nil
}

// expire ends a session.
func (w *txWorld) expire(id wire.SessionID) {
	if !w.live[id] {
		return
	}
	delete(w.live, id)
	w.tellf("session %v expires", id)
	view := maps.Clone(w.tree())
	for p, n := range view {
		if n.Owner == id {
			delete(view, p)
		}
	}
	w.commitView(view)
	for _, p := range w.parties {
		if p.session == id && !p.dead {
			w.nextID++
			p.session = w.nextID
			w.live[p.session] = true
			p.watches = map[string]uint64{}
			w.endSession(p)
		}
	}
}

// endSession tells a party that its session is over and that it has another one. The answer to the
// outstanding request comes at a random moment: before these two events, between them, or after them.
func (w *txWorld) endSession(p *party) {
	p.inbox = slices.DeleteFunc(p.inbox, func(ev claim.Event) bool { _, reply := ev.(claim.Reply); return !reply })
	if p.req != nil {
		w.failRequest(p, wire.ErrSessionExpired)
	}
	news := []claim.Event{claim.Expired{}, claim.Attached{Session: p.session}}
	p.inbox = slices.Insert(news, w.choose(len(news)+1), p.inbox...)
}

// failRequest answers the outstanding request: the operations that have no result yet fail with err.
func (w *txWorld) failRequest(p *party, err error) {
	for len(p.results) < len(p.req.Ops) {
		p.results = append(p.results, claim.Result{Err: err})
	}
	p.fires = nil
	w.answer(p)
}

func (w *txWorld) commitView(view map[string]*claimtest.Node) {
	w.log = append(w.log, view)
	for _, p := range w.parties {
		if w.choose(2) == 0 {
			w.catchUp(p, len(w.log)-1)
		}
	}
}

// catchUp lets the server of a party apply all transactions, and fires watches.
func (w *txWorld) catchUp(p *party, to int) {
	for p.seen < to {
		before, after := w.log[p.seen], w.log[p.seen+1]
		p.seen++
		for _, name := range slices.Sorted(maps.Keys(p.watches)) {
			if before[name] == after[name] {
				continue
			}
			by := p.watches[name]
			delete(p.watches, name)
			w.events++
			if p.req != nil && p.req.N == by {
				p.fires = append(p.fires, claim.Fired{Path: name})
			} else {
				p.inbox = append(p.inbox, claim.Fired{Path: name})
			}
		}
	}
}

// serve carries out the next operation of a party's request.
func (w *txWorld) serve(p *party) {
	if p.req == nil || p.dead {
		return
	}
	w.proceed(p)
	w.ops++
	if len(p.results) == len(p.req.Ops) {
		w.answer(p)
	}
}

func (w *txWorld) proceed(p *party) {
	p.results = claimtest.Proceed(&p.plan, p.results, p.req.Ops, func(op claim.Op) claim.Result { return w.carryOut(p, op) })
}

func (w *txWorld) answer(p *party) {
	p.inbox = append(p.inbox, claim.Reply{N: p.req.N, Results: p.results})
	p.inbox = append(p.inbox, p.fires...)
	p.req, p.results, p.plan, p.fires = nil, nil, nil, nil
}

// lose ends the connection. Some operations are carried out, and all or some of the replies are lost.
func (w *txWorld) lose(p *party) {
	if p.req == nil || p.dead {
		return
	}
	for n := w.choose(len(p.req.Ops) - len(p.results) + 1); n > 0 && len(p.results) < len(p.req.Ops); n-- {
		w.proceed(p)
	}
	w.tellf("%q loses replies after %d operations", p.site, len(p.results))
	p.results = p.results[:w.choose(len(p.results)+1)]
	for len(p.results) < len(p.req.Ops) {
		op := p.req.Ops[len(p.results)]
		if op.Kind == claim.OpWatch || op.Kind == claim.OpAwait {
			delete(p.watches, op.Path)
		}
		p.results = append(p.results, claim.Result{Err: wire.ErrConnectionLoss})
	}
	p.inbox = append(p.inbox, claim.Disconnected{})
	w.answer(p)
	p.inbox = append(p.inbox, claim.Attached{Session: p.session})
}

func (w *txWorld) carryOut(p *party, op claim.Op) claim.Result {
	if w.refuses > 0 && w.choose(w.refuses) == 0 {
		return claimtest.Refused
	}
	switch op.Kind {
	case claim.OpSync:
		if !w.broken.noSync {
			w.catchUp(p, len(w.log)-1)
		}
	case claim.OpCreate, claim.OpSet, claim.OpDelete, claim.OpMulti:
		return w.write(p, op)
	case claim.OpList:
		var names []string
		for name := range w.log[p.seen] {
			if name != "/" && path.Dir(name) == op.Path {
				names = append(names, path.Base(name))
			}
		}
		if w.log[p.seen][op.Path] == nil {
			return claim.Result{Err: wire.ErrNoNode}
		}
		if slices.Sort(names); w.broken.sweepEarly {
			names = append(names, "done_", "done_s1", "done_s2", "done_s3")
		}
		return claim.Result{Names: names}
	default:
		n := w.log[p.seen][op.Path]
		if op.Kind == claim.OpExists || op.Kind == claim.OpWatch && n != nil {
			p.watches[op.Path] = p.req.N
		}
		if n == nil {
			return claim.Result{Err: wire.ErrNoNode}
		}
		return claim.Result{Data: []byte(n.Data), Stat: wire.Stat{EphemeralOwner: n.Owner, Version: n.Version}}
	}
	return claim.Result{}
}

// write is carried out at the leader, completely or not at all.
func (w *txWorld) write(p *party, op claim.Op) claim.Result {
	ops := []claim.Op{op}
	if op.Kind == claim.OpMulti {
		ops = op.Ops
	}
	view := maps.Clone(w.tree())
	for i, o := range ops {
		if err := w.writeOne(p, view, o); err != nil {
			return claim.Result{Err: err, Failed: i}
		}
	}
	w.commitView(view)
	w.catchUp(p, len(w.log)-1)
	return claim.Result{}
}

func (w *txWorld) writeOne(p *party, view map[string]*claimtest.Node, o claim.Op) error {
	n := view[o.Path]
	switch {
	case n == nil && o.Kind == claim.OpDelete && w.broken.sweepEarly:
		return nil
	case o.Kind == claim.OpCreate && view[path.Dir(o.Path)] == nil, o.Kind != claim.OpCreate && n == nil:
		return wire.ErrNoNode
	case o.Kind == claim.OpCreate && n != nil:
		return wire.ErrNodeExists
	case o.Kind != claim.OpCreate && o.Version != claim.AnyVersion && o.Version != n.Version:
		return wire.ErrBadVersion
	}
	switch o.Kind {
	case claim.OpCreate:
		made := &claimtest.Node{Data: string(o.Data)}
		if !o.Persistent {
			made.Owner = p.session
		}
		view[o.Path] = made
	case claim.OpSet:
		view[o.Path] = &claimtest.Node{Data: string(o.Data), Owner: n.Owner, Version: n.Version + 1}
	case claim.OpDelete:
		for name := range view {
			if strings.HasPrefix(name, o.Path+"/") {
				return wire.ErrNotEmpty
			}
		}
		delete(view, o.Path)
	}
	return nil
}

// deliver steps the next message.
func (w *txWorld) deliver(p *party) {
	if len(p.inbox) == 0 || p.dead {
		return
	}
	ev := p.inbox[0]
	p.inbox = p.inbox[1:]
	w.step(p, ev)
}

func (w *txWorld) step(p *party, ev claim.Event) {
	if p.dead {
		return
	}
	p.m.Step(claim.Moment{Mono: w.now, Wall: w.now}, ev)
	rd := p.m.Ready()
	if w.history != nil {
		w.history.Step(w.now, cmp.Or(p.site, "coordinator"), ev, rd, fmt.Sprintf("%+v", p.m.State()))
	}
	p.wake = 0
	if rd.Wake > 0 {
		p.wake = w.now + rd.Wake
	}
	for _, h := range rd.Observations {
		w.tellf("%v", h)
	}
	if rd.Request != nil {
		p.req, p.results, p.plan = rd.Request, nil, nil
		if rd.Request.Session != p.session { // the session has ended, and the machine has not been told yet
			w.failRequest(p, wire.ErrSessionExpired)
		}
	}
	if _, gaveUp := ev.(claim.Resign); gaveUp && w.broken.staysOn {
		p.m.over(nil)
	}
	if w.broken.actOnVotes && p.m.phase == TxOpen {
		if d := p.m.count(); p.m.begun && d != Undecided {
			p.m.decision, p.m.phase = d, TxDecided
		}
	}
}

// act plays the application: it prepares and carries out the decision.
func (w *txWorld) act(p *party) {
	if p.dead {
		return
	}
	switch s := p.m.State(); {
	case s.Phase == TxPrepare:
		if p.vote == Commit {
			p.prepared, w.voted[p.site] = true, true
		}
		w.step(p, Prepared{p.vote})
	case s.Phase == TxDecided && !s.Carried:
		if p.done != Undecided && p.done != s.Decision {
			w.violated("%q carries out %v after %v", p.site, s.Decision, p.done)
		}
		p.done = s.Decision
		w.tellf("%q carries out %v", p.site, p.done)
		w.step(p, Carried{})
	}
	w.check()
}

// checkGone checks that a party that gave up has left no znode for which others would wait.
func (w *txWorld) checkGone(p *party) {
	if s := p.m.State(); p.dead || s.Phase != TxOver || !s.Withdrawn {
		return
	}
	for name, n := range w.tree() {
		if n.Owner == p.session && n.Data == "" {
			w.violated("%q has given up, and %s stands", p.site, name)
		}
	}
}

// check looks for violations of rules that must always hold.
func (w *txWorld) check() {
	for _, p := range w.parties {
		w.checkGone(p)
	}
	outcome := Undecided
	for _, p := range w.parties {
		if p.done == Undecided {
			continue
		}
		if outcome != Undecided && p.done != outcome {
			w.violated("%q carries out %v, another %v", p.site, p.done, outcome)
		}
		outcome = p.done
	}
	if outcome == Commit && len(w.voted) < w.sites() {
		w.violated("committed with the votes of %v", w.voted)
	}
}
