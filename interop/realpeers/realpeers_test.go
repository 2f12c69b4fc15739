package realpeers

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim"
)

var (
	seeds   = flag.Int("seeds", 1, "how many seeds TestSeeds plays to ZooKeeper")
	oneSeed = flag.Uint64("seed", 1, "the first seed of TestSeeds")
)

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

// cutWriting cuts off a leader that writes; n is 1 if the client does not go on.
func cutWriting(id ensemble.ServerID, n int) sim.Step {
	return sim.Step{Kind: sim.StepCutWriting, Server: id, Value: n}
}

// scenarios are the runs that each test run plays. In them the compatible server follows,
// leads, joins a leader that is ahead, and brings others up to date. Each of its roles has a
// transaction that must be truncated.
var scenarios = []scenario{
	{"it follows", 1, []sim.Step{
		start(1), start(3), start(2), write(1, 2), kill(3), write(2, 1), start(3), cut(1), write(3, 1), join(1), write(1, 1),
	}},
	{"it leads", 3, []sim.Step{
		start(3), start(1), write(1, 1), start(2), write(3, 2), kill(1), write(2, 1), start(1), kill(3), write(2, 1), start(3), write(3, 1),
	}},
	{"its history is replaced", 3, []sim.Step{
		start(2), start(3), start(1), write(1, 1), cutWriting(3, 0), write(1, 1), join(3), write(3, 1),
	}},
	{"its transaction is truncated", 3, []sim.Step{
		start(2), start(3), start(1), write(1, 1), cutWriting(3, 1), join(3), write(3, 1),
	}},
	{"it replaces a history", 2, []sim.Step{
		start(1), start(3), start(2), write(2, 1), cutWriting(3, 0), write(1, 1), join(3), kill(2), write(3, 1), start(2),
	}},
	{"it truncates a transaction", 2, []sim.Step{
		start(1), start(3), start(2), write(2, 1), cutWriting(3, 1), join(3), write(3, 1),
	}},
	{"it has led without a transaction", 3, []sim.Step{
		start(3), start(1), start(2), cut(3),
	}},
	{"it leads with an older history", 2, []sim.Step{
		start(2), start(3), start(1), kill(2), write(1, 1), start(2), kill(3), start(3), write(3, 1),
	}},
}

// TestScenarios plays the scenarios to ZooKeeper. It fails for a difference that is
// not known, and for a known one that does not occur any more.
func TestScenarios(t *testing.T) {
	var passed atomic.Int64
	k := readKnowledge(t)
	t.Cleanup(func() {
		if int(passed.Load()) < len(scenarios) {
			return // not all scenarios were selected, or one has failed
		}
		for _, row := range k.outlived() {
			t.Errorf("this known difference does not occur, remove it from the table in docs/testing.md: %s", row)
		}
	})
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rec, err := sim.Record(uint64(i+1), s.compatible, s.steps)
			if err != nil {
				t.Fatal(err)
			}
			if compare(t, rec, k); !t.Failed() {
				passed.Add(1)
			}
		})
	}
}

// compare plays a run to ZooKeeper, and fails for each difference that is not known.
func compare(t *testing.T, rec *sim.Recording, k *knowledge) {
	t.Helper()
	t.Logf("server %d is ZooKeeper's; steps: %v", rec.Compatible, stepsOf(rec))
	listed := map[difference]bool{}
	for _, d := range repeat(t, rec, k) {
		if !listed[d] {
			listed[d] = true
			t.Error(d)
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

// TestSeeds plays runs whose steps a seed decides.
func TestSeeds(t *testing.T) {
	k := readKnowledge(t)
	for n := range *seeds {
		seed := *oneSeed + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rec, err := sim.Record(seed, ensemble.ServerID(1+seed%sim.RecordedServers), nil)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, rec, k)
		})
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
