package sim

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "the seed of TestOneSeed, and alone of TestHandovers")
	traceTo  = flag.String("tracefile", "", "write every packet and event of -seed to this file")
	freshFor = flag.Duration("for", 0, "how long TestFreshSeeds plays fresh seeds; 0: it plays a few that are always the same")
)

// play runs a seed. If the run fails, play reports what is needed to see the failure again.
func play(t *testing.T, o Options) Result {
	t.Helper()
	r, err := Run(o)
	var f *Failure
	if errors.As(err, &f) {
		t.Error(f.Report(100))
	}
	return r
}

// fixedSeeds is the number of seeds that every run of the test plays, beginning with seed 1.
// If a situation does not occur in them, more seeds are played, up to fixedSeedsMax.
const fixedSeeds, fixedSeedsMax = 100, 400

// TestFixedSeeds checks that the fixed seeds break no rule, that leaders change in a run
// with default options, and that the seeds together reach every situation, except those
// that only scenarios reach, and meet every premise of every rule.
func TestFixedSeeds(t *testing.T) {
	reached, met := map[string]int{}, map[string]int{}
	missing := func() (names []string) {
		for x, name := range situationNames {
			if reached[name] == 0 && byScenario[situation(x)] == nil {
				names = append(names, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(met)) {
			if met[name] == 0 {
				names = append(names, "the premise of "+name)
			}
		}
		return names
	}
	seed := uint64(0)
	for seed < fixedSeeds || len(missing()) > 0 && seed < fixedSeedsMax && !t.Failed() {
		o := fixedOptions(seed)
		r := play(t, o)
		if plain := seed%10 > 4; plain && !r.Over && (r.Leaders < leadersMin || r.Events < 20_000) {
			t.Errorf("seed %d: %d leaders in %d events", o.Seed, r.Leaders, r.Events)
		}
		for name, n := range r.Reached {
			reached[name] += n
		}
		for name, n := range r.Premises {
			met[name] += n
		}
		seed++
	}
	for _, name := range situationNames {
		t.Logf("%6d %s", reached[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(met)) {
		t.Logf("%8d %s", met[name], name)
	}
	for _, name := range missing() {
		t.Errorf("%d seeds have not reached: %s", seed, name)
	}
}

// fixedOptions returns the options that a seed draws, with some of them set so that rare
// situations occur.
func fixedOptions(seed uint64) Options {
	o := Options{Seed: seed + 1}
	switch seed % 10 {
	case 0:
		o.CounterMax = 60
	case 1:
		o.Clients, o.Candidates, o.ThinkMS = 1, -1, 300
	case 2:
		o.Clients, o.ThinkMS, o.TickMS, o.Compatible, o.KeepClients = 6, 20, 1000, -1, 1
	case 3:
		o.Moves, o.Observers, o.EpochRot = 1, 1, 1
	case 4:
		o.Voters, o.Compatible = 5, 2
	}
	return o
}

// TestFreshSeeds checks that seeds which have not run before break no rule. A failure of the usual run must not depend on luck,
// so without -for the seeds are always the same.
func TestFreshSeeds(t *testing.T) {
	events := 0
	first, n := fresh(t, *freshFor, 30, func(seed uint64) { events += play(t, Options{Seed: seed}).Events })
	t.Logf("%d seeds from %d on, %d events", n, first, events)
}

// fresh calls one with seeds that have not been used before until the time has passed, or with the given number of seeds that are always
// the same if the time is 0. It stops when the test has failed, and returns the first seed and how many there were.
func fresh(t *testing.T, wait time.Duration, few uint64, one func(seed uint64)) (first, n uint64) {
	t.Helper()
	first, end := uint64(1_000_000), time.Now().Add(wait)
	if wait > 0 {
		first, few = uint64(end.UnixNano()), math.MaxUint64
	}
	for ; n < few && (wait == 0 || time.Now().Before(end)) && !t.Failed(); n++ {
		one(first + n)
	}
	return first, n
}

// TestOneSeed plays one seed and shows everything that happens, for the search for a fault.
func TestOneSeed(t *testing.T) {
	t.Logf("%+v", play(t, traced(t, Options{Seed: max(*oneSeed, 1)})))
}

// traced makes a run write its trace if -tracefile is set.
func traced(t *testing.T, o Options) Options {
	t.Helper()
	if *traceTo == "" {
		return o
	}
	f, err := os.Create(*traceTo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	o.Trace = func(line string) { fmt.Fprintln(f, line) }
	return o
}

// TestRunsCanBeRepeated checks that the same seed gives the same run, down to the last
// event.
func TestRunsCanBeRepeated(t *testing.T) {
	for seed := range uint64(5) {
		var runs [2][]string
		for i := range runs {
			play(t, Options{Seed: seed + 1, Events: 6000, Trace: func(line string) { runs[i] = append(runs[i], line) }})
		}
		for i, line := range runs[0] {
			if i >= len(runs[1]) || runs[1][i] != line {
				t.Fatalf("seed %d: line %d is %q the first time", seed+1, i, line)
			}
		}
	}
}

// TestNoDiskFailsInTheEnd checks that a planned failure of a disk does not occur after the
// faults have ended.
func TestNoDiskFailsInTheEnd(t *testing.T) {
	s := newScene(t, Options{})
	for _, v := range s.servers {
		s.Do(Act{Kind: CrashIn, A: int(v.id), Value: 20})
		s.Do(Act{Kind: FailWrite, A: int(v.id), Value: 30})
	}
	s.recover()
	c := s.client(nil)
	s.carried(c.Ask(c.Creation("/a")))
	for range 50 {
		s.carried(c.Ask(c.Write("/a")))
	}
	for _, line := range s.trace.lines() {
		if strings.Contains(line, "loses power") || strings.Contains(line, " ends: ") {
			t.Error(line)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	events, seed := 0, uint64(0)
	for b.Loop() {
		seed++
		r, err := Run(Options{Seed: seed})
		if err != nil {
			b.Fatal(err)
		}
		events += r.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
