package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// Field is one of the options, with its name on a command line.
type Field struct {
	Name, Use string
	Get       func(*Options) string
	Set       func(*Options, string) error
	copy      func(to, from *Options)
}

// machinesMax, eventsMax and hourMS are the largest values that a command line may set.
const (
	machinesMax = 31
	eventsMax   = 1_000_000_000
	hourMS      = 3_600_000

	sessionTicksMax = 1000
)

// voteLeast, tickLeastMS and counterLeast are the smallest values that make sense. Below them an
// ensemble has nothing to agree on, a tick is shorter than the delays of the network, or an epoch
// ends before its clients are connected. Such a run would fail although nothing is wrong.
const (
	voteLeast    = 2
	tickLeastMS  = 20
	counterLeast = 20
)

// Fields are all options except the seed and the trace.
var Fields = []Field{
	number("events", "how many events until the faults end; 0: 20,000", 0, eventsMax, func(o *Options) *int { return &o.Events }),
	orDrawn("servers", "how many servers vote; 0 lets the seed decide, here and below", voteLeast, machinesMax, func(o *Options) *int { return &o.Voters }),
	number("observers", "how many observe; -1: none", -1, machinesMax, func(o *Options) *int { return &o.Observers }),
	number("clients", "how many clients read and write; -1: none", -1, machinesMax, func(o *Options) *int { return &o.Clients }),
	number("candidates", "how many clients have a part in the recipe; -1: none", -1, machinesMax, func(o *Options) *int { return &o.Candidates }),
	{"recipe", "the recipe in which the candidates take part: " + recipeNames(), getRecipe, setRecipe, func(to, from *Options) { to.Recipe = from.Recipe }},
	number("leases", "how many leases a semaphore has", 0, machinesMax, func(o *Options) *int { return &o.Leases }),
	number("term-ms", "how long a holder keeps its claim; 0: seconds, or until it loses it", 0, hourMS, func(o *Options) *int64 { return &o.TermMS }),
	number("compatible", "how many servers speak and wait as ZooKeeper's do; -1: none", -1, machinesMax, func(o *Options) *int { return &o.Compatible }),
	number("keep-clients", "connections outlive a change of leaders: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.KeepClients }),
	number("read-only", "servers without a leader answer reads: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.ReadOnly }),
	number("local-sessions", "sessions live on one server: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.LocalSessions }),
	orDrawn("tick-ms", "tickTime", tickLeastMS, hourMS, func(o *Options) *int64 { return &o.TickMS }),
	orDrawn("session-ticks", "the session timeout that clients ask for, in ticks", 1, sessionTicksMax, func(o *Options) *int { return &o.SessionTicks }),
	number("think-ms", "how long a client waits between requests", 0, hourMS, func(o *Options) *int64 { return &o.ThinkMS }),
	number("groups", "five voters or more stand in groups: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Groups }),
	number("moves", "servers come, go and change places: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Moves }),
	number("reconfig", "clients change the membership while servers run: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Reconfig }),
	number("busy", "some batches take long: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Busy }),
	number("racks", "racks lose their power, their switch or the room on their disks: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Racks }),
	number("rot", "snapshots and logs decay: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Rot }),
	number("priorities", "some servers are preferred as leaders: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Priorities }),
	number("careless", "clients do what good ones do not, and servers give different session timeouts: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Careless }),
	number("focus", "the kind of fault that is drawn more often than all others, from 1 to 30; -1: none", -1, faultKinds, func(o *Options) *int { return &o.Focus }),
	number("lies", "some disks lose what they have promised: 1 yes, -1 no", -1, 1, func(o *Options) *int { return &o.Lies }),
	number("part-lies", "some disks lose a part of what they have promised: 1 yes, 0 no", 0, 1, func(o *Options) *int { return &o.PartLies }),
	number("epoch-rot", "epoch files decay: 1 yes, 0 no", 0, 1, func(o *Options) *int { return &o.EpochRot }),
	number("leader-jumps", "the monotonic clocks of leaders jump too: 1 yes, 0 no", 0, 1, func(o *Options) *int { return &o.LeaderJumps }),
	{"lasting", "the fault that some voters keep when the other faults end: none, " + joined(lastings), func(o *Options) string { return string(o.Lasting) }, setLasting,
		func(to, from *Options) { to.Lasting = from.Lasting }},
	orDrawn("counter-max", "the last counter of an epoch", counterLeast, 1<<32-1, func(o *Options) *uint32 { return &o.CounterMax }),
	number("keep", "how many transactions a server keeps in memory; 0: few", 0, eventsMax, func(o *Options) *int { return &o.Keep }),
	{"faults", "the faults, in the form in which a failure prints them, separated by semicolons; none: no faults",
		func(o *Options) string { return formatActs(o.Acts) },
		func(o *Options, text string) (err error) { o.Acts, err = ParseActs(text); return err },
		func(to, from *Options) { to.Acts = from.Acts }},
}

// number returns a field that holds a number from least to most.
func number[N int | int64 | uint32](name, use string, least, most int64, at func(*Options) *N) Field {
	return Field{name, use,
		func(o *Options) string { return fmt.Sprint(*at(o)) },
		func(o *Options, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < least || n > most {
				return fmt.Errorf("%v: it is a number from %d to %d", firstBad(text), least, most)
			}
			*at(o) = N(n)
			return nil
		},
		func(to, from *Options) { *at(to) = *at(from) },
	}
}

// orDrawn returns a field that holds a number from least to most, or 0, which lets the seed
// decide.
func orDrawn[N int | int64 | uint32](name, use string, least, most int64, at func(*Options) *N) Field {
	f := number(name, use, 0, most, at)
	set := f.Set
	f.Set = func(o *Options, text string) error {
		var said Options
		if err := set(&said, text); err != nil || *at(&said) != 0 && int64(*at(&said)) < least {
			return fmt.Errorf("%v: it is 0 or a number from %d to %d", firstBad(text), least, most)
		}
		return set(o, text)
	}
	return f
}

func getRecipe(o *Options) string { return string(o.Recipe) }

func setRecipe(o *Options, text string) error {
	for _, r := range client.Recipes {
		if string(r) == text {
			o.Recipe = r
			return nil
		}
	}
	return fmt.Errorf("the recipes are: %s", recipeNames())
}

func setLasting(o *Options, text string) error {
	if l := Lasting(text); l == NoLasting || slices.Contains(lastings, l) {
		o.Lasting = l
		return nil
	}
	return fmt.Errorf("the lasting faults are: none, %s", joined(lastings))
}

func recipeNames() string { return joined(client.Recipes) }

// joined lists names, separated by commas.
func joined[N ~string](names []N) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// Command returns the command that plays a run again. It contains the seed, and all options
// that the seed alone would not have drawn.
func (o Options) Command() string {
	o = drawn(o, machine.NewRandom(o.Seed).Fork())
	said := Options{Seed: o.Seed}
	for again := true; again; { // an option on the command line may change what the seed draws for the others
		again = false
		d := drawn(said, machine.NewRandom(o.Seed).Fork())
		for _, f := range Fields {
			if f.Get(&d) != f.Get(&o) {
				f.copy(&said, &o)
				again = true
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "bellwether-sim --seed %d", o.Seed)
	for _, f := range Fields {
		if text, unsaid := f.Get(&said), f.Get(&Options{}); text != unsaid {
			fmt.Fprintf(&b, " --%s %s", f.Name, quoted(text))
		}
	}
	return b.String()
}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if strings.ContainsAny(word, " ;=") {
		return "'" + word + "'"
	}
	return word
}
