package modeltest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/value"
	"bellwether/wire"
)

// The model of single operations: a tree behind servers that lag, sessions that end, answers that are
// lost, and actors that crash and restart without memory. The model compares the outcome that an
// operation reports with what the operation did.

// actor is a client of the model, with one operation at a time.
type actor struct {
	name    string
	begin   func() claimtest.Single // returns its next operation; nil: there is none
	ended   func(claimtest.Single)  // called when an operation has ended
	m       claimtest.Single
	done    int // how often the operation has had its effect
	session wire.SessionID
	seen    int // number of transactions that its server has applied
	known   int // number of transactions that its answers have shown: its next server has applied at least these
	inbox   []claim.Event
	fires   []claim.Event // events of the outstanding request, which come after its reply
	req     *claim.Request
	results []claim.Result
	plan    *claim.Plan       // the plan of the operation that has no result yet; nil: it is not begun
	watches map[string]uint64 // by path, the number of the request that set the watch; a path with a slash at its end is a watch of children
	wake    time.Duration
	listed  map[string][]string // the children that it has last listed, by parent
}

type singleWorld struct {
	choose func(int) int
	broken singleBroken
	now    time.Duration
	log    []map[string]*claimtest.Node // the tree after each transaction
	counts map[string]int32
	nextID wire.SessionID
	actors []*actor
	dead   []wire.SessionID // sessions of crashed actors that have not expired yet
	// effect reports whether a transaction has the effect that an operation should have
	// once. nil: the effects are not counted.
	effect  func(a *actor, ops []claim.Op) bool
	stepped func(a *actor) // after each step; may be nil
	changed func()         // after each transaction; may be nil
	mute    bool           // events carry no zxid, as those of Apache's servers before 3.9
	apart   bool           // no two znodes ever have the same version
	crashes int
	wrong   string
	trace   []string
	history *claimtest.History // notes what the machines are told and ask for; nil: nobody does
	refuses int                // the servers refuse one of so many operations; 0: none
}

// singleBroken are deliberate faults: the tests show that the checks find each of them.
type singleBroken struct {
	noSync      bool // sync does nothing
	blind       bool // an operation whose answer was lost assumes that the request was not carried out
	torn        bool // only the first operation of a transaction is carried out
	keep        bool // the znodes of ended sessions are not removed
	vague       bool // each event claims that a znode was created
	loose       bool // versions are not compared
	losesEvents bool // some events are lost
}

func newSingleWorld(choose func(int) int, b singleBroken) *singleWorld {
	return &singleWorld{choose: choose, broken: b, log: []map[string]*claimtest.Node{{"/": {}}}, counts: map[string]int32{}}
}

func (w *singleWorld) tellf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%7.1fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *singleWorld) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.wrong)
	}
}

// clock returns the time with which the leader stamps znodes, in ms since 1970. No actor's clock shows
// this time.
func (w *singleWorld) clock() int64 { return 1_000_000_000_000 + w.now.Milliseconds() }

func (w *singleWorld) tree() map[string]*claimtest.Node { return w.log[len(w.log)-1] }

// add adds an actor to the model.
func (w *singleWorld) add(name string, begin func() claimtest.Single, ended func(claimtest.Single)) *actor {
	a := &actor{name: name, begin: begin, ended: ended, watches: map[string]uint64{}, listed: map[string][]string{}}
	w.actors = append(w.actors, a)
	w.enter(a)
	w.next(a)
	return a
}

// enter gives an actor a new session.
func (w *singleWorld) enter(a *actor) {
	w.nextID++
	a.session, a.watches, a.known = w.nextID, map[string]uint64{}, 0
}

// next begins the actor's next operation.
func (w *singleWorld) next(a *actor) {
	a.m, a.done, a.req, a.results, a.plan, a.fires, a.inbox, a.wake = a.begin(), 0, nil, nil, nil, nil, nil, 0
	if a.m != nil {
		a.inbox = append(a.inbox, claim.Attached{Session: a.session})
	}
}

// crash ends an actor's process. Its session lives on for a while.
func (w *singleWorld) crash(a *actor) {
	if a.m == nil {
		return
	}
	w.tellf("%s crashes", a.name)
	w.crashes++
	w.dead = append(w.dead, a.session)
	w.enter(a)
	w.ended(a, true)
	w.next(a)
}

// removeSession removes the znodes of an ended session.
func (w *singleWorld) removeSession(id wire.SessionID) {
	if w.broken.keep {
		return
	}
	w.tellf("session %v expires", id)
	view := maps.Clone(w.tree())
	for p, n := range view {
		if n.Owner == id {
			delete(view, p)
		}
	}
	w.commit(view)
}

// expire ends the session of an actor whose process goes on.
func (w *singleWorld) expire(a *actor) {
	w.lose(a)
	old := a.session
	w.enter(a)
	w.removeSession(old)
	a.inbox = append(a.inbox, claim.Expired{}, claim.Attached{Session: a.session})
}

func (w *singleWorld) commit(view map[string]*claimtest.Node) {
	w.log = append(w.log, view)
	if w.changed != nil {
		w.changed()
	}
	for _, a := range w.actors {
		if w.choose(2) == 0 {
			w.catchUp(a, len(w.log)-1)
		}
	}
}

// catchUp lets an actor's server apply the transactions up to a number, and fires the watches.
func (w *singleWorld) catchUp(a *actor, to int) {
	for a.seen < to {
		before, after := w.log[a.seen], w.log[a.seen+1]
		a.seen++
		for _, p := range slices.Sorted(maps.Keys(a.watches)) {
			parent, kids := strings.CutSuffix(p, "/")
			if kids && slices.Equal(children(before, parent), children(after, parent)) || !kids && before[p] == after[p] {
				continue
			}
			by := a.watches[p]
			if !w.mute {
				a.known = a.seen // the event shows it
			}
			delete(a.watches, p)
			if w.broken.losesEvents && w.choose(4) == 0 {
				continue
			}
			if fired := (claim.Fired{Path: parent, Type: w.event(before[p], after[p], kids), N: by}); a.req != nil && by == a.req.N {
				a.fires = append(a.fires, fired)
			} else {
				a.inbox = append(a.inbox, fired)
			}
		}
	}
}

// event returns the type of the event for a change of a znode.
func (w *singleWorld) event(before, after *claimtest.Node, kids bool) wire.EventType {
	switch {
	case kids:
		return wire.EventNodeChildrenChanged
	case before == nil || w.broken.vague:
		return wire.EventNodeCreated
	case after == nil:
		return wire.EventNodeDeleted
	}
	return wire.EventNodeDataChanged
}

func children(view map[string]*claimtest.Node, parent string) []string {
	var names []string
	for p := range view {
		if p != "/" && path.Dir(p) == parent {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

// serve carries out the next operations of an actor's request.
func (w *singleWorld) serve(a *actor) {
	if a.req == nil {
		return
	}
	w.proceed(a)
	if len(a.results) == len(a.req.Ops) {
		w.answer(a)
	}
}

func (w *singleWorld) proceed(a *actor) {
	a.results = claimtest.Proceed(&a.plan, a.results, a.req.Ops, func(op claim.Op) claim.Result { return w.carryOut(a, op) })
}

func (w *singleWorld) answer(a *actor) {
	a.inbox = append(a.inbox, claim.Reply{N: a.req.N, Results: a.results})
	a.inbox = append(a.inbox, a.fires...)
	if !slices.ContainsFunc(a.results, func(r claim.Result) bool { return r.Err == wire.ErrConnectionLoss }) {
		a.known = a.seen
	}
	a.req, a.results, a.plan, a.fires = nil, nil, nil, nil
}

// lose ends the connection. Some of the outstanding operations are carried out, and the replies of all or
// some of them are lost.
func (w *singleWorld) lose(a *actor) {
	a.inbox = append(a.inbox, claim.Disconnected{})
	if a.req == nil {
		return
	}
	for n := w.choose(len(a.req.Ops) - len(a.results) + 1); n > 0 && len(a.results) < len(a.req.Ops); n-- {
		w.proceed(a)
	}
	w.tellf("%s loses replies after %d operations", a.name, len(a.results))
	if a.results = a.results[:w.choose(len(a.results)+1)]; len(a.results) > 0 {
		a.known = a.seen // the reply to the first operation shows the actor what has happened up to now
	}
	for len(a.results) < len(a.req.Ops) {
		switch op := a.req.Ops[len(a.results)]; op.Kind {
		case claim.OpWatch, claim.OpExists, claim.OpAwait:
			delete(a.watches, op.Path)
		case claim.OpWatchAll:
			delete(a.watches, op.Path+"/")
		}
		a.results = append(a.results, claim.Result{Err: wire.ErrConnectionLoss})
	}
	w.answer(a)
	a.seen = a.known + w.choose(a.seen-a.known+1) // the server that it connects to next may lag
}

func (w *singleWorld) carryOut(a *actor, op claim.Op) claim.Result {
	view := w.log[a.seen]
	switch {
	case w.refuses > 0 && w.choose(w.refuses) == 0:
		return claimtest.Refused
	case a.req.Session != a.session:
		return claim.Result{Err: wire.ErrSessionExpired}
	case op.Kind == claim.OpSync:
		if !w.broken.noSync {
			w.catchUp(a, len(w.log)-1)
		}
	case op.Kind == claim.OpUnwatch:
		delete(a.watches, op.Path)
		delete(a.watches, op.Path+"/")
	case op.Kind == claim.OpList || op.Kind == claim.OpWatchAll:
		if view[op.Path] == nil {
			return claim.Result{Err: wire.ErrNoNode}
		}
		if op.Kind == claim.OpWatchAll {
			a.watches[op.Path+"/"] = a.req.N
		}
		a.listed[op.Path] = children(view, op.Path)
		return claim.Result{Names: a.listed[op.Path]}
	case op.Kind == claim.OpGet || op.Kind == claim.OpWatch || op.Kind == claim.OpExists || op.Kind == claim.OpStat:
		n := view[op.Path]
		if op.Kind == claim.OpExists || op.Kind == claim.OpWatch && n != nil {
			a.watches[op.Path] = a.req.N
		}
		if n == nil {
			return claim.Result{Err: wire.ErrNoNode}
		}
		return claim.Result{Data: []byte(n.Data), Stat: n.Stat()}
	default:
		return w.write(a, op)
	}
	return claim.Result{}
}

// write carries out operations at the leader, either all of them or none.
func (w *singleWorld) write(a *actor, op claim.Op) claim.Result {
	ops := []claim.Op{op}
	if op.Kind == claim.OpMulti {
		ops = op.Ops
	}
	if w.broken.torn && w.choose(3) == 0 {
		ops = ops[:min(len(ops), 1)]
	}
	view, counts, res := maps.Clone(w.tree()), maps.Clone(w.counts), claim.Result{Failed: -1}
	for i, o := range ops {
		name, err := w.writeOne(a, view, counts, o)
		if err != nil {
			w.catchUp(a, len(w.log)-1) // a failed transaction occupies a number in the log too
			return claim.Result{Err: err, Failed: i}
		}
		res.Path = name
		if n := view[name]; n != nil {
			res.Stat = n.Stat()
		}
	}
	if w.effect != nil && w.effect(a, ops) {
		a.done++
	}
	w.counts = counts
	w.commit(view)
	w.catchUp(a, len(w.log)-1)
	return res
}

func (w *singleWorld) writeOne(a *actor, view map[string]*claimtest.Node, counts map[string]int32, o claim.Op) (string, error) {
	n, parent := view[o.Path], path.Dir(o.Path)
	switch {
	case o.Kind == claim.OpCreate && view[parent] == nil, o.Kind != claim.OpCreate && n == nil:
		return "", wire.ErrNoNode
	case o.Kind == claim.OpCreate && n != nil:
		return "", wire.ErrNodeExists
	case o.Kind != claim.OpCreate && o.Version != claim.AnyVersion && o.Version != n.Version && !w.broken.loose:
		return "", wire.ErrBadVersion
	}
	switch name := o.Path; o.Kind {
	case claim.OpCreate:
		made := &claimtest.Node{Data: string(o.Data), Czxid: wire.Zxid(len(w.log)), Mzxid: wire.Zxid(len(w.log)), Ctime: w.clock()}
		if !o.Persistent {
			made.Owner = a.session
		}
		if w.apart {
			made.Version = int32(1000 * len(w.log))
		}
		if o.Sequential {
			name += claim.FormatSeq(counts[parent])
		}
		counts[parent]++
		view[name] = made
		return name, nil
	case claim.OpSet:
		view[name] = &claimtest.Node{Data: string(o.Data), Owner: n.Owner, Czxid: n.Czxid, Mzxid: wire.Zxid(len(w.log)), Version: n.Version + 1, Ctime: n.Ctime}
	case claim.OpDelete:
		delete(view, name)
	}
	return o.Path, nil
}

// deliver hands the next message to the state machine.
func (w *singleWorld) deliver(a *actor) {
	if len(a.inbox) > 0 {
		ev := a.inbox[0]
		a.inbox = a.inbox[1:]
		w.step(a, ev)
	}
}

func (w *singleWorld) step(a *actor, ev claim.Event) {
	if a.m == nil {
		return
	}
	if _, gone := ev.(claim.Disconnected); gone {
		a.inbox = append(a.inbox, claim.Attached{Session: a.session})
	}
	a.m.Step(claim.Moment{Mono: w.now, Wall: w.now}, ev)
	if w.broken.blind {
		forgetDoubt(a.m)
	}
	rd := a.m.Ready()
	w.note(a, ev, rd)
	a.wake = 0
	if rd.Wake > 0 {
		a.wake = w.now + rd.Wake
	}
	for _, h := range rd.Observations {
		w.tellf("%s: %v", a.name, h)
	}
	if rd.Request != nil {
		if a.req, a.results, a.plan = rd.Request, nil, nil; a.m.Over() {
			w.violated("%s: %T is over, and asks for more", a.name, a.m)
		}
	}
	if c, ok := a.m.(*value.Change); ok {
		if old, awaited := c.Old(); awaited {
			_, data, _ := value.AddCounter(value.DecimalCounter, old, 1)
			w.step(a, value.Propose{Data: data})
			return
		}
	}
	if w.stepped != nil {
		w.stepped(a)
	}
	if a.m.Over() {
		w.ended(a, false)
		w.next(a)
	}
}

// note notes a step of an actor.
func (w *singleWorld) note(a *actor, ev claim.Event, rd claim.Ready) {
	if w.history == nil {
		return
	}
	state := fmt.Sprintf("%T", a.m)
	if a.m.Over() {
		state += fmt.Sprintf(" is over: %v, in doubt about session %v", a.m.Outcome(), a.m.Doubt())
	}
	w.history.Step(w.now, a.name, ev, rd, state)
}

// forgetDoubt makes an operation treat a lost answer as a refusal.
func forgetDoubt(m claimtest.Single) {
	var a *claim.Requester
	switch m := m.(type) {
	case *queues.Put:
		a = &m.Requester
	case *queues.Take:
		a = &m.Requester
	case *queues.Acknowledgement:
		a = &m.Requester
	case *value.Change:
		a = &m.Requester
	case *value.Announce:
		a = &m.Requester
	default:
		return
	}
	if a.Asked == 0 {
		a.InDoubt = 0
	}
}

// ended compares the outcome that an operation reports with what the operation did.
func (w *singleWorld) ended(a *actor, crashed bool) {
	o := a.m.Outcome()
	w.tellf("%s: %T %v, %d times", a.name, a.m, o, a.done)
	least, most := 0, 1
	if take, ok := a.m.(*queues.Take); ok && take.Config.Claims != "" {
		most = 1000 // a claimed item can come back, and can then be claimed again
	}
	elsewhere := false
	switch a.m.(type) {
	case *barrier.Member, *registry.Registrant, *registry.Removal: // these have models of their own
		elsewhere = true
	}
	switch {
	case crashed || o == claim.Unclear || elsewhere:
	case o == claim.Succeeded:
		least = 1
	default:
		most = 0
		if take, ok := a.m.(*queues.Take); ok && take.Config.Claims != "" {
			most = 1000
		}
	}
	if w.effect != nil && (a.done < least || a.done > most) {
		w.violated("%s: %T has %v, and did it %d times", a.name, a.m, o, a.done)
	}
	if a.ended != nil && !crashed {
		a.ended(a.m)
	}
}

// act chooses at random what happens next: a step of an actor, or a fault.
func (w *singleWorld) act() {
	a := w.actors[w.choose(len(w.actors))]
	switch n := w.choose(40); {
	case n < 18:
		w.serve(a)
	case n < 34:
		w.deliver(a)
	case n == 34:
		w.lose(a)
	case n == 35 && w.choose(3) == 0:
		w.expire(a)
	case n == 36 && w.choose(3) == 0:
		w.crash(a)
	case n == 38 && len(w.dead) > 0:
		w.removeSession(w.dead[0])
		w.dead = w.dead[1:]
	case n == 37 && w.choose(4) == 0:
		w.tellf("%s gives up", a.name)
		w.step(a, claim.Resign{})
	default:
		w.pass(time.Duration(w.choose(500)) * time.Millisecond)
	}
}

// pass advances the time, and wakes the actors whose timers have fired.
func (w *singleWorld) pass(d time.Duration) {
	w.now += d
	for _, a := range w.actors {
		if a.wake != 0 && w.now >= a.wake {
			a.wake = 0
			w.step(a, claim.Tick{})
		}
	}
}

// settle runs the actors without faults until nothing is left to do.
func (w *singleWorld) settle() {
	for _, id := range w.dead {
		w.removeSession(id)
	}
	for round := 0; round < 2000 && w.wrong == ""; round++ {
		busy := false
		for _, a := range w.actors {
			w.catchUp(a, len(w.log)-1)
			busy = busy || a.req != nil || len(a.inbox) > 0 || a.wake != 0
			w.serve(a)
			w.deliver(a)
		}
		if w.pass(100 * time.Millisecond); !busy {
			return
		}
	}
	w.violated("it does not come to rest")
}
