package schedule

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// state guards everything in this package that goroutines share. It is never held while a
// goroutine waits.
var (
	state   sync.Mutex
	current *Schedule
)

// Schedule decides which goroutine goes on. All its goroutines are started with [Go].
type Schedule struct {
	rng     *rand.Rand
	uniform bool // each goroutine that can go on is equally likely; otherwise priorities decide
	change  int  // without uniform: one step in change gives a goroutine a new priority
	lowest  bool // the new priority is lower than all others; otherwise it is random
	trace   bool

	byID    map[uint64]*goroutine // by the runtime's id
	started map[string]int        // number of goroutines by name
	all     int                   // number of goroutines so far
	live    int                   // number of goroutines that have not ended
	stopped []*goroutine          // those that wait to go on, by number
	arrived chan struct{}         // capacity 1: a goroutine has stopped, or the last one has ended
	closed  map[uintptr]any       // channels that are closed, by address

	steps  int
	digest uint64
	lines  []string // with trace: what each step was, and the notes
}

// goroutine is a goroutine of a Schedule. The fields from what on belong to its stop.
type goroutine struct {
	name     string
	number   int
	priority float64
	resume   chan struct{} // capacity 1

	what  string
	site  string
	ready func() bool // nil: it can always go on
	take  func()      // what its going on changes; nil: nothing

	only int // the case that its next select takes; anyCase: the runtime chooses
}

// changes are the values of Schedule.change, one of which is drawn for each schedule. Many
// wrong orders need one goroutine to stand still for long at one place, others need many
// switches.
var changes = []int{4, 8, 16, 32, 64}

// Begin makes a Schedule the current one. It must be called in a bubble. End must be
// called after Run. With trace, the Schedule records each step.
func Begin(seed uint64, trace bool) *Schedule {
	state.Lock()
	defer state.Unlock()
	if current != nil {
		panic("schedule: a Schedule exists already")
	}
	s := &Schedule{rng: rand.New(rand.NewPCG(seed, seed^0x5bd1e995)), trace: trace, byID: map[uint64]*goroutine{},
		started: map[string]int{}, arrived: make(chan struct{}, 1), closed: map[uintptr]any{}}
	s.uniform = s.rng.IntN(8) == 0
	s.lowest = s.rng.IntN(2) == 0
	s.change = changes[s.rng.IntN(len(changes))]
	current = s
	return s
}

// End ends the Schedule. All its goroutines must have ended.
func (s *Schedule) End() {
	state.Lock()
	defer state.Unlock()
	current = nil
}

// idleStep is how long a Schedule lets time pass at once if no goroutine can go on.
const idleStep = 50 * time.Millisecond

// Run lets goroutines go on until all have ended. It returns false if they have not ended
// after limit, in the time of the bubble: some wait for something that does not come. Then
// the bubble cannot end.
func (s *Schedule) Run(limit time.Duration) (ended bool) {
	start := time.Now()
	for {
		synctest.Wait()
		g, live := s.next()
		switch {
		case live == 0:
			return true
		case time.Since(start) > limit:
			return false
		case g != nil:
			g.resume <- struct{}{}
		default:
			select {
			case <-s.arrived:
			case <-time.After(idleStep):
			}
		}
	}
}

// next chooses the goroutine that goes on. It returns nil if none can, and how many
// goroutines have not ended.
func (s *Schedule) next() (chosen *goroutine, live int) {
	state.Lock()
	defer state.Unlock()
	var ready []*goroutine
	for _, g := range s.stopped {
		if g.ready == nil || g.ready() {
			ready = append(ready, g)
		}
	}
	if len(ready) == 0 {
		return nil, s.live
	}
	g := s.choose(ready)
	if g.take != nil {
		g.take()
	}
	for i := range s.stopped {
		if s.stopped[i] == g {
			s.stopped = append(s.stopped[:i], s.stopped[i+1:]...)
			break
		}
	}
	s.steps++
	s.record(g)
	return g, s.live
}

// choose chooses one of several goroutines.
func (s *Schedule) choose(ready []*goroutine) *goroutine {
	if s.uniform {
		return ready[s.rng.IntN(len(ready))]
	}
	first := func() *goroutine {
		best := ready[0]
		for _, g := range ready {
			if g.priority > best.priority {
				best = g
			}
		}
		return best
	}
	g := first()
	if s.rng.IntN(s.change) == 0 {
		g.priority = s.rng.Float64()
		if s.lowest {
			g.priority = -float64(s.steps)
		}
		g = first()
	}
	return g
}

// record adds a step to the digest and to the trace.
func (s *Schedule) record(g *goroutine) {
	for _, text := range [2]string{g.name, g.what} {
		for i := range len(text) {
			s.digest = (s.digest ^ uint64(text[i])) * 1099511628211 // as FNV does
		}
	}
	if s.trace {
		s.lines = append(s.lines, strings.TrimSpace(fmt.Sprintf("%6d %-24s %-14s %s", s.steps, g.name, g.what, g.site)))
	}
}

// Digest identifies the order of all steps so far.
func (s *Schedule) Digest() uint64 {
	state.Lock()
	defer state.Unlock()
	return s.digest
}

// Line returns how many lines the trace has so far.
func (s *Schedule) Line() int {
	state.Lock()
	defer state.Unlock()
	return len(s.lines)
}

// Trace returns what each step was, with the notes in between.
func (s *Schedule) Trace() []string {
	state.Lock()
	defer state.Unlock()
	return s.lines
}

// Waiting says for what each goroutine that has not ended waits, as far as that is known.
func (s *Schedule) Waiting() (list []string) {
	state.Lock()
	defer state.Unlock()
	stopped := map[*goroutine]bool{}
	for _, g := range s.stopped {
		stopped[g] = true
		list = append(list, strings.TrimSpace(g.name+": "+g.what+" "+g.site))
	}
	for _, g := range s.byID {
		if !stopped[g] {
			list = append(list, g.name+": a channel or a timer")
		}
	}
	return list
}

// Steps returns how many steps the Schedule has made.
func (s *Schedule) Steps() int {
	state.Lock()
	defer state.Unlock()
	return s.steps
}

// Note adds a line to the trace.
func Note(format string, args ...any) {
	state.Lock()
	defer state.Unlock()
	if current != nil && current.trace {
		current.lines = append(current.lines, fmt.Sprintf("%6d        "+format, append([]any{current.steps}, args...)...))
	}
}

// Go starts a goroutine.
func Go(name string, f func()) {
	state.Lock()
	s := current
	if s == nil {
		state.Unlock()
		go f()
		return
	}
	g := s.add(name)
	state.Unlock()
	go func() {
		id := goroutineID()
		state.Lock()
		s.byID[id] = g
		state.Unlock()
		defer s.end(id)
		Point("start")
		f()
	}()
}

// add makes a goroutine with a name that no other one has. state must be held.
func (s *Schedule) add(name string) *goroutine {
	s.all++
	s.live++
	s.started[name]++
	if n := s.started[name]; n > 1 {
		name = fmt.Sprintf("%s %d", name, n)
	}
	return &goroutine{name: name, number: s.all, priority: s.rng.Float64(), resume: make(chan struct{}, 1)}
}

// end forgets a goroutine.
func (s *Schedule) end(id uint64) {
	state.Lock()
	delete(s.byID, id)
	s.live--
	state.Unlock()
	s.wake()
}

// wake ends a wait of Run.
func (s *Schedule) wake() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Point stops the goroutine. Others may go on before it does.
func Point(what string) { stop(what, nil, nil) }

// Wait stops the goroutine until ready returns true. ready is called often, and must only
// look.
func Wait(what string, ready func() bool) { stop(what, ready, nil) }

// stop stops the goroutine until it is chosen and ready returns true. Then take is called,
// before any other goroutine goes on.
func stop(what string, ready func() bool, take func()) {
	state.Lock()
	s := current
	if s == nil {
		defer state.Unlock()
		if ready != nil && !ready() {
			panic("schedule: without a Schedule, a goroutine would wait: " + what)
		}
		if take != nil {
			take()
		}
		return
	}
	g := s.self()
	g.what, g.ready, g.take = what, ready, take
	if s.trace {
		g.site = site()
	}
	s.insert(g)
	state.Unlock()
	s.wake()
	<-g.resume
}

// self returns the goroutine that calls it. state must be held.
func (s *Schedule) self() *goroutine {
	id := goroutineID()
	g := s.byID[id]
	if g == nil { // Go has not started it; it may be a function of a timer
		g = s.add("other")
		s.byID[id] = g
		s.live-- // Run does not wait for its end
	}
	return g
}

// insert adds a goroutine to those that are stopped. state must be held.
func (s *Schedule) insert(g *goroutine) {
	i := len(s.stopped)
	s.stopped = append(s.stopped, g)
	for ; i > 0 && s.stopped[i-1].number > g.number; i-- {
		s.stopped[i] = s.stopped[i-1]
	}
	s.stopped[i] = g
}

// site returns the function and the line outside this package that has stopped.
func site() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if dir := filepath.Dir(f.File); !strings.HasSuffix(dir, "interleave/schedule") || !more {
			name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
			return fmt.Sprintf("%s (%s:%d)", name, filepath.Base(f.File), f.Line)
		}
	}
}

// goroutineID returns the runtime's id of this goroutine.
func goroutineID() (id uint64) {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	for _, c := range text[len("goroutine "):] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}
