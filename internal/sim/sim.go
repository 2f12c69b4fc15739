package sim

import (
	"fmt"
	"strings"

	"bellwether/internal/election"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Options say what is simulated. The zero value of each field but Seed lets
// the seed decide, unless it says otherwise.
type Options struct {
	Seed   uint64
	Events int // until the faults end; 0: 20,000
	// Voters and Observers are the servers: 3 to 7, and 0 to 2.
	Voters, Observers int
	// Clients read and write, Candidates stand for election; -1: none.
	Clients, Candidates int
	// Recipe is what the candidates are out for. Leases is how many a semaphore
	// has. TermMS is how long a holder keeps its claim (mean), whom faults then
	// befall again and again; 0: some for seconds, others until they lose it.
	Recipe Recipe
	Leases int
	TermMS int64
	// Plain is how many servers speak and wait as ZooKeeper's do; -1: none.
	Plain int
	// KeepClients lets connections outlive a change of leaders: 1 yes, -1 no.
	KeepClients int
	// ReadOnly lets servers that have been without a leader for a while answer
	// reads, and half of the clients take that: 1 yes, -1 no.
	ReadOnly int
	// LocalSessions lets sessions live on one server alone until they create an
	// ephemeral: 1 yes, -1 no.
	LocalSessions int
	// TickMS is tickTime. ThinkMS is how long a client waits between requests
	// (mean).
	TickMS, ThinkMS int64
	// Groups has five voters or more stand in three groups, not all with the same
	// weight: 1 yes, -1 no. Moves lets servers come, go and change their places,
	// where there are no groups: 1 yes, -1 no.
	Groups, Moves int
	// CounterMax is the last zxid counter of an epoch.
	CounterMax uint32
	// Keep is how many transactions a server remembers; 0: as few as it can.
	Keep int
	// Acts are the faults, by time; nil lets the seed draw them.
	Acts []Act
	// Trace gets each packet and event; nil: nobody does.
	Trace func(line string)

	rule func() checker // one more, for tests
}

// Sim is a simulated ensemble with its clients.
type Sim struct {
	opt     Options
	dice    *dice
	now     int64
	queue   queue
	steps   int
	net     network
	roster  roster
	servers []*server
	clients []*client

	lastLink zab.LinkID
	lastConn replica.ConnID
	calls    int64
	calm     bool // no more faults
	quiet    bool // clients ask for nothing more
	idle     bool // but for those with a part in something, whose sessions expire only if terms last

	history  history
	checkers []checker
	reached  [situations]int
	register registers
	resource resource
	holder   *candidate // who was the last to get a claim
	deals    []*deal    // all transactions of two phases
	entered  int        // how often a guest was let in

	handovers int

	story   story
	traces  bool
	nemesis nemesis
	failed  *Failure
}

// Failure is a rule that was broken.
type Failure struct {
	Rule    string // by its name
	Wrong   string // what happened
	Options Options
	Acts    []Act    // the faults until then
	Story   []string // the end of it
	Events  int
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %s: %s", f.Options.Seed, f.Rule, f.Wrong)
}

// New makes an ensemble whose servers have just been switched on.
func New(o Options) *Sim {
	s := &Sim{dice: &dice{o.Seed}, traces: o.Trace != nil}
	s.opt = draw(o, s.dice.fork())
	s.drawReadOnly()
	s.drawLocalSessions()
	s.net = network{sim: s, blocked: map[[2]int]bool{}, lag: map[[2]int]int64{}}
	s.history = newHistory()
	s.checkers = s.makeCheckers()
	if o.rule != nil {
		s.checkers = append(s.checkers, o.rule())
	}
	s.populate()
	for _, v := range s.servers {
		s.at(s.dice.below(300*millisecond), v.start)
	}
	for _, c := range s.clients {
		s.at(s.dice.below(second), func() {
			if c.tries == 0 { // nothing has befallen it before
				c.connect()
			}
		})
	}
	return s
}

// draw fills in what the options leave to the seed. What it returns it leaves
// as it is, so that a run can be repeated from its result.
func draw(o Options, d *dice) Options {
	set := func(v *int, lo, hi int64) {
		if n := int(d.between(lo, hi)); *v == 0 {
			*v = n
		}
		if *v == 0 {
			*v = -1
		}
	}
	choose := func(v *int, percent float64) {
		yes := d.chance(percent)
		if *v == 0 {
			*v = -1
			if yes {
				*v = 1
			}
		}
	}
	voters := int(d.between(votersMin, votersMax))
	if d.chance(50) {
		voters = min(voters, 5)
	}
	if o.Voters == 0 {
		o.Voters = voters
	}
	set(&o.Observers, 0, 2)
	set(&o.Clients, 1, 6)
	set(&o.Candidates, 0, 3)
	if plain := d.chance(25); o.Plain == 0 && !plain {
		o.Plain = -1
	}
	set(&o.Plain, 1, int64(o.Voters))
	choose(&o.KeepClients, 50)
	if ticks := []int64{200, 500, 500, 1000}[d.below(4)]; o.TickMS == 0 {
		o.TickMS = ticks
	}
	if think := []int64{20, 100, 100, 100, 1000}[d.below(5)]; o.ThinkMS == 0 {
		o.ThinkMS = think
	}
	if rolls, last := d.chance(20), d.between(20, 400); o.CounterMax == 0 && rolls {
		o.CounterMax = uint32(last)
	}
	choose(&o.Groups, 20)
	if o.Voters < groupsVoters {
		o.Groups = -1
	}
	choose(&o.Moves, 30)
	if o.Events == 0 {
		o.Events = 20_000
	}
	// Half of all runs are elections.
	if r := d.below(2 * int64(len(Recipes))); o.Recipe == "" {
		o.Recipe = Recipes[max(r-int64(len(Recipes)), 0)]
	}
	if least := leastOf[o.Recipe]; o.Candidates > 0 {
		o.Candidates = max(o.Candidates, least)
	}
	set(&o.Leases, 1, 3)
	return o
}

// groupsVoters is how many voters there are at least where they stand in groups.
const groupsVoters = 5

// driftMax is how far the rate of a clock is off, in millionths: two of them
// differ by less than the hundredth that holders of claims allow for.
const driftMax = 4500

// populate makes the machines.
func (s *Sim) populate() {
	r := &s.roster
	if s.opt.Groups > 0 {
		r.groups = 3
	}
	if r.groups > 0 && s.dice.chance(50) {
		r.light = wire.ServerID(s.dice.between(1, int64(s.opt.Voters)-3))
	}
	for i := range s.opt.Voters + max(s.opt.Observers, 0) {
		p := votes
		if i >= s.opt.Voters {
			p = observes
		}
		r.places = append(r.places, p)
	}
	r.newest = r.list()
	for range r.places {
		s.newServer()
	}
	for i := range max(s.opt.Clients, 0) + max(s.opt.Candidates, 0) {
		c := &client{sim: s, id: i + 1, dice: s.dice.fork()}
		c.host = host{name: fmt.Sprint("client ", i+1), on: true, clock: newClock(s.dice.between(-driftMax, driftMax))}
		s.net.add(&c.host)
		s.clients = append(s.clients, c)
		c.reader = s.opt.ReadOnly > 0 && i < s.opt.Clients && i%2 == 0
		if first := max(s.opt.Clients, 0); i >= first {
			s.cast(c, i-first)
		}
	}
}

// cast gives a client its part in the recipe of the run: the first of them, the
// second, and so on.
func (s *Sim) cast(c *client, n int) {
	switch s.opt.Recipe {
	case Commit:
		name := ""
		if n > 0 {
			name = fmt.Sprint("s", n)
		}
		c.player = newParty(c, name)
	case Queue, WorkQueue:
		c.player = newWorker(c, []job{produce, consume, consume}[n%3])
	case Count:
		c.player = newWorker(c, count)
	case DoubleBarrier:
		c.player = newGuest(c)
	default:
		c.candidate = newCandidate(c)
		c.player = c.candidate
	}
}

// server finds a server by its id, nil if there is none.
func (s *Sim) server(id wire.ServerID) *server {
	if id < 1 || int(id) > len(s.servers) {
		return nil
	}
	return s.servers[id-1]
}

// at and after have something happen at a time.
func (s *Sim) at(t int64, do func())    { s.queue.push(max(t, s.now), do) }
func (s *Sim) after(d int64, do func()) { s.queue.push(s.now+max(d, 0), do) }

// step lets the next thing happen; false if the run is over.
func (s *Sim) step() bool {
	if s.failed != nil || len(s.queue.items) == 0 {
		return false
	}
	next := s.queue.pop()
	s.now = next.at
	s.steps++
	next.do()
	return s.failed == nil
}

// Run plays a seed to its end: with faults, then healed until all is well.
// The error is a [*Failure].
func Run(o Options) (Result, error) {
	s := New(o)
	s.finish()
	if s.failed != nil {
		return s.result(), s.failed
	}
	return s.result(), nil
}

// finish plays a run from its beginning to its end.
func (s *Sim) finish() {
	s.nemesis.begin(s)
	for s.more() && s.step() {
	}
	s.recover()
}

// leadersMin is how many leaders a run sees at least, if it can: it goes on to
// twice its events for it.
const leadersMin = 4

func (s *Sim) more() bool {
	return s.steps < s.opt.Events || s.reached[situationLeader] < leadersMin && s.steps < 2*s.opt.Events
}

// Result says what a run came across.
type Result struct {
	Options   Options // with what the seed has drawn
	Events    int
	Simulated int64 // µs
	Leaders   int   // established
	Handovers int   // of what candidates are out for, from one to another
	Committed int
	Answered  int64
	Reached   map[string]int // situations, by name
}

func (s *Sim) result() Result {
	r := Result{Options: s.opt, Events: s.steps, Simulated: s.now, Leaders: s.reached[situationLeader], Handovers: s.handovers,
		Committed: len(s.history.entries) - 1, Reached: map[string]int{}}
	for _, c := range s.clients {
		r.Answered += c.answered
	}
	for i, n := range s.reached {
		r.Reached[situationNames[i]] = n
	}
	return r
}

// fail ends the run.
func (s *Sim) fail(rule, format string, args ...any) {
	if s.failed != nil {
		return
	}
	wrong := fmt.Sprintf(format, args...)
	s.tell("%s is broken: %s", rule, wrong)
	s.failed = &Failure{Rule: rule, Wrong: wrong, Options: s.opt, Acts: s.nemesis.done, Story: s.story.lines(), Events: s.steps}
}

// story is the end of what happened, for who reads of a failure.
type story struct {
	ring [storyMax]string
	n    int
}

// storyMax is how many lines are kept.
const storyMax = 400

func (t *story) lines() []string {
	var out []string
	for i := max(0, t.n-storyMax); i < t.n; i++ {
		out = append(out, t.ring[i%storyMax])
	}
	return out
}

// tell adds a line to the story.
func (s *Sim) tell(format string, args ...any) {
	line := fmt.Sprintf("%9.3f  ", float64(s.now)/float64(second)) + fmt.Sprintf(format, args...)
	s.story.ring[s.story.n%storyMax] = line
	s.story.n++
	if s.traces {
		s.opt.Trace(line)
	}
}

// trace adds a line for those who want to see everything.
func (s *Sim) trace(format string, args ...any) {
	if s.traces {
		s.opt.Trace(fmt.Sprintf("%9.3f      ", float64(s.now)/float64(second)) + fmt.Sprintf(format, args...))
	}
}

// happened takes what a replica has to tell.
func (v *server) happened(h replica.Happening) {
	text := h.String()
	v.sim.tell("%d %s", v.id, text)
	switch h := h.(type) {
	case zab.LeaderServes:
		v.sim.reach(situationLeader)
		v.succeeded()
	case zab.HandsOver:
		v.sim.reach(situationHandOver)
	case election.Abandoned:
		if strings.Contains(h.Why, "hand-over") {
			v.sim.reach(situationHandOverVain)
		}
	case zab.SyncBegan:
		if h.How == zab.Snap {
			v.sim.reach(situationSnap)
		}
	case tree.DigestMismatch:
		v.sim.fail("EqualDigest", "%d: %s", v.id, text)
	case zab.GaveUp:
		if strings.Contains(h.Why, "counter") || strings.Contains(h.Why, "zxid") {
			v.sim.reach(situationRollOver)
		}
		if strings.Contains(h.Why, "was to hand over") {
			v.sim.reach(situationHandOverLate)
		}
	}
}

// succeeded: a leader is established, maybe by a hand-over.
func (v *server) succeeded() {
	all := v.replica.Elections()
	if all[len(all)-1].Decision.Ending != election.Handed {
		return
	}
	v.sim.reach(situationHandedOver)
	if v.sim.opt.Plain > 0 {
		v.sim.reach(situationHandedOverMixed)
	}
}
