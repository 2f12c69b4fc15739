package sim

import (
	"slices"
	"testing"

	"bellwether/internal/sim/check"
)

// threeStarts is a rule that breaks when server 1 starts for the third time.
type threeStarts struct{ n int }

func (*threeStarts) Name() string { return "ThreeStarts" }

func (c *threeStarts) See(o any) string {
	if r, ok := o.(check.Restarted); ok && r.Server == 1 {
		if c.n++; c.n == 3 {
			return "server 1 starts for the third time"
		}
	}
	return ""
}

// TestShrinkKeepsWhatTheFailureNeeds checks that Shrink keeps only the faults that the failure
// needs, and no unrelated machine.
func TestShrinkKeepsWhatTheFailureNeeds(t *testing.T) {
	for seed := uint64(1); ; seed++ {
		_, err := Run(Options{Seed: seed, Moves: -1, Lasting: NoLasting, rule: func() check.Checker { return new(threeStarts) }})
		f, failed := err.(*Failure)
		if !failed || len(f.Acts) < 20 {
			continue
		}
		small := Shrink(f, 300)
		if small.Rule != f.Rule || len(small.Acts) > 4 {
			t.Errorf("%v: %d faults of %d are left: %v", small, len(small.Acts), len(f.Acts), small.Acts)
		}
		if o := small.Options; o.Clients > 1 || o.Candidates > 0 || o.Observers > 0 {
			t.Errorf("%d clients, %d candidates and %d observers are left: %s", o.Clients, o.Candidates, o.Observers, small.Options.Command())
		}
		o := commanded(t, small.Options.Command())
		o.rule = small.Options.rule
		_, err = Run(o)
		if again, failed := err.(*Failure); !failed || again.Report(traceMax) != small.Report(traceMax) {
			t.Errorf("%s: what is left does not fail again: %v", small.Options.Command(), err)
		}
		return
	}
}

// manyStarts is a rule that breaks when a server starts for the fifteenth time in the run.
type manyStarts struct{ n int }

func (*manyStarts) Name() string { return "ManyStarts" }

func (c *manyStarts) See(o any) string {
	if _, ok := o.(check.Restarted); ok {
		c.n++
	}
	if c.n == 15 {
		return "fifteen starts"
	}
	return ""
}

// TestShrinkRepeatsTheRun checks that a run whose faults are given fails as the run that
// drew them. It may need some more events, because faults that came together are then one
// event each.
func TestShrinkRepeatsTheRun(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		_, err := Run(Options{Seed: seed, rule: func() check.Checker { return new(manyStarts) }})
		f, failed := err.(*Failure)
		if !failed || slices.ContainsFunc(f.Acts, isCalm) {
			continue
		}
		if again := Shrink(f, 1); again.Options.Acts == nil || slices.ContainsFunc(again.Acts, isCalm) {
			t.Errorf("seed %d fails after %d events, and not so with its %d faults given", seed, f.Events, len(f.Acts))
		}
	}
}

func isCalm(a Act) bool { return a.Kind == Calm }
