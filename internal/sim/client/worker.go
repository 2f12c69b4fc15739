package client

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
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// queueLine is the parent of the znodes that producers and consumers have while they use the queue.
const queueLine = "/queue.line"

// backlogMax is how many items producers leave waiting.
const backlogMax = 20

// Worker carries out one operation after another. Its job says which: it puts items into a
// queue, takes items, adds to counters and removes the marks that this leaves behind, closes
// and opens a barrier, or passes a barrier.
type Worker struct {
	Runner
	job      job
	m        operation
	data     string           // data of the item that is being put
	sessions []wire.SessionID // the sessions in which the operation was under way
	Taken    *queues.Take     // the operation that took the item to be acknowledged
	Puts     int
	Lives    int                   // number of processes so far
	marks    map[string]value.Mark // marks that it has left and must remove, by the path of the number
	ids      value.Numbers         // reserved ids that are not given out yet
	waiting  bool
	closes   bool // the last operation was to close a barrier
	finished bool // it begins no further operation
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
type operation = check.Operation

func newWorker(c *Client, j job) *Worker {
	w := &Worker{job: j, marks: map[string]value.Mark{}}
	w.Runner = Runner{c: c, step: w.step}
	return w
}

func (w *Worker) attached() {
	if w.m == nil {
		w.begin()
		return
	}
	w.sessions = append(w.sessions, w.c.Session)
	w.step(claim.Attached{Session: w.c.Session})
}

// crashed drops everything: the next process knows nothing.
func (w *Worker) crashed() {
	if w.m != nil {
		w.see(w.m, true)
	}
	w.drop()
	w.Lives++
	w.m, w.Taken, w.waiting = nil, nil, false
	w.marks, w.ids = map[string]value.Mark{}, value.Numbers{}
}

// see reports the end of an operation to the checkers.
func (w *Worker) see(m operation, crashed bool) {
	w.c.group.See(check.WorkEnded{Worker: w.c.ID, Operation: m, Sessions: w.sessions, Session: w.c.Session, Item: w.data, Crashed: crashed})
}

// begin begins the next operation.
func (w *Worker) begin() {
	s := w.c.group
	if w.waiting || w.finished || s.Phase().Quiet && (w.job == produce || w.job == pass || w.job == count && w.markedNumber() == "") {
		return
	}
	switch {
	case w.job == guard || w.job == pass:
		w.m = w.newBarrier()
	case w.job == produce && len(s.History().Names(check.QueueItems)) >= backlogMax:
		w.beginLater(machine.Second)
		return
	case w.job == produce:
		w.m = w.newPut()
	case w.job == consume && w.Taken != nil:
		item, _, session := w.Taken.Taken()
		w.m = queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: item, Claim: claim.Join(check.QueueClaims, path.Base(item)), Session: session, Release: w.c.random.Chance(10)})
	case w.job == consume:
		cfg := queues.TakeConfig{Items: check.QueueItems, Line: queueLine, Nonce: w.c.random.Nonce()}
		if s.Settings().Recipe == WorkQueue {
			cfg.Claims = check.QueueClaims
		}
		w.m = queues.NewTake(cfg)
	case w.markedNumber() != "" && (s.Phase().Quiet || w.c.random.Chance(5)):
		w.m = w.newRemoval(w.markedNumber())
	default:
		w.m = w.newChange()
	}
	w.sessions = append(w.sessions[:0], w.c.Session)
	s.See(check.WorkBegan{Worker: w.c.ID, Operation: w.m})
	w.giveUpLater()
	w.step(claim.Attached{Session: w.c.Session})
}

// newPut returns an operation that puts a unique item, under one of two namings.
func (w *Worker) newPut() operation {
	d := w.c.random
	w.Puts++
	w.data = fmt.Sprintf("%d.%d", w.c.ID, w.Puts)
	n := d.Nonce()
	cfg := queues.PutConfig{
		Items: check.QueueItems, Mark: claim.Join(queueLine, hex.EncodeToString(n[:])+"-put"),
		Prefix: fmt.Sprintf("entry-%03d-", 50*d.Below(3)), Data: []byte(w.data),
	}
	if cfg.Unique = d.Chance(50); cfg.Unique {
		cfg.Prefix = hex.EncodeToString(n[:]) + "-" + cfg.Prefix
	}
	return queues.NewPut(cfg)
}

// newBarrier returns an operation that closes or opens the barrier, in turn, or that waits
// to pass it. In the end the barrier stays open.
func (w *Worker) newBarrier() operation {
	act := barrier.PassBarrier
	if w.job == guard {
		if w.closes = !w.closes && !w.c.group.Phase().Quiet; w.closes {
			act = barrier.CloseBarrier
		} else {
			act = barrier.OpenBarrier
		}
	}
	return barrier.NewBarrier(check.BarrierPath, act)
}

// newChange returns an operation that counts, or that reserves a block of ids.
func (w *Worker) newChange() operation {
	at := check.CountPath
	if w.c.random.Chance(50) {
		at = check.IDsPath
	}
	mark, known := w.marks[at]
	cfg := value.ChangeConfig{Path: at, Initial: []byte("0"), Mark: w.markPath(at), Repeatable: at == check.IDsPath}
	if !known {
		mark = value.Mark{}
	}
	return value.NewChange(cfg, mark)
}

func (w *Worker) markPath(number string) string {
	return fmt.Sprintf("%s/_m_%d.%d", number, w.c.ID, w.Lives)
}

// markedNumber returns a number for which the worker has left a mark; empty: there is none.
func (w *Worker) markedNumber() string {
	for _, number := range []string{check.CountPath, check.IDsPath} {
		if w.marks[number].Session != 0 {
			return number
		}
	}
	return ""
}

// newRemoval returns an operation that removes the worker's mark at a number.
func (w *Worker) newRemoval(number string) operation {
	return registry.NewRemoval(w.markPath(number), w.marks[number].Session)
}

// giveUpLater makes a worker give its operation up now and then.
func (w *Worker) giveUpLater() {
	if !w.c.random.Chance(4) {
		return
	}
	m := w.m
	w.c.group.After(w.c.random.Below(machine.Second), func() {
		if w.m == m && !w.c.Hung {
			w.step(claim.Resign{})
		}
	})
}

// beginLater begins the next operation after a while.
func (w *Worker) beginLater(within int64) {
	w.waiting = true
	life := w.life
	w.c.group.After(w.c.random.Below(within), func() {
		if w.life != life {
			return
		}
		w.waiting = false
		if w.m == nil && w.c.Attached && !w.c.Hung {
			w.begin()
		}
	})
}

// step passes an event to the state machine and carries out what the machine asks for.
func (w *Worker) step(ev claim.Event) {
	m := w.m
	if m == nil {
		return
	}
	m.Step(w.now(), ev)
	rd := m.Ready()
	w.request(rd.Request)
	if w.m != m || w.c.crashesHere() {
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

// propose adds to a number that was read.
func (w *Worker) propose(c *value.Change) bool {
	old, awaited := c.Old()
	if !awaited {
		return false
	}
	delta := int64(1)
	if c.Path() == check.IDsPath {
		delta = check.IDBlock
	}
	_, data, err := value.AddCounter(value.DecimalCounter, old, delta)
	if err != nil {
		w.c.group.Fail("Counts", "%s holds %q: %v", c.Path(), old, err)
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
func (w *Worker) ended(m operation) {
	s := w.c.group
	s.Tell("worker %d: %s %v%s", w.c.ID, strings.TrimPrefix(fmt.Sprintf("%T", m), "*"), m.Outcome(), because(m.Err()))
	if err := m.Err(); err != nil && !errors.Is(err, queues.ErrTaken) {
		s.Fail("Work", "worker %d: %T fails: %v", w.c.ID, m, err)
		return
	}
	w.see(m, false)
	within := 50 * machine.Millisecond
	switch m := m.(type) {
	case *queues.Take:
		if s.Settings().Recipe == WorkQueue && m.Outcome() == claim.Succeeded {
			w.Taken = m
			within = 300 * machine.Millisecond
		}
	case *queues.Acknowledgement:
		if m.Outcome() != claim.Withdrawn { // a withdrawn operation is tried again
			w.Taken = nil
		}
	case *value.Change:
		w.marks[m.Path()] = m.Mark()
		w.giveOut(m)
	case *registry.Removal:
		if number := path.Dir(m.Path()); m.Outcome() == claim.Succeeded {
			w.marks[number] = value.Mark{N: w.marks[number].N}
		}
	case *barrier.Barrier:
		w.finished = s.Phase().Quiet && m.Act() == barrier.OpenBarrier && m.Outcome() == claim.Succeeded
		if m.Act() == barrier.CloseBarrier && w.c.random.Chance(5) {
			within = 8 * machine.Second // long enough that some waiting clients end before
		}
	}
	w.drop()
	w.m = nil
	w.beginLater(within)
}

// giveOut gives out the ids of a block that was reserved.
func (w *Worker) giveOut(m *value.Change) {
	if m.Path() != check.IDsPath || m.Outcome() != claim.Succeeded {
		return
	}
	sum, err := value.ParseCounter(value.DecimalCounter, m.Value())
	if err != nil {
		w.c.group.Fail("Counts", "a block ends with %q", m.Value())
		return
	}
	w.ids.Reserved(sum, check.IDBlock)
	for id, ok := w.ids.Next(); ok; id, ok = w.ids.Next() {
		w.c.group.See(check.IDGiven{ID: id})
	}
}

// Workers returns all workers of the run.
func (s *Group) Workers() (all []*Worker) {
	for _, c := range s.All {
		if w, ok := c.Player.(*Worker); ok {
			all = append(all, w)
		}
	}
	return all
}

// ItemsLeft says what is missing until every item is taken and acknowledged.
func (s *Group) ItemsLeft() string {
	for _, w := range s.Workers() {
		if w.job != consume && w.m != nil {
			return fmt.Sprintf("worker %d has a %T under way", w.c.ID, w.m)
		}
		if w.Taken != nil || w.markedNumber() != "" {
			return fmt.Sprintf("worker %d has an item to acknowledge, or a mark to remove", w.c.ID)
		}
	}
	if items := s.History().Names(check.QueueItems); len(items) > 0 {
		return fmt.Sprintf("items are left: %v", items)
	}
	return ""
}

// EndWork ends the operations that still wait.
func (s *Group) EndWork() {
	for _, w := range s.Workers() {
		w.finished = true
		w.step(claim.Resign{})
	}
}

// WorkLeft says what is missing until no worker has an operation under way and nothing is
// left.
func (s *Group) WorkLeft() string {
	for _, w := range s.Workers() {
		if w.m != nil {
			return fmt.Sprintf("worker %d has a %T under way", w.c.ID, w.m)
		}
	}
	for _, parent := range []string{check.QueueItems, check.QueueClaims, queueLine, check.CountPath, check.IDsPath} {
		if left := s.History().Names(parent); len(left) > 0 {
			return fmt.Sprintf("%s still has %v", parent, left)
		}
	}
	return ""
}
