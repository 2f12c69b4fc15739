package sim

import "testing"

// threeStarts is broken when server 1 starts for the third time.
type threeStarts struct{ n int }

func (*threeStarts) name() string { return "ThreeStarts" }

func (c *threeStarts) see(o any) string {
	if r, ok := o.(restarted); ok && r.v.id == 1 {
		if c.n++; c.n == 3 {
			return "server 1 starts for the third time"
		}
	}
	return ""
}

// What is left of a failing run are the faults that it takes, and no machine
// that has nothing to do with it.
func TestShrinkLeavesWhatItTakes(t *testing.T) {
	for seed := uint64(1); ; seed++ {
		_, err := Run(Options{Seed: seed, Moves: -1, rule: func() checker { return new(threeStarts) }})
		f, failed := err.(*Failure)
		if !failed || len(f.Acts) < 20 {
			continue
		}
		small := Shrink(f, 300)
		if small.Rule != f.Rule || len(small.Acts) > 4 {
			t.Errorf("%v: %d faults of %d are left: %v", small, len(small.Acts), len(f.Acts), small.Acts)
		}
		if o := small.Options; o.Clients > 1 || o.Candidates > 0 || o.Observers > 0 {
			t.Errorf("%d clients, %d candidates and %d observers are left", o.Clients, o.Candidates, o.Observers)
		}
		o := commanded(t, small.Options.Command())
		o.rule = small.Options.rule
		_, err = Run(o)
		if again, failed := err.(*Failure); !failed || again.Report(storyMax) != small.Report(storyMax) {
			t.Errorf("%s: what is left does not fail again: %v", small.Options.Command(), err)
		}
		return
	}
}
