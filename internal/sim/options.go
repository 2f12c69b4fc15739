package sim

import "bellwether/internal/sim/check"

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
	// Compatible is how many servers speak and wait as ZooKeeper's do; -1: none.
	Compatible int
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
	// Busy lets some batches take long, as those of long transactions do: 1 yes,
	// -1 no.
	Busy int
	// Keep is how many transactions a server remembers; 0: as few as it can.
	Keep int
	// Acts are the faults, by time; nil lets the seed draw them.
	Acts []Act
	// Trace gets each packet and event; nil: nobody does.
	Trace func(line string)

	rule func() check.Checker // one more, for tests
}

// drawn fills in what the options leave to the seed. What it returns it leaves
// as it is, so that a run can be repeated from its result.
func drawn(o Options, d *random) Options {
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
	if plain := d.chance(25); o.Compatible == 0 && !plain {
		o.Compatible = -1
	}
	set(&o.Compatible, 1, int64(o.Voters))
	choose(&o.KeepClients, 50)
	if ticks := []int64{200, 500, 500, 1000}[d.below(4)]; o.TickMS == 0 {
		o.TickMS = ticks
	}
	if think := []int64{20, 100, 100, 100, 1000}[d.below(5)]; o.ThinkMS == 0 {
		o.ThinkMS = think
	}
	if rolls, last := d.chance(20), d.between(20, 400); o.CounterMax == 0 && rolls {
		if o.Compatible > 0 {
			last = max(last, 250) // an epoch outlasts an election of theirs, which takes 200 ms
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
	n, said := int64(len(Recipes)-1), o.Recipe
	if r := d.below(2 * n); said == "" {
		o.Recipe = Recipes[max(r-n, 0)]
	}
	set(&o.Leases, 1, 3)
	if several := d.chance(50); said == "" && o.Recipe == Lock && several {
		o.Recipe = SeveralLocks
	}
	if least := leastOf[o.Recipe]; o.Candidates > 0 {
		o.Candidates = max(o.Candidates, least)
	}
	o.drawReadOnly()
	o.drawLocalSessions()
	o.drawBusy()
	return o
}
