package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"

	"pgregory.net/rapid"
)

// The model of a cache has a tree whose servers lag behind the log, a connection that can be lost, a
// session that can end, and watches that behave like those of ZooKeeper's servers. The tests compare what
// the cache reports with the history of each znode.

const cacheRoot = "/r"

// leaf is an immutable znode of the model.
type leaf struct{ czxid, mzxid, pzxid wire.Zxid }

// cacheWorld is one cache and the server that it is connected to.
type cacheWorld struct {
	choose  func(int) int
	now     time.Duration
	old     bool // the servers do not support tree watches
	log     []map[string]leaf
	seen    int // number of transactions that the cache's server has applied
	session wire.SessionID
	linked  bool
	// answered and heard are the last transactions that the client knows from answers and from events. The
	// next server has applied them.
	answered, heard int

	m       *Cache
	inbox   []parcel
	req     *claim.Request
	results []claim.Result
	served  bool            // the answer is on its way
	stream  bool            // the tree is watched, or OpListen is active
	once    map[string]bool // one-shot watches; a path with a slash at its end stands for a watch on children
	asked   *claim.Since    // the OpSince that is being answered
	gather  []claim.TreeEvent

	told    map[string]*Node
	last    map[string]wire.Zxid
	wrong   string
	trace   []string
	history *claimtest.History // notes what the cache is told and asks for; nil: nobody does
	refuses int                // the server refuses one of so many operations; 0: none
}

// parcel is an event on its way to the cache, and the last transaction that the server had applied.
type parcel struct {
	ev claim.Event
	at int
}

func newCacheWorld(choose func(int) int) *cacheWorld {
	w := &cacheWorld{choose: choose, log: []map[string]leaf{{}}, session: 1, once: map[string]bool{}, told: map[string]*Node{}, last: map[string]wire.Zxid{}}
	w.old = choose(2) == 0
	w.m = NewCache(Config{Root: cacheRoot, ChildrenOnly: choose(4) == 0, NodesMax: 1000, BytesMax: 1000})
	return w
}

func (w *cacheWorld) tellf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *cacheWorld) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.wrong)
	}
}

var cachePaths = []string{cacheRoot, cacheRoot + "/a", cacheRoot + "/b", cacheRoot + "/a/x", cacheRoot + "/a/y", cacheRoot + "/a/x/z"}

// write creates, sets or deletes a znode.
func (w *cacheWorld) write() {
	view, z := maps.Clone(w.log[len(w.log)-1]), wire.Zxid(len(w.log))
	p := cachePaths[w.choose(len(cachePaths))]
	n, there := view[p]
	parent, rooted := view[path.Dir(p)]
	switch below := slices.ContainsFunc(slices.Collect(maps.Keys(view)), func(o string) bool { return path.Dir(o) == p }); {
	case !there && (rooted || p == cacheRoot):
		view[p] = leaf{z, z, z}
	case there && !below && w.choose(2) == 0:
		delete(view, p)
	case there:
		n.mzxid = z
		view[p] = n
	}
	if _, now := view[p]; now != there && rooted {
		parent.pzxid = z
		view[path.Dir(p)] = parent
	}
	w.log = append(w.log, view)
	w.tellf("%v: %s is %v", z, p, view[p])
}

// apply lets the server apply the next transaction and send its events.
func (w *cacheWorld) apply() {
	if !w.linked || w.seen == len(w.log)-1 {
		return
	}
	before, after := w.log[w.seen], w.log[w.seen+1]
	w.seen++
	for _, p := range cachePaths {
		a, was := before[p]
		b, is := after[p]
		switch {
		case !was && is:
			w.fire(wire.EventNodeCreated, p)
		case was && !is:
			w.fire(wire.EventNodeDeleted, p)
		case a.mzxid != b.mzxid:
			w.fire(wire.EventNodeDataChanged, p)
		}
		if was && is && a.pzxid != b.pzxid {
			w.fire(wire.EventNodeChildrenChanged, p)
		}
	}
}

// fire sends an event if a watch is set.
func (w *cacheWorld) fire(typ wire.EventType, p string) {
	data, childNames := w.once[p], w.once[p+"/"]
	hit := !w.old && w.stream && typ != wire.EventNodeChildrenChanged
	if typ == wire.EventNodeChildrenChanged || typ == wire.EventNodeDeleted {
		hit = hit || childNames
		delete(w.once, p+"/")
	}
	if typ != wire.EventNodeChildrenChanged {
		hit = hit || data
		delete(w.once, p)
	}
	if hit && w.linked {
		w.event(claim.TreeEvent{Type: typ, Path: p, Zxid: -1})
	}
}

// event adds an event to the connection, or to the result of an OpSince.
func (w *cacheWorld) event(e claim.TreeEvent) {
	s := w.asked
	switch {
	case s != nil && (e.Type == wire.EventNodeDataChanged && slices.Contains(s.Paths, e.Path) ||
		e.Type == wire.EventNodeChildrenChanged && slices.Contains(s.Parents, e.Path) ||
		e.Type == wire.EventNodeDeleted && slices.Contains(s.Paths, e.Path)):
		w.gather = append(w.gather, e)
	case w.stream && (w.old || e.Type != wire.EventNodeChildrenChanged):
		w.send(claim.TreeEvents{Events: []claim.TreeEvent{e}})
	}
}

// serve carries out the next operation.
func (w *cacheWorld) serve() {
	if w.req == nil || !w.linked || w.served {
		return
	}
	if s := w.asked; s != nil { // events that occurred meanwhile are part of the result too
		w.asked = nil
		w.results = append(w.results, claim.Result{Changes: w.gather})
	} else if op := w.req.Ops[len(w.results)]; op.Kind == claim.OpSince {
		w.asked, w.gather = op.Since, nil
		w.setAgain(op.Since.Zxid, op.Since.Paths, op.Since.Parents)
		return
	} else if n := w.together(); n > 1 && w.choose(10) == 0 {
		for range n {
			w.results = append(w.results, claim.Result{Err: ErrTooLarge})
		}
	} else {
		for range max(n, 1) {
			w.results = append(w.results, w.carryOut(w.req.Ops[len(w.results)]))
		}
	}
	w.answer()
}

// together returns the number of plain reads that come next.
func (w *cacheWorld) together() int {
	ops := w.req.Ops[len(w.results):]
	n := slices.IndexFunc(ops, func(op claim.Op) bool { return op.Alone || op.Kind != claim.OpGet && op.Kind != claim.OpList })
	if n < 0 {
		return len(ops)
	}
	return n
}

func (w *cacheWorld) answer() {
	if len(w.results) == len(w.req.Ops) {
		w.send(claim.Reply{N: w.req.N, Results: w.results})
		w.served = true
	}
}

func (w *cacheWorld) carryOut(op claim.Op) claim.Result {
	if w.refuses > 0 && w.choose(w.refuses) == 0 {
		return claimtest.Refused
	}
	view := w.log[w.seen]
	n, there := view[op.Path]
	switch op.Kind {
	case claim.OpWatchTree:
		if w.old {
			return claim.Result{Err: wire.ErrUnimplemented}
		}
		w.stream = true
		return claim.Result{}
	case claim.OpListen:
		w.stream = true
		return claim.Result{}
	case claim.OpUnwatch:
		w.stream = false
		return claim.Result{}
	case claim.OpSync:
		for w.seen < len(w.log)-1 {
			w.apply()
		}
		return claim.Result{}
	case claim.OpExists:
		w.once[op.Path] = true
	case claim.OpWatch:
		w.once[op.Path] = there
	case claim.OpWatchAll:
		w.once[op.Path+"/"] = there
	}
	if !there {
		return claim.Result{Err: wire.ErrNoNode}
	}
	r := claim.Result{Data: []byte(fmt.Sprint(n.mzxid)), Stat: wire.Stat{Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid}}
	if op.Kind == claim.OpList || op.Kind == claim.OpWatchAll {
		r.Data = nil
		for p := range view {
			if path.Dir(p) == op.Path {
				r.Names = append(r.Names, path.Base(p))
			}
		}
		slices.Sort(r.Names)
	}
	return r
}

// setAgain models setWatches: it reports what has changed after z, and sets the other watches.
func (w *cacheWorld) setAgain(z wire.Zxid, data, childNames []string) {
	view := w.log[w.seen]
	for _, p := range slices.Sorted(slices.Values(data)) {
		switch n, there := view[p]; {
		case !there:
			w.event(claim.TreeEvent{Type: wire.EventNodeDeleted, Path: p, Zxid: -1})
		case n.mzxid > z:
			w.event(claim.TreeEvent{Type: wire.EventNodeDataChanged, Path: p, Zxid: -1})
		default:
			w.once[p] = true
		}
	}
	for _, p := range slices.Sorted(slices.Values(childNames)) {
		switch n, there := view[p]; {
		case !there:
			w.event(claim.TreeEvent{Type: wire.EventNodeDeleted, Path: p, Zxid: -1})
		case n.pzxid > z:
			w.event(claim.TreeEvent{Type: wire.EventNodeChildrenChanged, Path: p, Zxid: -1})
		default:
			w.once[p+"/"] = true
		}
	}
}

// lose ends the connection. Only a part of what is on its way arrives.
func (w *cacheWorld) lose() {
	if !w.linked {
		return
	}
	for n := w.choose(len(w.inbox) + 1); n > 0; n-- {
		w.deliver()
	}
	w.tellf("the connection is lost")
	for _, p := range w.inbox {
		if t, ok := p.ev.(claim.TreeEvents); ok {
			w.stands(t.Events[0])
		}
	}
	w.linked, w.asked, w.inbox, w.results = false, nil, nil, nil
	w.step(claim.Disconnected{})
	if w.req != nil {
		lost := make([]claim.Result, len(w.req.Ops))
		for i := range lost {
			lost[i].Err = wire.ErrConnectionLoss
		}
		n := w.req.N
		w.req = nil
		w.step(claim.Reply{N: n, Results: lost})
	}
}

// stands reports whether the client still relies on watches whose event it has not received.
func (w *cacheWorld) stands(e claim.TreeEvent) {
	if e.Type != wire.EventNodeChildrenChanged {
		w.once[e.Path] = true
	}
	if e.Type == wire.EventNodeChildrenChanged || e.Type == wire.EventNodeDeleted {
		w.once[e.Path+"/"] = true
	}
}

// expire ends the session.
func (w *cacheWorld) expire() {
	w.lose()
	w.tellf("the session ends")
	w.session++
	w.once = map[string]bool{}
	w.step(claim.Expired{})
	if w.stream {
		w.stream = false
		w.step(claim.TreeWatchOver{Zxid: wire.Zxid(w.answered)})
	}
	w.answered, w.heard = 0, 0
}

// connect connects to a server that has applied everything that the session was shown.
func (w *cacheWorld) connect() {
	if w.linked || len(w.inbox) > 0 {
		return
	}
	w.seen = max(w.answered, w.heard) + w.choose(len(w.log)-max(w.answered, w.heard))
	w.tellf("connected to a server at %d", w.seen)
	w.linked = true
	if w.stream {
		w.send(claim.TreeEvents{Events: []claim.TreeEvent{{Type: wire.EventNone, Zxid: wire.Zxid(w.answered)}}})
	}
	w.again()
	w.send(claim.Attached{Session: w.session})
}

// again sets the one-shot watches again.
func (w *cacheWorld) again() {
	var data, childNames []string
	for _, p := range slices.Sorted(maps.Keys(w.once)) {
		parent, isKids := strings.CutSuffix(p, "/")
		_, there := w.log[w.seen][parent]
		switch held := w.told[parent] != nil; {
		case !w.once[p]:
		case isKids:
			childNames = append(childNames, parent)
		case !held && parent == cacheRoot: // set by an exists request
			if there {
				w.event(claim.TreeEvent{Type: wire.EventNodeCreated, Path: parent, Zxid: -1})
			}
		default:
			data = append(data, parent)
		}
	}
	exists := w.once[cacheRoot] && w.told[cacheRoot] == nil
	w.once = map[string]bool{cacheRoot: exists}
	if w.old {
		w.setAgain(wire.Zxid(w.answered), data, childNames)
	}
}

// send puts an event on its way to the cache.
func (w *cacheWorld) send(ev claim.Event) { w.inbox = append(w.inbox, parcel{ev, w.seen}) }

// deliver steps the next event that has arrived.
func (w *cacheWorld) deliver() {
	if len(w.inbox) == 0 {
		return
	}
	p := w.inbox[0]
	w.inbox = w.inbox[1:]
	switch p.ev.(type) {
	case claim.Reply:
		w.req = nil
		w.answered = max(w.answered, p.at)
	case claim.TreeEvents:
		w.heard = max(w.heard, p.at)
	}
	w.step(p.ev)
}

func (w *cacheWorld) step(ev claim.Event) {
	w.m.Step(claim.Moment{Mono: w.now, Wall: w.now}, ev)
	rd := w.m.Ready()
	reported := w.m.Events()
	if w.history != nil {
		state := fmt.Sprintf("%d znodes, stale: %v", w.m.Len(), w.m.Stale())
		for _, e := range reported {
			if state += fmt.Sprintf("; %v", e.Type); e.Node != nil {
				state += fmt.Sprintf(" %s, made by %v, set by %v", e.Node.Path, e.Node.Stat.Czxid, e.Node.Stat.Mzxid)
			}
		}
		w.history.Step(w.now, "cache", ev, rd, state)
	}
	for _, e := range reported {
		w.check(e)
	}
	if rd.Request != nil {
		w.req, w.results, w.served = rd.Request, nil, false
	}
	for p, n := range w.told {
		if got := w.m.Get(p); got == nil || got.Stat.Mzxid != n.Stat.Mzxid || w.m.Len() != len(w.told) {
			w.violated("%s is shown as %v, told was %v", p, got, n)
		}
	}
	if w.m.Over() {
		w.violated("it ends: %v %v", w.m.Outcome(), w.m.Err())
	}
}

// check compares what the cache reports with the history.
func (w *cacheWorld) check(e Event) {
	if e.Node == nil {
		return
	}
	p, s := e.Node.Path, e.Node.Stat
	w.tellf("%v %s, made at %v, set at %v", e.Type, p, s.Czxid, s.Mzxid)
	real := w.log[s.Mzxid][p]
	switch had := w.told[p]; {
	case real.czxid != s.Czxid || real.mzxid != s.Mzxid:
		w.violated("%s never was so", p)
	case (e.Type == NodeAdded) != (had == nil):
		w.violated("%s was there: %v", p, had != nil)
	case e.Type == NodeAdded && (s.Czxid < w.last[p] || p != cacheRoot && w.told[path.Dir(p)] == nil):
		w.violated("%s comes back, or before its parent", p)
	case e.Type == NodeChanged && (s.Mzxid <= w.last[p] || had.Stat.Czxid != s.Czxid):
		w.violated("%s goes back", p)
	}
	if w.told[p], w.last[p] = e.Node, s.Mzxid; e.Type != NodeRemoved {
		return
	}
	delete(w.told, p)
	for w.last[p] < wire.Zxid(len(w.log)) && w.log[w.last[p]][p].czxid == s.Czxid {
		w.last[p]++
	}
	if w.last[p] == wire.Zxid(len(w.log)) {
		w.violated("%s goes, and is there", p)
	}
}

// pass lets time pass, so that a pause ends.
func (w *cacheWorld) pass(d time.Duration) {
	w.now += d
	w.step(claim.Tick{})
}

// run plays one history: first faults, then none. At the end the cache must equal the tree.
func (w *cacheWorld) run(steps int) {
	for ; steps > 0 && w.wrong == ""; steps-- {
		switch n := w.choose(32); {
		case n >= 30:
			w.pass(claimtest.Pauses[w.choose(len(claimtest.Pauses))])
		case n < 4:
			w.write()
		case n < 10:
			w.apply()
		case n < 18:
			w.serve()
		case n < 26:
			w.deliver()
		case n < 28:
			w.connect()
		case n == 28:
			w.lose()
		case w.choose(3) == 0:
			w.expire()
		}
	}
	for range 1000 {
		w.connect()
		w.apply()
		w.serve()
		w.deliver()
		w.pass(claim.BackoffMax)
	}
	n := 0
	for p, l := range w.log[len(w.log)-1] {
		if got := w.m.Get(p); w.m.Covers(p) && (got == nil || got.Stat.Mzxid != l.mzxid) {
			w.violated("%s of %v is not shown in the end: %v", p, l.mzxid, got)
		} else if w.m.Covers(p) {
			n++
		}
	}
	if n != w.m.Len() || w.m.Stale() {
		w.violated("%d znodes are shown in the end, there are %d; stale %v", w.m.Len(), n, w.m.Stale())
	}
}

func (w *cacheWorld) fail(t interface{ Fatalf(string, ...any) }) {
	if w.wrong != "" {
		t.Fatalf("%s\n%s", w.wrong, strings.Join(w.trace[max(0, len(w.trace)-80):], "\n"))
	}
}

// TestCacheUnderFaults checks that the cache shows only states that existed, never returns to an older
// one, and equals the tree at the end.
func TestCacheUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCacheWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		w.run(rapid.IntRange(0, 400).Draw(t, "steps"))
		w.fail(t)
	})
}

// TestCacheSeeds checks the rules of TestCacheUnderFaults in longer histories.
func TestCacheSeeds(t *testing.T) {
	for seed := range uint64(claimtest.Seeds) {
		w := newCacheWorld(seededChoice(seed))
		if w.run(2000); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

func seededChoice(seed uint64) func(int) int {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(n int) int { return r.IntN(n) }
}
