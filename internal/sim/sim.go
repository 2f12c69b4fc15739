package sim

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Sim is a simulated ensemble with its clients.
//
// Time never goes back: now is the time of the last event of the queue. The history only
// grows. Once failed is set, no further event happens.
type Sim struct {
	opt     Options
	random  *machine.Random
	now     int64
	queue   queue
	steps   int
	net     network
	roster  roster
	servers []*server
	clients *client.Group

	lastLink zab.LinkID
	lastConn replica.ConnID
	until    int64     // time at which the faults end; 0: the number of events decides
	calm     bool      // the faults have ended
	sick     []*server // servers with a lasting fault
	quiet    bool      // clients send no further requests
	idle     bool      // only clients with a part in a recipe send requests, so that sessions expire even if terms are short

	history  check.History
	checkers []check.Checker
	premises *check.Premises
	reached  [situations]int
	present  present
	register check.Registers

	preferences preferences
	attachments map[wire.SessionID]attachment // the last one of each session

	trace    trace
	detailed bool
	nemesis  nemesis
	moments  *machine.Random // draws critical moments; nil until the first draw
	trials   *machine.Random // draws what is tried on copies of disks
	failed   *Failure

	promised   map[wire.Epoch]uint64 // for each epoch, the servers that have promised to follow its leader, as bits
	repeatable map[wire.Epoch]bool   // epochs of which a second leader can be or could be elected
	ledEpoch   wire.Epoch            // the last epoch that an established leader has had
	outvotable wire.Epoch            // the last such epoch that a quorum can or could outvote, because servers have forgotten its leader
	losses     []loss                // what disks have lost although they had promised it
	suspended  string                // why acknowledged writes may be lost now; empty: they may not
	jumpedAt   int64                 // when the clock of a leader jumped last, in µs; 0: never
	notes      []string              // which promises did not hold, and why
	over       bool                  // the run ended before its end, and has not failed
	spoilt     bool                  // the tree of a server has changed in memory, or comes from a wrong snapshot
	// copiesSpoilt says that all snapshots which servers send are wrong.
	copiesSpoilt bool
}

// New returns an ensemble whose servers have just been switched on.
func New(o Options) *Sim {
	s := &Sim{random: machine.NewRandom(o.Seed), trials: machine.NewRandom(o.Seed ^ 0x7a1a), detailed: o.Trace != nil, promised: map[wire.Epoch]uint64{}, repeatable: map[wire.Epoch]bool{}, attachments: map[wire.SessionID]attachment{}}
	s.clients = client.NewGroup(world{s})
	s.present = present{Group: s.clients, sim: s}
	s.opt = drawn(o, s.random.Fork())
	s.net = network{sim: s, blocked: map[[2]int]int64{}, lag: map[[2]int]int64{}, filters: map[int]int64{}, portLag: map[int]int64{}}
	s.history = check.NewHistory(newTree())
	s.drawPreferences()
	s.populate()
	s.checkers = s.makeCheckers()
	if o.rule != nil {
		s.checkers = append(s.checkers, o.rule())
	}
	s.premises = check.NewPremises(s.checkers)
	for _, v := range s.servers {
		if at := s.random.Below(300 * machine.Millisecond); !o.off {
			s.at(at, v.start)
		}
	}
	for _, c := range s.clients.All {
		s.at(s.random.Below(machine.Second), func() {
			if c.Connections == 0 { // a fault has not reached it before
				c.Connect()
			}
		})
	}
	return s
}

// groupsVoters is the smallest number of voters that can stand in groups.
const groupsVoters = 5

// driftMax is by how many millionths the rate of a clock may be wrong. Two clocks then
// differ by less than the one percent that holders of claims allow for.
const driftMax = 4500

// populate creates the machines.
func (s *Sim) populate() {
	r := &s.roster
	if s.opt.Groups > 0 {
		r.groups = 3
	}
	if r.groups > 0 && s.random.Chance(50) {
		r.light = ensemble.ServerID(s.random.Between(1, int64(s.opt.Voters)-3))
	}
	if r.groups > 0 && s.opt.Careless > 0 {
		r.heavy = ensemble.ServerID(s.opt.Voters) // it never is the light one
	}
	if r.light > 0 && s.opt.Seed >= prioritiesFrom && machine.NewRandom(s.opt.Seed^0x11647).Chance(50) {
		r.light = ensemble.ServerID(s.opt.Voters) // the largest id wins if histories are equal, and must not
		r.heavy = min(r.heavy, r.light-1)
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
		c := s.addClient()
		c.Reader = s.opt.ReadOnly > 0 && i < s.opt.Clients && i%2 == 0
		if first := max(s.opt.Clients, 0); i >= first {
			s.clients.Cast(c, i-first)
		}
	}
}

// addClient makes the next machine with a client, which does not connect yet.
func (s *Sim) addClient() *client.Client {
	c := s.clients.Add(s.random.Fork())
	c.Clock = machine.NewClock(s.random.Between(-driftMax, driftMax))
	s.net.add(&c.Host)
	return c
}

// server returns the server with an id; nil: there is none.
func (s *Sim) server(id ensemble.ServerID) *server {
	if id < 1 || int(id) > len(s.servers) {
		return nil
	}
	return s.servers[id-1]
}

// at and after schedule an event, at a time or after a duration.
func (s *Sim) at(t int64, do func())    { s.queue.push(max(t, s.now), do) }
func (s *Sim) after(d int64, do func()) { s.queue.push(s.now+max(d, 0), do) }

// step lets the next event happen. It returns false if the run is over.
func (s *Sim) step() bool {
	if s.ended() || len(s.queue.items) == 0 {
		return false
	}
	next := s.queue.pop()
	s.now = next.at
	s.steps++
	next.do()
	return !s.ended()
}

// Run plays a seed to its end: with faults, and then without them until everything has
// recovered. The error is a [*Failure].
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
	defer func() {
		if p := recover(); p != nil {
			s.panicked(p)
		}
	}()
	s.nemesis.begin(s)
	for s.more() && s.step() {
	}
	s.now = max(s.now, s.until)
	s.recover()
}

// leadersMin is the number of leaders that a run should see. To reach it, a run goes on for
// up to twice its number of events.
const leadersMin = 4

func (s *Sim) more() bool {
	if s.until > 0 {
		return len(s.queue.items) > 0 && s.queue.items[0].at <= s.until
	}
	return s.steps < s.opt.Events || s.reached[situationLeader] < leadersMin && s.steps < 2*s.opt.Events
}

// Result is the outcome of a run.
type Result struct {
	Options   Options // including what the seed has drawn
	Events    int
	Simulated int64 // µs
	Leaders   int   // number of leaders established
	Handovers int   // how often a claim passed from one holder to the next
	Committed int
	Answered  int64
	Digest    uint64         // digest of the trace
	Notes     []string       // which promises did not hold in the run, and why
	Over      bool           // the run ended early because such a promise was broken
	Reached   map[string]int // how often each situation occurred, by name
	Premises  map[string]int // how often the premise of each rule was met, by the names of the rule and the premise
}

func (s *Sim) result() Result {
	r := Result{Options: s.opt, Events: s.steps, Simulated: s.now, Leaders: s.reached[situationLeader], Handovers: s.clients.Handovers,
		Committed: len(s.history.Entries) - 1, Digest: s.trace.digest, Notes: s.notes, Over: s.over, Reached: map[string]int{}, Premises: s.premises.Counts()}
	for _, c := range s.clients.All {
		r.Answered += c.Answered
	}
	for i, n := range s.reached {
		r.Reached[situationNames[i]] = n
	}
	return r
}
