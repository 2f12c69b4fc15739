package claim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"bellwether/wire"
)

// The model of single operations: a tree behind servers that lag, sessions
// that end, answers that are lost, and actors that crash and begin anew with
// nothing. What an operation says of itself is compared with what it did.

// single is the state machine of one.
type single interface {
	Step(Moment, Event)
	Ready() Ready
	Over() bool
	Outcome() Outcome
	Doubt() wire.SessionID
}

// actor is a client of the model, with one operation at a time.
type actor struct {
	name    string
	begin   func() single // its next operation; nil: no more
	ended   func(single)  // called when one is over
	m       single
	done    int // effects of the operation
	session wire.SessionID
	seen    int // transactions, by its server
	known   int // the same by its answers: the next server is at least there
	inbox   []Event
	fires   []Event // of the request under way: after its reply
	req     *Request
	results []Result
	course  *Course           // of the operation that has no result yet; nil: it is not begun
	watches map[string]uint64 // the requests that set them, by path; those of children with a slash at its end
	wake    time.Duration
	listed  map[string][]string // what it has last listed, by parent
}

type singleWorld struct {
	choose func(int) int
	broken singleBroken
	now    time.Duration
	log    []map[string]*node // the tree after each transaction
	counts map[string]int32
	nextID wire.SessionID
	actors []*actor
	dead   []wire.SessionID // of crashed actors, not expired yet
	// effect says whether a transaction is what an operation is for; nil: what
	// operations are for is looked at elsewhere.
	effect  func(a *actor, ops []Op) bool
	stepped func(a *actor) // after each step; may be nil
	changed func()         // after each transaction; may be nil
	mute    bool           // events carry no zxid, as those of Apache's servers before 3.9
	apart   bool           // no two znodes ever have the same version
	crashes int
	wrong   string
	story   []string
}

// singleBroken are faults put in on purpose, to see that the checks notice.
type singleBroken struct {
	noSync bool // sync does nothing
	blind  bool // a lost answer leaves no doubt
	torn   bool // a transaction does its first operation alone
	keep   bool // nothing is removed of who has gone
	vague  bool // every event says that a znode was made
	loose  bool // versions are not compared
	deaf   bool // some events are lost
}

func newSingleWorld(choose func(int) int, b singleBroken) *singleWorld {
	return &singleWorld{choose: choose, broken: b, log: []map[string]*node{{"/": {}}}, counts: map[string]int32{}}
}

func (w *singleWorld) tellf(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%7.1fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *singleWorld) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.wrong)
	}
}

// clock is the time by which the leader stamps znodes, in ms since 1970. No actor's clock shows it.
func (w *singleWorld) clock() int64 { return 1_000_000_000_000 + w.now.Milliseconds() }

func (w *singleWorld) tree() map[string]*node { return w.log[len(w.log)-1] }

// add gives the world another actor.
func (w *singleWorld) add(name string, begin func() single, ended func(single)) *actor {
	a := &actor{name: name, begin: begin, ended: ended, watches: map[string]uint64{}, listed: map[string][]string{}}
	w.actors = append(w.actors, a)
	w.enter(a)
	w.next(a)
	return a
}

// enter gives an actor a session.
func (w *singleWorld) enter(a *actor) {
	w.nextID++
	a.session, a.watches, a.known = w.nextID, map[string]uint64{}, 0
}

// next begins the actor's next operation.
func (w *singleWorld) next(a *actor) {
	a.m, a.done, a.req, a.results, a.course, a.fires, a.inbox, a.wake = a.begin(), 0, nil, nil, nil, nil, nil, 0
	if a.m != nil {
		a.inbox = append(a.inbox, Attached{Session: a.session})
	}
}

// crash ends an actor's process; its session lives on for a while.
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

// bury removes what a session leaves.
func (w *singleWorld) bury(id wire.SessionID) {
	if w.broken.keep {
		return
	}
	w.tellf("session %v expires", id)
	view := maps.Clone(w.tree())
	for p, n := range view {
		if n.owner == id {
			delete(view, p)
		}
	}
	w.commit(view)
}

// expire ends the session of an actor that goes on.
func (w *singleWorld) expire(a *actor) {
	w.lose(a)
	old := a.session
	w.enter(a)
	w.bury(old)
	a.inbox = append(a.inbox, Expired{}, Attached{Session: a.session})
}

func (w *singleWorld) commit(view map[string]*node) {
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

// catchUp lets an actor's server apply what it has not yet; watches fire.
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
				a.known = a.seen // an event tells it
			}
			delete(a.watches, p)
			if w.broken.deaf && w.choose(4) == 0 {
				continue
			}
			if fired := (Fired{parent, w.event(before[p], after[p], kids), by}); a.req != nil && by == a.req.N {
				a.fires = append(a.fires, fired)
			} else {
				a.inbox = append(a.inbox, fired)
			}
		}
	}
}

// event is the type of what has become of a znode.
func (w *singleWorld) event(before, after *node, kids bool) wire.EventType {
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

func children(view map[string]*node, parent string) []string {
	var names []string
	for p := range view {
		if p != "/" && path.Dir(p) == parent {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

// serve carries out what comes next of an actor's request.
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
	a.results = proceed(&a.course, a.results, a.req.Ops, func(op Op) Result { return w.carryOut(a, op) })
}

func (w *singleWorld) answer(a *actor) {
	a.inbox = append(a.inbox, Reply{a.req.N, a.results})
	a.inbox = append(a.inbox, a.fires...)
	if !slices.ContainsFunc(a.results, func(r Result) bool { return r.Err == wire.ErrConnectionLoss }) {
		a.known = a.seen
	}
	a.req, a.results, a.course, a.fires = nil, nil, nil, nil
}

// lose ends the connection: some operations are carried out, the replies of
// all or of some are lost.
func (w *singleWorld) lose(a *actor) {
	a.inbox = append(a.inbox, Disconnected{})
	if a.req == nil {
		return
	}
	for n := w.choose(len(a.req.Ops) - len(a.results) + 1); n > 0 && len(a.results) < len(a.req.Ops); n-- {
		w.proceed(a)
	}
	w.tellf("%s loses replies after %d operations", a.name, len(a.results))
	if a.results = a.results[:w.choose(len(a.results)+1)]; len(a.results) > 0 {
		a.known = a.seen // the first of them tells it
	}
	for len(a.results) < len(a.req.Ops) {
		switch op := a.req.Ops[len(a.results)]; op.Kind {
		case OpWatch, OpExists, OpAwait:
			delete(a.watches, op.Path)
		case OpWatchAll:
			delete(a.watches, op.Path+"/")
		}
		a.results = append(a.results, Result{Err: wire.ErrConnectionLoss})
	}
	w.answer(a)
	a.seen = a.known + w.choose(a.seen-a.known+1) // of the server that it connects to next
}

func (w *singleWorld) carryOut(a *actor, op Op) Result {
	view := w.log[a.seen]
	switch {
	case a.req.Session != a.session:
		return Result{Err: wire.ErrSessionExpired}
	case op.Kind == OpSync:
		if !w.broken.noSync {
			w.catchUp(a, len(w.log)-1)
		}
	case op.Kind == OpUnwatch:
		delete(a.watches, op.Path)
		delete(a.watches, op.Path+"/")
	case op.Kind == OpList || op.Kind == OpWatchAll:
		if view[op.Path] == nil {
			return Result{Err: wire.ErrNoNode}
		}
		if op.Kind == OpWatchAll {
			a.watches[op.Path+"/"] = a.req.N
		}
		a.listed[op.Path] = children(view, op.Path)
		return Result{Names: a.listed[op.Path]}
	case op.Kind == OpGet || op.Kind == OpWatch || op.Kind == OpExists || op.Kind == OpStat:
		n := view[op.Path]
		if op.Kind == OpExists || op.Kind == OpWatch && n != nil {
			a.watches[op.Path] = a.req.N
		}
		if n == nil {
			return Result{Err: wire.ErrNoNode}
		}
		return Result{Data: []byte(n.data), Stat: n.stat()}
	default:
		return w.write(a, op)
	}
	return Result{}
}

func (n *node) stat() wire.Stat {
	return wire.Stat{Czxid: n.czxid, Mzxid: n.mzxid, EphemeralOwner: n.owner, Version: n.version, Ctime: n.ctime}
}

// write is carried out at the leader, all of it or nothing.
func (w *singleWorld) write(a *actor, op Op) Result {
	ops := []Op{op}
	if op.Kind == OpMulti {
		ops = op.Ops
	}
	if w.broken.torn && w.choose(3) == 0 {
		ops = ops[:min(len(ops), 1)]
	}
	view, counts, res := maps.Clone(w.tree()), maps.Clone(w.counts), Result{Failed: -1}
	for i, o := range ops {
		name, err := w.writeOne(a, view, counts, o)
		if err != nil {
			w.catchUp(a, len(w.log)-1) // an error has its place in the log too
			return Result{Err: err, Failed: i}
		}
		res.Path = name
		if n := view[name]; n != nil {
			res.Stat = n.stat()
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

func (w *singleWorld) writeOne(a *actor, view map[string]*node, counts map[string]int32, o Op) (string, error) {
	n, parent := view[o.Path], path.Dir(o.Path)
	switch {
	case o.Kind == OpCreate && view[parent] == nil, o.Kind != OpCreate && n == nil:
		return "", wire.ErrNoNode
	case o.Kind == OpCreate && n != nil:
		return "", wire.ErrNodeExists
	case o.Kind != OpCreate && o.Version != AnyVersion && o.Version != n.version && !w.broken.loose:
		return "", wire.ErrBadVersion
	}
	switch name := o.Path; o.Kind {
	case OpCreate:
		made := &node{data: string(o.Data), czxid: wire.Zxid(len(w.log)), mzxid: wire.Zxid(len(w.log)), ctime: w.clock()}
		if !o.Persistent {
			made.owner = a.session
		}
		if w.apart {
			made.version = int32(1000 * len(w.log))
		}
		if o.Sequential {
			name += FormatSeq(counts[parent])
		}
		counts[parent]++
		view[name] = made
		return name, nil
	case OpSet:
		view[name] = &node{data: string(o.Data), owner: n.owner, czxid: n.czxid, mzxid: wire.Zxid(len(w.log)), version: n.version + 1, ctime: n.ctime}
	case OpDelete:
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

func (w *singleWorld) step(a *actor, ev Event) {
	if a.m == nil {
		return
	}
	if _, gone := ev.(Disconnected); gone {
		a.inbox = append(a.inbox, Attached{Session: a.session})
	}
	a.m.Step(Moment{Mono: w.now, Wall: w.now}, ev)
	if w.broken.blind {
		forgetDoubt(a.m)
	}
	rd := a.m.Ready()
	a.wake = 0
	if rd.Wake > 0 {
		a.wake = w.now + rd.Wake
	}
	for _, h := range rd.Happenings {
		w.tellf("%s: %v", a.name, h)
	}
	if rd.Request != nil {
		if a.req, a.results, a.course = rd.Request, nil, nil; a.m.Over() {
			w.violated("%s: %T is over, and asks for more", a.name, a.m)
		}
	}
	if c, ok := a.m.(*Change); ok {
		if old, awaited := c.Old(); awaited {
			_, data, _ := DecimalCounter.Add(old, 1)
			w.step(a, Propose{data})
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

// forgetDoubt takes a lost answer for a refusal.
func forgetDoubt(m single) {
	var a *asker
	switch m := m.(type) {
	case *Put:
		a = &m.asker
	case *Take:
		a = &m.asker
	case *HandIn:
		a = &m.asker
	case *Change:
		a = &m.asker
	case *Announce:
		a = &m.asker
	default:
		return
	}
	if a.asked == 0 {
		a.doubt = 0
	}
}

// ended compares what an operation says of itself with what it did.
func (w *singleWorld) ended(a *actor, crashed bool) {
	o := a.m.Outcome()
	w.tellf("%s: %T %v, %d times", a.name, a.m, o, a.done)
	least, most := 0, 1
	if take, ok := a.m.(*Take); ok && take.cfg.Claims != "" {
		most = 1000 // what was claimed comes back, and is claimed again
	}
	elsewhere := false
	switch a.m.(type) {
	case *Member, *Registrant, *Removal: // which their own worlds look at
		elsewhere = true
	}
	switch {
	case crashed || o == Unclear || elsewhere:
	case o == Succeeded:
		least = 1
	default:
		most = 0
		if take, ok := a.m.(*Take); ok && take.cfg.Claims != "" {
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

// act lets something happen.
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
		w.bury(w.dead[0])
		w.dead = w.dead[1:]
	case n == 37 && w.choose(4) == 0:
		w.tellf("%s gives up", a.name)
		w.step(a, Resign{})
	default:
		w.pass(time.Duration(w.choose(500)) * time.Millisecond)
	}
}

// pass lets time pass.
func (w *singleWorld) pass(d time.Duration) {
	w.now += d
	for _, a := range w.actors {
		if a.wake != 0 && w.now >= a.wake {
			a.wake = 0
			w.step(a, Tick{})
		}
	}
}

// settle lets everything happen that can, without faults.
func (w *singleWorld) settle() {
	for _, id := range w.dead {
		w.bury(id)
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
