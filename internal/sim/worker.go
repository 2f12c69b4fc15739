package sim

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/value"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// The znodes of the queue, the numbers and the barrier.
const (
	queueItems  = "/queue/entries"
	queueClaims = "/queue/taken"
	queueLine   = "/queue.line"
	countPath   = "/count"
	idsPath     = "/ids"
	idBlock     = 5
	barrierPath = "/barrier"
)

// backlogMax is how many items producers leave waiting.
const backlogMax = 20

// worker carries out one operation after another, by its job: it puts items into a queue;
// or takes them; or counts and removes what counting leaves behind; or closes and opens a
// barrier, or passes it.
type worker struct {
	runner
	job      job
	m        operation
	data     string           // data of the item that is being put
	sessions []wire.SessionID // the sessions in which the operation was under way
	hand     *queues.Take     // the operation that took the item to be acknowledged
	puts     int
	lives    int                   // number of processes so far
	marks    map[string]value.Mark // marks that it has left and must remove, by the path of the number
	left     value.Numbers         // reserved ids that are not given out yet
	waiting  bool
	closes   bool // the last operation was to close a barrier
	home     bool // it begins no further operation
	points   int  // steps so far at which it could crash
	crashAt  int  // the number of the step at which it crashes; 0: at none
}

// job is the kind of work that a worker does.
type job uint8

const (
	produce job = iota
	consume
	count
	guard
	pass
)

// operation is a state machine that ends.
type operation interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	Over() bool
	Outcome() claim.Outcome
	Err() error
}

// Observations of workers, for the checkers.
type (
	// workBegan says that an operation begins.
	workBegan struct {
		w *worker
		m operation
	}
	// workEnded says that an operation is over, or that its process has ended.
	workEnded struct {
		w       *worker
		m       operation
		crashed bool
	}
	// idGiven says that an id was given out.
	idGiven struct {
		w  *worker
		id int64
	}
)

func newWorker(c *client, j job) *worker {
	w := &worker{job: j, marks: map[string]value.Mark{}}
	w.runner = runner{c: c, step: w.step}
	return w
}

func (w *worker) attached() {
	if w.m == nil {
		w.begin()
		return
	}
	w.sessions = append(w.sessions, w.c.session)
	w.step(claim.Attached{Session: w.c.session})
}

// crashed drops everything: the next process knows nothing.
func (w *worker) crashed() {
	if w.m != nil {
		w.c.sim.see(workEnded{w, w.m, true})
	}
	w.drop()
	w.lives++
	w.m, w.hand, w.waiting = nil, nil, false
	w.marks, w.left = map[string]value.Mark{}, value.Numbers{}
}

// begin begins the next operation.
func (w *worker) begin() {
	s := w.c.sim
	if w.waiting || w.home || s.quiet && (w.job == produce || w.job == pass || w.job == count && w.marked() == "") {
		return
	}
	switch {
	case w.job == guard || w.job == pass:
		w.m = w.newBarrier()
	case w.job == produce && len(s.names(queueItems)) >= backlogMax:
		w.beginLater(second)
		return
	case w.job == produce:
		w.m = w.newPut()
	case w.job == consume && w.hand != nil:
		item, _, session := w.hand.Taken()
		w.m = queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: item, Claim: claim.Join(queueClaims, path.Base(item)), Session: session, Release: w.c.random.chance(10)})
	case w.job == consume:
		cfg := queues.TakeConfig{Items: queueItems, Line: queueLine, Nonce: w.c.random.nonce()}
		if s.opt.Recipe == WorkQueue {
			cfg.Claims = queueClaims
		}
		w.m = queues.NewTake(cfg)
	case w.marked() != "" && (s.quiet || w.c.random.chance(5)):
		w.m = w.newRemoval(w.marked())
	default:
		w.m = w.newChange()
	}
	w.sessions = append(w.sessions[:0], w.c.session)
	s.see(workBegan{w, w.m})
	w.giveUpLater()
	w.step(claim.Attached{Session: w.c.session})
}

// newPut returns an operation that puts a unique item, under one of two namings.
func (w *worker) newPut() operation {
	d := w.c.random
	w.puts++
	w.data = fmt.Sprintf("%d.%d", w.c.id, w.puts)
	n := d.nonce()
	cfg := queues.PutConfig{
		Items: queueItems, Mark: claim.Join(queueLine, hex.EncodeToString(n[:])+"-put"),
		Prefix: fmt.Sprintf("entry-%03d-", 50*d.below(3)), Data: []byte(w.data),
	}
	if cfg.Unique = d.chance(50); cfg.Unique {
		cfg.Prefix = hex.EncodeToString(n[:]) + "-" + cfg.Prefix
	}
	return queues.NewPut(cfg)
}

// newBarrier returns an operation that closes or opens the barrier, in turn, or that waits
// to pass it. In the end the barrier stays open.
func (w *worker) newBarrier() operation {
	act := barrier.PassBarrier
	if w.job == guard {
		if w.closes = !w.closes && !w.c.sim.quiet; w.closes {
			act = barrier.CloseBarrier
		} else {
			act = barrier.OpenBarrier
		}
	}
	return barrier.NewBarrier(barrierPath, act)
}

// newChange returns an operation that counts, or that reserves a block of ids.
func (w *worker) newChange() operation {
	at := countPath
	if w.c.random.chance(50) {
		at = idsPath
	}
	mark, known := w.marks[at]
	cfg := value.ChangeConfig{Path: at, Initial: []byte("0"), Mark: w.markAt(at), Anew: at == idsPath}
	if !known {
		mark = value.Mark{}
	}
	return value.NewChange(cfg, mark)
}

func (w *worker) markAt(number string) string {
	return fmt.Sprintf("%s/_m_%d.%d", number, w.c.id, w.lives)
}

// marked returns a number for which the worker has left a mark; empty: there is none.
func (w *worker) marked() string {
	for _, number := range []string{countPath, idsPath} {
		if w.marks[number].Session != 0 {
			return number
		}
	}
	return ""
}

// newRemoval returns an operation that removes the worker's mark at a number.
func (w *worker) newRemoval(number string) operation {
	return registry.NewRemoval(w.markAt(number), w.marks[number].Session)
}

// giveUpLater makes a worker give its operation up now and then.
func (w *worker) giveUpLater() {
	if !w.c.random.chance(4) {
		return
	}
	m := w.m
	w.c.sim.after(w.c.random.below(second), func() {
		if w.m == m && !w.c.silent {
			w.step(claim.Resign{})
		}
	})
}

// beginLater begins the next operation after a while.
func (w *worker) beginLater(within int64) {
	w.waiting = true
	life := w.life
	w.c.sim.after(w.c.random.below(within), func() {
		if w.life != life {
			return
		}
		w.waiting = false
		if w.m == nil && w.c.attached && !w.c.silent {
			w.begin()
		}
	})
}

// step passes an event to the state machine and carries out what the machine asks for.
func (w *worker) step(ev claim.Event) {
	m := w.m
	if m == nil {
		return
	}
	m.Step(w.now(), ev)
	rd := m.Ready()
	w.ask(rd.Request)
	if w.m != m || w.crashesHere() {
		return
	}
	if c, ok := m.(*value.Change); ok && w.propose(c) {
		return
	}
	if m.Over() {
		w.ended(m)
	} else {
		w.wake(rd.Wake)
	}
}

// crashesHere crashes the worker at the step that a scenario has chosen. It reports whether
// it did.
func (w *worker) crashesHere() bool {
	if w.points++; w.points == w.crashAt {
		w.c.sim.Do(Act{Kind: Kill, A: -w.c.id})
	}
	return w.points == w.crashAt
}

// propose adds to a number that was read.
func (w *worker) propose(c *value.Change) bool {
	old, awaited := c.Old()
	if !awaited {
		return false
	}
	delta := int64(1)
	if c.Path() == idsPath {
		delta = idBlock
	}
	_, data, err := value.DecimalCounter.Add(old, delta)
	if err != nil {
		w.c.sim.fail("Counts", "%s holds %q: %v", c.Path(), old, err)
		return true
	}
	w.step(value.Propose{Data: data})
	return true
}

// because returns the text that a trace shows for an error.
func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// ended handles the end of an operation. A consumer holds an item for a while before it
// acknowledges it.
func (w *worker) ended(m operation) {
	s := w.c.sim
	s.tell("worker %d: %s %v%s", w.c.id, strings.TrimPrefix(fmt.Sprintf("%T", m), "*claim."), m.Outcome(), because(m.Err()))
	if err := m.Err(); err != nil && !errors.Is(err, queues.ErrTaken) {
		s.fail("Work", "worker %d: %T fails: %v", w.c.id, m, err)
		return
	}
	s.see(workEnded{w, m, false})
	within := 50 * millisecond
	switch m := m.(type) {
	case *queues.Take:
		if s.opt.Recipe == WorkQueue && m.Outcome() == claim.Succeeded {
			w.hand = m
			within = 300 * millisecond
		}
	case *queues.Acknowledgement:
		if m.Outcome() != claim.Withdrawn { // a withdrawn operation is tried again
			w.hand = nil
		}
	case *value.Change:
		w.marks[m.Path()] = m.Mark()
		w.giveOut(m)
	case *registry.Removal:
		if number := path.Dir(m.Path()); m.Outcome() == claim.Succeeded {
			w.marks[number] = value.Mark{N: w.marks[number].N}
		}
	case *barrier.Barrier:
		w.home = s.quiet && m.Act() == barrier.OpenBarrier && m.Outcome() == claim.Succeeded
		if m.Act() == barrier.CloseBarrier && w.c.random.chance(5) {
			within = 8 * second // long enough that some waiting clients end before
		}
	}
	w.drop()
	w.m = nil
	w.beginLater(within)
}

// giveOut gives out the ids of a block that was reserved.
func (w *worker) giveOut(m *value.Change) {
	if m.Path() != idsPath || m.Outcome() != claim.Succeeded {
		return
	}
	sum, err := value.DecimalCounter.Parse(m.Value())
	if err != nil {
		w.c.sim.fail("Counts", "a block ends with %q", m.Value())
		return
	}
	w.left.Reserved(sum, idBlock)
	for id, ok := w.left.Next(); ok; id, ok = w.left.Next() {
		w.c.sim.see(idGiven{w, id})
	}
}

// workers returns all workers of the run.
func (s *Sim) workers() (all []*worker) {
	for _, c := range s.clients {
		if w, ok := c.player.(*worker); ok {
			all = append(all, w)
		}
	}
	return all
}

// allHandedIn says what is missing until every item is taken and acknowledged.
func (s *Sim) allHandedIn() string {
	for _, w := range s.workers() {
		if w.job != consume && w.m != nil {
			return fmt.Sprintf("worker %d is at its %T", w.c.id, w.m)
		}
		if w.hand != nil || w.marked() != "" {
			return fmt.Sprintf("worker %d has an item, or a mark", w.c.id)
		}
	}
	if items := s.names(queueItems); len(items) > 0 {
		return fmt.Sprintf("there are items: %v", items)
	}
	return ""
}

// sendHome ends the operations that still wait.
func (s *Sim) sendHome() {
	for _, w := range s.workers() {
		w.home = true
		w.step(claim.Resign{})
	}
}

// allHome says what is missing until no worker has an operation under way and nothing is
// left.
func (s *Sim) allHome() string {
	for _, w := range s.workers() {
		if w.m != nil {
			return fmt.Sprintf("worker %d is at its %T", w.c.id, w.m)
		}
	}
	for _, parent := range []string{queueItems, queueClaims, queueLine, countPath, idsPath} {
		if left := s.names(parent); len(left) > 0 {
			return fmt.Sprintf("%s has %v", parent, left)
		}
	}
	return ""
}

// content returns the data and stat of a znode in the committed tree, and nothing if there
// is no such znode.
func (s *Sim) content(path string) ([]byte, wire.Stat) {
	var r wire.DataResponse
	if s.history.Tree.GetData(&conn{}, path, false, &r) != wire.OK {
		return nil, wire.Stat{}
	}
	return r.Data, r.Stat
}

// names returns the children of a znode in the committed tree.
func (s *Sim) names(parent string) []string {
	var r tree.Listing
	if s.history.Tree.Children(&conn{}, parent, false, &r) != wire.OK {
		return nil
	}
	return r.All()
}
