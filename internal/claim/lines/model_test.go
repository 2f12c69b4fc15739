package lines

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// The model has a tree on several servers, of which all but the leader lag behind. Sessions expire, and
// clients lose connections, replies and time. The model knows nothing of the state machine under test.

const (
	modelTimeout = 10 * time.Second // session timeout
	modelDelay   = 2 * time.Second  // how far a server may lag behind (Delay of a Lease)
)

// change is the new content of one znode; nil deletes it.
type change struct {
	path string
	node *claimtest.Node
}

type txn struct {
	zxid    wire.Zxid
	changes []change
}

// replica is a server: the part of the log that it has applied, and its watches.
type replica struct {
	tree    map[string]*claimtest.Node
	applied int
	watches map[string]map[*candidate]bool
}

// session holds what the leader knows of a session.
type session struct {
	id      wire.SessionID
	touched time.Duration // latest time at which the leader knows that the session was alive
}

// broken selects faults of the code under test, to show that the checks detect them.
type broken struct {
	noSync        bool // sync does nothing
	lostIsFailure bool // a create whose reply was lost counts as not carried out
	leaseByReply  bool // the proof counts from the answer of the ping
	noDelay       bool // the Delay of a lease is ignored
	oneClock      bool // the wall clock is ignored
	noGuard       bool // guarded writes have no check
	seqToken      bool // the sequence number is used as the token
	anySession    bool // a later session may carry out a request
	keepWatch     bool // watches are never removed
}

type world struct {
	history *claimtest.History // notes what the candidates are told and ask for; nil: nobody does
	refuses int                // the servers refuse one of so many operations; 0: none
	choose  func(n int) int    // returns a number from 0 to n-1
	broken  broken
	manual  bool      // no client connects by itself
	refuse  wire.Code // error of the next operation; 0: the real result
	now     time.Duration
	zxid    wire.Zxid
	log     []txn
	leader  map[string]*claimtest.Node
	counts  map[string]int32 // number of creates below a parent

	replicas []*replica
	sessions map[wire.SessionID]*session
	nextID   wire.SessionID
	nonce    byte

	candidates  []*candidate
	handles     []handle
	newest      wire.Zxid // largest token of all terms
	newestAlone wire.Zxid // largest token of terms that exclude readers
	published   wire.Zxid // token in the last LEADER
	events      int       // number of watch events sent
	wrong       string    // the first violation found
	trace       []string
}

// handle is a term as its holder knows it; it is kept after its end.
type handle struct {
	bid   string
	token wire.Zxid
	rule  Rule
}

func newWorld(choose func(int) int, b broken) *world {
	w := &world{choose: choose, broken: b, sessions: map[wire.SessionID]*session{}, leader: map[string]*claimtest.Node{}, counts: map[string]int32{}}
	for range 3 {
		w.replicas = append(w.replicas, &replica{tree: map[string]*claimtest.Node{}, watches: map[string]map[*candidate]bool{}})
	}
	return w
}

func (w *world) tellf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.tellf("WRONG: %s", w.wrong)
	}
}

// changedBelow reports whether a replica knows of a change of a path's children later than z.
func (w *world) changedBelow(r *replica, p string, z wire.Zxid) bool {
	return slices.ContainsFunc(w.log[:r.applied], func(t txn) bool {
		return t.zxid > z && slices.ContainsFunc(t.changes, func(c change) bool { return path.Dir(c.path) == p })
	})
}

// write carries out one transaction at the leader, completely or not at all.
func (w *world) write(s wire.SessionID, op claim.Op) claim.Result {
	ops := []claim.Op{op}
	if op.Kind == claim.OpMulti {
		ops = op.Ops
	}
	t := txn{zxid: w.zxid + 1}
	view := maps.Clone(w.leader)
	counts := maps.Clone(w.counts)
	res := claim.Result{}
	for i, o := range ops {
		name, err := o.Path, error(nil)
		switch o.Kind {
		case claim.OpCheck:
			if view[name] == nil {
				err = wire.ErrNoNode
			}
		case claim.OpDelete:
			switch n := view[name]; {
			case n == nil:
				err = wire.ErrNoNode
			case o.Version != claim.AnyVersion && o.Version != n.Version:
				err = wire.ErrBadVersion
			default:
				delete(view, name)
				t.changes = append(t.changes, change{name, nil})
			}
		case claim.OpSet:
			switch n := view[name]; {
			case n == nil:
				err = wire.ErrNoNode
			case o.Version != claim.AnyVersion && o.Version != n.Version:
				err = wire.ErrBadVersion
			default:
				set := *n
				set.Data, set.Version = string(o.Data), n.Version+1
				view[name] = &set
				t.changes = append(t.changes, change{name, view[name]})
			}
		case claim.OpCreate:
			name, err = create(view, counts, o, t.zxid, s)
			if err == nil {
				t.changes = append(t.changes, change{name, view[name]})
			}
		default:
			panic("not a write: " + o.Kind.String())
		}
		if err != nil {
			return claim.Result{Err: err, Failed: i}
		}
		if o.Kind == claim.OpCreate {
			res.Path = name
		}
	}
	w.commit(t, view, counts)
	return res
}

// create adds a znode to a copy of the tree. The counter of a parent stops at its largest value, as in
// ZooKeeper.
func create(view map[string]*claimtest.Node, counts map[string]int32, o claim.Op, zxid wire.Zxid, s wire.SessionID) (string, error) {
	name := o.Path
	parent := path.Dir(name)
	if parent != "/" && view[parent] == nil {
		return "", wire.ErrNoNode
	}
	if o.Sequential {
		name += claim.FormatSeq(counts[parent])
	}
	if view[name] != nil {
		return "", wire.ErrNodeExists
	}
	if counts[parent] != math.MaxInt32 {
		counts[parent]++
	}
	view[name] = &claimtest.Node{Data: string(o.Data), Owner: s, Czxid: zxid}
	return name, nil
}

func (w *world) commit(t txn, view map[string]*claimtest.Node, counts map[string]int32) {
	w.zxid = t.zxid
	w.log = append(w.log, t)
	w.leader, w.counts = view, counts
	for _, c := range t.changes {
		if c.node == nil {
			w.tellf("%s gone", c.path)
		}
	}
}

// noteLeader checks that the terms of successive LEADER znodes become newer.
func (w *world) noteLeader(op claim.Op) {
	for _, o := range op.Ops {
		if o.Kind != claim.OpCreate {
			continue
		}
		n, err := claim.ParseNotice(o.Data)
		if err != nil || n.Token < w.published {
			w.violated("LEADER goes from %v to %v (%v)", w.published, n.Token, err)
		}
		w.published = n.Token
	}
}

// parents creates the missing persistent znodes of a path.
func (w *world) parents(p string) {
	var made string
	for _, part := range strings.Split(strings.Trim(p, "/"), "/") {
		made += "/" + part
		if w.leader[made] == nil {
			w.write(0, claim.Op{Kind: claim.OpCreate, Path: made})
		}
	}
}

// apply lets a replica apply the next transaction and fire its watches.
func (w *world) apply(r *replica) {
	t := w.log[r.applied]
	r.applied++
	for _, c := range t.changes {
		if c.node == nil {
			delete(r.tree, c.path)
			w.fire(r, c.path)
		} else {
			r.tree[c.path] = c.node
		}
		w.fire(r, path.Dir(c.path)) // a watch on the parent concerns only its children
	}
}

// fire sends an event to the candidates that watch a path at this replica.
func (w *world) fire(r *replica, p string) {
	for cand := range r.watches[p] {
		w.events++
		cand.inbox = append(cand.inbox, claim.Fired{Path: p})
	}
	delete(r.watches, p)
}

func (w *world) catchUp(r *replica, z wire.Zxid) {
	for r.applied < len(w.log) && w.log[r.applied].zxid <= z {
		w.apply(r)
	}
}

// read answers from the transactions that the replica has applied.
func (r *replica) read(op claim.Op) claim.Result {
	if op.Kind == claim.OpList || op.Kind == claim.OpWatchAll {
		if r.tree[op.Path] == nil {
			return claim.Result{Err: wire.ErrNoNode}
		}
		var names []string
		for p := range r.tree {
			if path.Dir(p) == op.Path {
				names = append(names, path.Base(p))
			}
		}
		slices.Sort(names)
		return claim.Result{Names: names}
	}
	n := r.tree[op.Path]
	if n == nil {
		return claim.Result{Err: wire.ErrNoNode}
	}
	return claim.Result{Data: []byte(n.Data), Stat: wire.Stat{Czxid: n.Czxid, EphemeralOwner: n.Owner, Version: n.Version}}
}

// expire ends a session whose timeout has passed.
func (w *world) expire(s *session) {
	if w.now < s.touched+modelTimeout {
		return
	}
	delete(w.sessions, s.id)
	for _, c := range w.candidates {
		if c.session == s.id {
			w.cut(c)
		}
	}
	t := txn{zxid: w.zxid + 1}
	view := maps.Clone(w.leader)
	for _, p := range slices.Sorted(maps.Keys(view)) {
		if view[p].Owner == s.id {
			delete(view, p)
			t.changes = append(t.changes, change{p, nil})
		}
	}
	w.tellf("session %v expires", s.id)
	w.commit(t, view, maps.Clone(w.counts))
}

func (w *world) newSession() *session {
	w.nextID++
	s := &session{id: w.nextID, touched: w.now}
	w.sessions[s.id] = s
	return s
}

// bids returns the paths of all bids at the leader, oldest first.
func (w *world) bids() []string { return w.bidsBelow(modelParent) }

func (w *world) bidsBelow(parent string) []string {
	var all []string
	for p, n := range w.leader {
		if isBid(p) && path.Dir(p) == parent && n.Owner != 0 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return int(w.leader[a].Czxid - w.leader[b].Czxid) })
	return all
}

func isBid(p string) bool {
	_, err := claim.ParseBid(path.Base(p))
	return err == nil || claim.IsHex32(path.Base(p))
}
