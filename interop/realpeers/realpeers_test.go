package realpeers

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim"
	"bellwether/interop/target"
)

var (
	seeds    = flag.Int("seeds", 0, "how many seeds TestSeeds repeats with real servers")
	oneSeed  = flag.Uint64("seed", 1, "the first seed of TestSeeds")
	slowdown = flag.Float64("slow", 2, "how many times slower than the simulated servers the real ones do everything")
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := target.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// scenario is a run with fixed steps.
type scenario struct {
	name       string
	compatible ensemble.ServerID
	steps      []sim.Step
}

func start(id ensemble.ServerID) sim.Step { return sim.Step{Kind: sim.StepStart, Server: id} }
func kill(id ensemble.ServerID) sim.Step  { return sim.Step{Kind: sim.StepKill, Server: id} }
func cut(id ensemble.ServerID) sim.Step   { return sim.Step{Kind: sim.StepCut, Server: id} }
func join(id ensemble.ServerID) sim.Step  { return sim.Step{Kind: sim.StepJoin, Server: id} }

func write(id ensemble.ServerID, n int) sim.Step {
	return sim.Step{Kind: sim.StepWrite, Server: id, Value: n}
}

func cutWriting(id ensemble.ServerID) sim.Step {
	return sim.Step{Kind: sim.StepCutWriting, Server: id}
}

// scenarios are the runs that each test run repeats. In them the compatible server follows,
// leads, joins a leader that is ahead, and brings others up to date. Each of its roles has a
// transaction that must be truncated.
var scenarios = []scenario{
	{"it follows", 1, []sim.Step{
		start(1), start(3), start(2), write(1, 2), kill(3), write(2, 1), start(3), cut(1), write(3, 1), join(1), write(1, 1),
	}},
	{"it leads", 3, []sim.Step{
		start(3), start(1), write(1, 1), start(2), write(3, 2), kill(1), write(2, 1), start(1), kill(3), write(2, 1), start(3), write(3, 1),
	}},
	{"its transaction is truncated", 3, []sim.Step{
		start(2), start(3), start(1), write(1, 1), cutWriting(3), write(1, 1), join(3), write(3, 1),
	}},
	{"it truncates a transaction", 2, []sim.Step{
		start(1), start(3), start(2), write(2, 1), cutWriting(3), write(1, 1), join(3), kill(2), write(3, 1), start(2),
	}},
}

// TestScenarios repeats the scenarios with real servers. It fails for a difference that is
// not known, and for a known one that does not occur any more.
func TestScenarios(t *testing.T) {
	var passed atomic.Int64
	t.Cleanup(func() {
		if int(passed.Load()) < len(scenarios) {
			return // not all scenarios were selected, or one has failed
		}
		for _, why := range outlived() {
			t.Errorf("this known difference does not occur, remove it from the table: %s", why)
		}
	})
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rec, err := sim.Record(uint64(i+1), s.compatible, s.steps)
			if err != nil {
				t.Fatal(err)
			}
			if compareWithReal(t, rec); !t.Failed() {
				passed.Add(1)
			}
		})
	}
}

// TestSeeds repeats runs whose steps a seed decides. It is long, so the flag -seeds must ask
// for it.
func TestSeeds(t *testing.T) {
	for n := range *seeds {
		seed := *oneSeed + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rec, err := sim.Record(seed, ensemble.ServerID(1+seed%sim.RecordedServers), nil)
			if err != nil {
				t.Fatal(err)
			}
			compareWithReal(t, rec)
		})
	}
}

// compareWithReal repeats a run with real servers, and fails for each difference that is
// not known.
func compareWithReal(t *testing.T, rec *sim.Recording) {
	t.Helper()
	r := repeat(t, rec, *slowdown)
	simulated, actual := textsOf(rec, rec.Packets), textsOf(rec, r.net.sent())
	t.Logf("server %d is ZooKeeper's; steps: %v", rec.Compatible, stepsOf(rec))
	t.Logf("%d lines of simulated packets are compared with %d of real ones, and %d and %d connections that led to nothing are ignored",
		simulated.lines(), actual.lines(), simulated.unfinished, actual.unfinished)
	for _, d := range differences(rec, simulated, actual) {
		if why := explained(d); why != "" {
			t.Logf("known: %v\n\t%s", d, why)
		} else {
			t.Errorf("%v", d)
		}
	}
}

// stepsOf returns the steps of a run.
func stepsOf(rec *sim.Recording) (all []sim.Step) {
	for _, s := range rec.Steps {
		all = append(all, s.Step)
	}
	return all
}

// TestSimulatedRunsAreAlike checks that runs with the same steps are the same to the
// comparison, whatever the seed: what differs between them by chance is not compared.
func TestSimulatedRunsAreAlike(t *testing.T) {
	for _, s := range scenarios {
		var first texts
		for seed := range uint64(30) {
			rec, err := sim.Record(seed+1, s.compatible, s.steps)
			if err != nil {
				t.Fatal(err)
			}
			all := textsOf(rec, rec.Packets)
			if seed == 0 {
				first = all
				continue
			}
			for _, d := range differences(rec, first, all) {
				t.Errorf("%s, seeds 1 (simulated) and %d (real): %v", s.name, seed+1, d)
			}
		}
	}
}

// TestDrawnRuns checks that seeds draw runs that can be recorded, with each kind of step.
func TestDrawnRuns(t *testing.T) {
	kinds := map[sim.StepKind]int{}
	for seed := range uint64(50) {
		rec, err := sim.Record(seed+1, ensemble.ServerID(1+seed%sim.RecordedServers), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Steps {
			kinds[s.Kind]++
		}
	}
	if len(kinds) != 6 {
		t.Errorf("the steps are %v", kinds)
	}
}
