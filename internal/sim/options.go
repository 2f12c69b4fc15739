package sim

import "bellwether/internal/sim/client"
import "bellwether/internal/sim/machine"
import "bellwether/internal/sim/check"

// Options say what is simulated. If a field is zero, the seed decides, unless the field
// says otherwise. Seed itself is never drawn.
type Options struct {
	Seed   uint64
	Events int // number of events until the faults end; 0: 20,000
	// Voters (3 to 7) and Observers (0 to 2) are the numbers of servers.
	Voters, Observers int
	// Clients is how many clients read and write. Candidates is how many take part in the
	// recipe; -1: none.
	Clients, Candidates int
	// Recipe is the recipe in which the candidates take part. Leases is how many leases a
	// semaphore has. TermMS is the mean time for which a holder keeps its claim, and makes
	// faults hit the holders again and again; 0: some holders keep it for seconds, others
	// until they lose it.
	Recipe client.Recipe
	Leases int
	TermMS int64
	// Compatible is how many servers are compatible ones, which behave as ZooKeeper's
	// servers do; -1: none.
	Compatible int
	// KeepClients lets connections outlive a change of leaders: 1 yes, -1 no.
	KeepClients int
	// ReadOnly lets servers answer reads after they have had no leader for a while, and
	// lets half of the clients accept such servers: 1 yes, -1 no.
	ReadOnly int
	// LocalSessions lets a session live on one server only, until it creates an ephemeral:
	// 1 yes, -1 no.
	LocalSessions int
	// TickMS is tickTime. ThinkMS is the mean time between two requests of a client.
	TickMS, ThinkMS int64
	// SessionTicks is the session timeout that clients ask for, in ticks.
	SessionTicks int
	// Groups puts five or more voters into three groups, not all with the same weight: 1
	// yes, -1 no. Moves adds and removes servers and changes their places in the list,
	// unless there are groups: 1 yes, -1 no.
	Groups, Moves int
	// Reconfig lets clients change the membership while servers run, and not by Moves: 1 yes,
	// -1 no.
	Reconfig int
	// CounterMax is the last zxid counter of an epoch.
	CounterMax uint32
	// Busy makes some batches take long, as those of long transactions do: 1 yes, -1 no.
	Busy int
	// Racks makes several machines fail from one cause, as racks.go says: 1 yes, -1 no.
	Racks int
	// Rot makes bits of snapshots and logs flip and sectors of them unreadable, while the
	// others can do without the disk: 1 yes, -1 no.
	Rot int
	// Lies makes some disks lie: their fsyncs report success, and a power failure loses what
	// they were to keep. Acknowledged writes can then be lost, as lies.go says: 1 yes, -1 no.
	Lies int
	// Priorities prefers some servers as leaders: 1 yes, -1 no.
	Priorities int
	// PartLies makes some disks lie about some files or lose only a part of what they have
	// promised, as lies.go says; EpochRot makes epoch files decay, as epochrot.go says; LeaderJumps
	// makes the monotonic clocks of leaders jump too, as clocks.go says. The seed never draws
	// these: 1 yes, 0 no.
	PartLies, EpochRot, LeaderJumps int
	// Careless makes clients do what they should not, as client/careless.go says, and gives servers different
	// limits for session timeouts: 1 yes, -1 no. Focus is the kind of fault that is drawn more often than all
	// others, a number of nemesis.act counted from 1; -1: none.
	Careless, Focus int
	// Lasting is a fault that a minority of the voters keeps after the other faults have
	// ended, while the others must serve; NoLasting: none.
	Lasting Lasting
	// Keep is how many transactions a server keeps in memory; 0: as few as it can.
	Keep int
	// Acts are the faults, ordered by time; nil lets the seed draw them.
	Acts []Act
	// Trace gets a line for each packet and event; nil: there is no such trace.
	Trace func(line string)

	rule func() check.Checker // one more rule to check, for tests
	off  bool                 // nothing starts the servers, unless an act does
	seen func(Exchange)       // gets what compatible servers exchange with others, without Step; nil: nobody does
}

// drawn fills in what the options leave to the seed. Applied to its own result, it changes
// nothing, so a run can be repeated from its result.
func drawn(o Options, d *machine.Random) Options {
	set := func(v *int, lo, hi int64) {
		if n := int(d.Between(lo, hi)); *v == 0 {
			*v = n
		}
		if *v == 0 {
			*v = -1
		}
	}
	choose := func(v *int, percent float64) {
		yes := d.Chance(percent)
		if *v == 0 {
			*v = -1
			if yes {
				*v = 1
			}
		}
	}
	moves, groups := o.Moves > 0, o.Groups
	voters := int(d.Between(votersMin, votersMax))
	if d.Chance(50) {
		voters = min(voters, 5)
	}
	if o.Voters == 0 {
		o.Voters = voters
	}
	set(&o.Observers, 0, 2)
	set(&o.Clients, 1, 6)
	set(&o.Candidates, 0, 3)
	if plain := d.Chance(25); o.Compatible == 0 && !plain {
		o.Compatible = -1
	}
	set(&o.Compatible, 1, int64(o.Voters))
	choose(&o.KeepClients, 50)
	if ticks := []int64{200, 500, 500, 1000}[d.Below(4)]; o.TickMS == 0 {
		o.TickMS = ticks
	}
	if think := []int64{10, 20, 50, 100, 1000}[d.Below(5)]; o.ThinkMS == 0 {
		o.ThinkMS = think
	}
	if rolls, last := d.Chance(20), d.Between(20, 400); o.CounterMax == 0 && rolls {
		if o.Compatible > 0 {
			last = max(last, 250) // an epoch must last longer than an election of compatible servers, which takes 200 ms
		}
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
	n, said := int64(len(client.Recipes)-1), o.Recipe
	if r := d.Below(2 * n); said == "" {
		o.Recipe = client.Recipes[max(r-n, 0)]
	}
	set(&o.Leases, 1, 3)
	if several := d.Chance(50); said == "" && o.Recipe == client.Lock && several {
		o.Recipe = client.MultiLocks
	}
	if least := client.CandidatesMin[o.Recipe]; o.Candidates > 0 {
		o.Candidates = max(o.Candidates, least)
	}
	o.drawReadOnly()
	o.drawLocalSessions()
	o.drawBusy()
	o.drawLasting()
	if moves && o.Reconfig == 0 {
		o.Reconfig = -1
	}
	if drawOwn(&o.Reconfig, o.Seed^0x4ec0f, 25); o.Reconfig > 0 {
		o.Moves = -1
	}
	drawOwn(&o.Racks, o.Seed^0x2ac5, 25)
	drawOwn(&o.Rot, o.Seed^0x207, 20)
	drawOwn(&o.Lies, o.Seed^0x11e5, 12)
	o.drawSessionTicks()
	o.drawPriorities()
	o.drawCareless(said == "")
	if more := machine.NewRandom(o.Seed ^ 0x9409).Chance(40); groups == 0 && o.Careless > 0 && o.Voters >= groupsVoters && more {
		o.Groups = 1
	}
	return o
}

// drawCareless draws Options.Careless and Options.Focus from the seed, unless they are set. Both have random sources
// of their own. The first seeds do without them, and so do runs whose recipe is given, for the reason that
// prioritiesFrom gives.
func (o *Options) drawCareless(anyRecipe bool) {
	careless, focus := 30.0, machine.NewRandom(o.Seed^0xf0c5)
	kind := focuses[focus.Below(int64(len(focuses)))]
	if !focus.Chance(35) {
		kind = -1
	}
	if o.Seed < prioritiesFrom || !anyRecipe {
		careless, kind = 0, -1
	}
	drawOwn(&o.Careless, o.Seed^0xca4e, careless)
	if o.Focus == 0 {
		o.Focus = kind
	}
}

// focuses are the kinds of faults, as numbers of nemesis.act counted from 1, that some runs repeat: a leader that is
// isolated, a full disk, a replaced disk, a stopped client, and a leadership transfer.
var focuses = []int{12, 12, 16, 16, 16, 19, 21, 28}

// prioritiesFrom is the first seed that draws priorities. Tests of rare faults play the seeds
// below it, and what those find depends on luck.
const prioritiesFrom = 41

// drawPriorities draws Options.Priorities from the seed, unless it is set.
func (o *Options) drawPriorities() {
	percent := 25.0
	if o.Seed < prioritiesFrom {
		percent = 0
	}
	drawOwn(&o.Priorities, o.Seed^0x9e1f, percent)
}

// drawReadOnly draws Options.ReadOnly from the seed, unless it is set. It uses a random
// source of its own, so that other draws do not change.
func (o *Options) drawReadOnly() {
	if yes := machine.NewRandom(o.Seed ^ 0x5ead).Chance(35); o.ReadOnly == 0 {
		o.ReadOnly = -1
		if yes {
			o.ReadOnly = 1
		}
	}
}

// drawLocalSessions draws Options.LocalSessions from the seed, unless it is set. It uses a
// random source of its own, so that other draws do not change.
func (o *Options) drawLocalSessions() {
	if yes := machine.NewRandom(o.Seed ^ 0x10ca1).Chance(30); o.LocalSessions == 0 {
		o.LocalSessions = -1
		if yes {
			o.LocalSessions = 1
		}
	}
}

// drawSessionTicks draws Options.SessionTicks from the seed, unless it is set. It uses a
// random source of its own, so that other draws do not change.
func (o *Options) drawSessionTicks() {
	if n := machine.NewRandom(o.Seed ^ 0x5e55).Below(int64(len(sessionTicks))); o.SessionTicks == 0 {
		o.SessionTicks = sessionTicks[n]
	}
}

// sessionTicks are the session timeouts that are drawn, in ticks. With the shortest one, some terms
// are without proof. Under the longest one, servers keep and clients wait for a long time.
var sessionTicks = []int{3, 8, 8, 8, 20, 100}

// drawOwn draws an option that is 1 or -1, unless it is set. It uses a random source of its
// own, so that other draws do not change.
func drawOwn(v *int, seed uint64, percent float64) {
	if yes := machine.NewRandom(seed).Chance(percent); *v == 0 {
		*v = -1
		if yes {
			*v = 1
		}
	}
}
