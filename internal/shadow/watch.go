package shadow

import (
	"slices"
	"strings"

	"bellwether/wire"
)

// watchesMax is how many watches of a connection are followed.
const watchesMax = 1 << 17

// never is a zxid that no server reaches.
const never = wire.Zxid(1<<63 - 1)

// pending is the doubt about a watch that ends only when the watch is set again, or has fired at the observer.
const pending = never

// watchKind is a kind of watch. A path can have one of each kind.
type watchKind int

// The kinds.
const (
	dataWatch  watchKind = iota // exists and getData, once
	childWatch                  // getChildren, once
	persistentWatch
	recursiveWatch
)

type watchKey struct {
	kind watchKind
	path string
}

// Observed is a watch event of the observer.
type Observed struct {
	wire.WatcherEvent
	Zxid wire.Zxid // of the transaction; -1: setWatches has found that it had happened before
}

// EventResult is the outcome for one event: a difference, a reason, or neither if the event is the same.
type EventResult struct {
	Path       string
	At         wire.Zxid // of the observer's event, 0: none
	Why        Reason
	Difference *Difference
}

// Watches compares the watch events of one connection with those of a session at the observer that sets the same
// watches. The observer sets each watch later than the old server. The events are the same only if nothing has changed in
// between that fires the watch; else there is a doubt about the watch.
type Watches struct {
	doubts map[watchKey]doubt
	ahead  []Observed // events later than the last reply
	set    wire.Zxid  // of the observer when the last watch was set
	lost   bool       // the watches are not known any more
}

// doubt is what is known of one watch.
type doubt struct {
	until wire.Zxid // up to there the servers may send different events
	set   wire.Zxid // of the observer when it set the watch: earlier events are those of a watch that was there before
}

// NewWatches returns an empty set.
func NewWatches() *Watches { return &Watches{doubts: map[watchKey]doubt{}} }

// Lose notes that a request or an event was not followed. From now on nothing is compared.
func (w *Watches) Lose() { *w = Watches{lost: true} }

// Restart notes that the observer's session has ended and with it all watches. It returns the persistent watches. The caller
// sets them again and notes them with Follow.
func (w *Watches) Restart() (again []wire.AddWatchRequest) {
	w.ahead = nil
	for key := range w.doubts {
		w.doubts[key] = doubt{until: pending}
		switch key.kind {
		case persistentWatch:
			again = append(again, wire.AddWatchRequest{Path: key.path})
		case recursiveWatch:
			again = append(again, wire.AddWatchRequest{Path: key.path, Mode: wire.WatchPersistentRecursive})
		}
	}
	return again
}

// Skip notes that the observer did not reach the zxid of a reply, so that its events up to there come too late.
func (w *Watches) Skip(z wire.Zxid) {
	for key, d := range w.doubts {
		if key.kind == dataWatch || key.kind == childWatch {
			d.until = pending
		} else {
			d.until = max(d.until, z)
		}
		w.doubts[key] = d
	}
}

// Follow notes that the observer has carried out a request about watches at the zxid at. settled says that nothing has
// changed since the old server's reply that fires a watch of the request.
func (w *Watches) Follow(op wire.OpCode, body wire.Record, at wire.Zxid, settled bool) {
	if len(w.doubts) >= watchesMax {
		w.Lose()
	}
	if w.lost {
		return
	}
	w.set = at
	once := pending
	if settled {
		once = 0
	}
	switch r := body.(type) {
	case *wire.PathWatchRequest:
		w.put(kindOf(op), once, r.Path)
	case *wire.AddWatchRequest:
		if r.Mode == wire.WatchPersistentRecursive {
			w.put(recursiveWatch, at, r.Path)
		} else {
			w.put(persistentWatch, at, r.Path)
		}
	case *wire.WatchesRequest:
		if op == wire.OpRemoveWatches {
			w.removed(r, at)
		}
	case *wire.SetWatchesRequest:
		w.again(r, once)
	case *wire.SetWatches2Request:
		w.again(&r.SetWatchesRequest, once)
		w.put(persistentWatch, at, r.Persistent...)
		w.put(recursiveWatch, at, r.PersistentRecursive...)
	}
}

func kindOf(op wire.OpCode) watchKind {
	if op == wire.OpGetChildren || op == wire.OpGetChildren2 {
		return childWatch
	}
	return dataWatch
}

func (w *Watches) put(kind watchKind, until wire.Zxid, paths ...string) {
	for _, path := range paths {
		w.doubts[watchKey{kind, path}] = doubt{until, w.set}
	}
}

func (w *Watches) again(r *wire.SetWatchesRequest, until wire.Zxid) {
	w.put(dataWatch, until, r.Data...)
	w.put(dataWatch, until, r.Exist...)
	w.put(childWatch, until, r.Child...)
}

// removed notes that both servers have removed watches.
func (w *Watches) removed(r *wire.WatchesRequest, at wire.Zxid) {
	for kind := dataWatch; kind <= recursiveWatch; kind++ {
		key := watchKey{kind, r.Path}
		if _, ok := w.doubts[key]; ok && names(r.Type, kind) {
			w.doubts[key] = doubt{at, at}
		}
	}
}

// names reports whether a request about watches names a kind.
func names(t wire.WatcherType, kind watchKind) bool {
	switch t {
	case wire.WatcherChildren:
		return kind == childWatch
	case wire.WatcherData:
		return kind == dataWatch
	case wire.WatcherPersistent:
		return kind == persistentWatch
	case wire.WatcherPersistentRecursive:
		return kind == recursiveWatch
	}
	return true
}

// Certain reports whether there is no doubt about any watch at a path at a zxid.
func (w *Watches) Certain(path string, z wire.Zxid) bool {
	return !w.lost && !w.doubtful(&wire.WatcherEvent{Type: wire.EventNodeDeleted, Path: path}, z)
}

// doubtful reports whether only one of the servers may have sent an event of a transaction after z.
func (w *Watches) doubtful(e *wire.WatcherEvent, z wire.Zxid) bool {
	doubt := func(kind watchKind, path string) bool { return w.doubts[watchKey{kind, path}].until > z }
	if doubt(persistentWatch, e.Path) || e.Type != wire.EventNodeChildrenChanged && doubt(dataWatch, e.Path) ||
		e.Type != wire.EventNodeCreated && e.Type != wire.EventNodeDataChanged && doubt(childWatch, e.Path) {
		return true
	}
	if e.Type == wire.EventNodeChildrenChanged {
		return false
	}
	for path := e.Path; ; path = parentOf(path) {
		if doubt(recursiveWatch, path) {
			return true
		}
		if !strings.HasPrefix(path, "/") || path == "/" {
			return false
		}
	}
}

// Compare compares the events that the old server has sent between two replies with those of the observer. The observer
// has sent an event for each transaction up to the zxid of the second reply.
func (w *Watches) Compare(p *Pair, observer []Observed) (results []EventResult) {
	if w.lost {
		for _, e := range p.Events {
			results = append(results, EventResult{Path: e.Path, Why: UnsureLost})
		}
		return results
	}
	w.ahead = append(w.ahead, observer...)
	due, ahead := w.ahead, []Observed(nil)
	if i := slices.IndexFunc(due, func(e Observed) bool { return e.Zxid > p.Header.Zxid }); i >= 0 {
		due, ahead = due[:i], slices.Clone(due[i:])
	}
	w.ahead = ahead
	var certain []Observed
	for _, e := range due {
		before := e.Zxid - 1
		if e.Zxid < 0 {
			before = p.After
		}
		if !w.doubtful(&e.WatcherEvent, before) {
			certain = append(certain, e)
		}
	}
	results = w.match(p, certain)
	w.fired(p.Events, due)
	return results
}

// fired forgets watches that fire once.
func (w *Watches) fired(old []wire.WatcherEvent, observer []Observed) {
	for _, e := range old {
		w.forget(&e, never, pending)
	}
	for _, e := range observer {
		if e.Zxid < 0 {
			w.forget(&e.WatcherEvent, never, w.set) // the old server's watch may fire until there
		} else {
			w.forget(&e.WatcherEvent, e.Zxid, 0)
		}
	}
}

// forget forgets what an event has fired: a watch that the observer has set before the zxid z. A doubt about it that has no
// end ends at the zxid until.
func (w *Watches) forget(e *wire.WatcherEvent, z, until wire.Zxid) {
	for _, kind := range []watchKind{dataWatch, childWatch} {
		other := wire.EventNodeChildrenChanged
		if kind == childWatch {
			other = wire.EventNodeDataChanged
		}
		key := watchKey{kind, e.Path}
		d := w.doubts[key]
		switch {
		case e.Type == other || e.Type == wire.EventNodeCreated && kind == childWatch || d.set >= z:
		case d.until == pending && until != 0:
			d.until = until
			w.doubts[key] = d
		default:
			delete(w.doubts, key)
		}
	}
}

// match pairs the events of the old server with the certain ones of the observer.
func (w *Watches) match(p *Pair, observer []Observed) (results []EventResult) {
	places := map[wire.WatcherEvent][]int{}
	for i, e := range observer {
		places[e.plain()] = append(places[e.plain()], i)
	}
	next := 0
	for _, e := range p.Events {
		r := EventResult{Path: e.Path}
		e.State = 0
		at := places[e]
		doubtful := w.doubtful(&e, p.After)
		switch {
		case len(at) > 0:
			r.At, places[e] = observer[at[0]].Zxid, at[1:]
			if at[0] < next && !doubtful {
				r.Difference = &Difference{"order of events", e.Type.String(), "earlier"}
			}
			next = max(next, at[0]+1)
		case doubtful:
			r.Why = UnsureWatch
		default:
			r.Difference = &Difference{"event", e.Type.String(), "none"}
		}
		results = append(results, r)
	}
	for i, e := range observer {
		if slices.Contains(places[e.plain()], i) {
			results = append(results, EventResult{Path: e.Path, At: e.Zxid, Difference: &Difference{"event", "none", e.Type.String()}})
		}
	}
	return results
}

// plain returns the type and the path, which are compared.
func (e Observed) plain() wire.WatcherEvent { return wire.WatcherEvent{Type: e.Type, Path: e.Path} }

// Watch returns the request of a pair about watches: a read that has set one, addWatch and its kind; nil if it is none.
func (p *Pair) Watch() wire.Record {
	var r wire.Record
	switch p.Op {
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		read := new(wire.PathWatchRequest)
		if set := p.Header.Err == wire.OK || p.Header.Err == wire.ErrNoNode && p.Op == wire.OpExists; !set || wire.Decode(p.Request, read) != nil || !read.Watch {
			return nil
		}
		return read
	case wire.OpAddWatch:
		r = new(wire.AddWatchRequest)
	case wire.OpRemoveWatches, wire.OpCheckWatches:
		r = new(wire.WatchesRequest)
	case wire.OpSetWatches:
		r = new(wire.SetWatchesRequest)
	case wire.OpSetWatches2:
		r = new(wire.SetWatches2Request)
	}
	if r == nil || wire.Decode(p.Request, r) != nil {
		return nil
	}
	return r
}

// Unknown reports whether a pair may have set watches that are not known, because the request was not kept.
func (p *Pair) Unknown() bool { return p.Cut && p.Request == nil && !p.Op.IsWrite() }

// Settled reports whether nothing has changed between the reply to a read and the answer to the same read at the observer
// that fires the watch which both have set. parent says that this depends on the parent: see [Check.ParentSettled].
func (c *Check) Settled(h wire.ReplyHeader, answer []byte) (settled, parent bool) {
	if c.want.absent {
		return h.Err == wire.ErrNoNode && h.Zxid == c.Zxid, h.Err == wire.ErrNoNode && c.Path != "/"
	}
	rec := newAnswer(c.Ask)
	if h.Err != wire.OK || wire.Decode(answer, rec) != nil {
		return false, false
	}
	var got claim
	got.says(rec)
	watched := dataPart
	if c.Ask == wire.OpGetChildren2 {
		watched = childPart
	}
	return identityPart.settled(&got.stat, c.Zxid, h.Zxid) && watched.settled(&got.stat, c.Zxid, h.Zxid), false
}

// ParentSettled is [Check.Settled] for a znode that exists at neither server, by an answer about its parent.
func (c *Check) ParentSettled(h wire.ReplyHeader, answer []byte) bool {
	var r wire.StatResponse
	return h.Err == wire.OK && wire.Decode(answer, &r) == nil && childPart.settled(&r.Stat, c.Zxid, h.Zxid)
}

// CompareCode compares the codes of a request about watches, which is not a read. at is the zxid of the observer.
func (w *Watches) CompareCode(p *Pair, r wire.Record, code wire.Code, at wire.Zxid) (Reason, *Difference) {
	switch about, ok := r.(*wire.WatchesRequest); {
	case code == p.Header.Err:
		return "", nil
	case ok && (at != p.Header.Zxid || !w.Certain(about.Path, at)):
		return UnsureWatch, nil
	}
	return "", &Difference{"error", errorText(p.Header.Err), errorText(code)}
}
