package sim

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/value"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// workOptions returns options for many operations. Workers are killed, stopped and cut off,
// and sometimes a server is.
func workOptions(r client.Recipe, seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: r, TermMS: 10,
		Voters: 3, Observers: -1, Clients: -1, Candidates: 6, TickMS: 200,
	}
}

// tally counts operations by kind and outcome.
type tally map[string]int

func (tally) Name() string { return "Tally" }

func (c tally) See(o any) string {
	if e, ok := o.(check.WorkEnded); ok && !e.Crashed {
		switch e.Operation.(type) {
		case *queues.Put:
			c["put "+e.Operation.Outcome().String()]++
		case *queues.Take:
			c["take "+e.Operation.Outcome().String()]++
		case *queues.Acknowledgement:
			c["hand in "+e.Operation.Outcome().String()]++
		case *value.Change:
			c["change "+e.Operation.Outcome().String()]++
		case *registry.Removal:
			c["removal "+e.Operation.Outcome().String()]++
		case *barrier.Barrier:
			c[[]string{"close ", "open ", "pass "}[e.Operation.(*barrier.Barrier).Act()]+e.Operation.Outcome().String()]++
		}
	}
	return ""
}

// TestWork puts many items through queues and counts many times, under all faults. It
// checks that nothing is lost or doubled, that the order holds, and that in the end nothing
// is left.
func TestWork(t *testing.T) {
	for _, x := range []struct {
		recipe client.Recipe
		want   map[string]int
		also   []uint64 // seeds besides the first ten that find bugs which are rarely met
	}{
		{client.Queue, map[string]int{"put succeeded": 3000, "take succeeded": 3000}, nil},
		{client.WorkQueue, map[string]int{"put succeeded": 2000, "hand in succeeded": 2000, "hand in failed": 1}, []uint64{32, 40}},
		{client.Count, map[string]int{"change succeeded": 10000, "removal succeeded": 500}, nil},
		{client.Barrier, map[string]int{"close succeeded": 1000, "open succeeded": 1000, "pass succeeded": 6000}, nil},
	} {
		t.Run(string(x.recipe), func(t *testing.T) {
			all := tally{}
			for _, seed := range slices.Concat([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, x.also) {
				o := workOptions(x.recipe, seed)
				o.rule = func() check.Checker { return all }
				s := New(o)
				s.finish()
				if s.failed != nil {
					t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
				}
			}
			t.Log(all)
			for what, least := range x.want {
				if all[what] < least {
					t.Errorf("%s: %d, want %d", what, all[what], least)
				}
			}
		})
	}
}

// crashSteps is the number of steps at which a worker crashes.
const crashSteps = 20

// TestQueueCrashAtEveryStep lets a producer and a consumer crash at every step. It checks
// that each item exists once, is taken or acknowledged once, and that no client waits
// forever.
func TestQueueCrashAtEveryStep(t *testing.T) {
	for i := range 4 {
		recipe, who := []client.Recipe{client.Queue, client.WorkQueue}[i&1], i>>1
		for at := 1; at <= crashSteps; at++ {
			s := newScene(t, Options{Seed: uint64(at)})
			s.opt.Recipe = recipe
			for n := range 3 {
				s.clients.Cast(s.scripted(nil), n)
			}
			victim := s.clients.Workers()[who]
			victim.Client().CrashAt = at
			s.until("the victim crashes", 60*machine.Second, func() bool { return victim.Lives > 0 })
			s.RunFor(machine.Second)
			s.quiet = true
			s.until("every item is taken and done with", 60*machine.Second, func() bool { return s.clients.ItemsLeft() == "" })
			s.clients.EndWork()
			s.until("nothing is left", 60*machine.Second, func() bool { return s.clients.WorkLeft() == "" })
			if puts := s.clients.Workers()[0].Puts; puts < 2 {
				t.Errorf("%s, step %d: %d items were put", recipe, at, puts)
			}
		}
	}
}

// TestItemOfADeadConsumerComesBack checks that an item whose consumer dies comes back to
// another consumer once, and is acknowledged once. The dead consumer is told so when it
// comes back and acknowledges the item.
func TestItemOfADeadConsumerComesBack(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	s.opt.Recipe = client.WorkQueue
	all := tally{}
	s.checkers = append(s.checkers, all)
	for n := range 3 {
		s.clients.Cast(s.scripted(nil), n)
	}
	dead, other := s.clients.Workers()[1], s.clients.Workers()[2]
	s.until("it has an item", 20*machine.Second, func() bool { return dead.Taken != nil })
	item, _, _ := dead.Taken.Taken()
	s.Do(Act{Kind: Hang, A: -dead.Client().ID})
	s.quiet = true
	s.until("another has it", 60*machine.Second, func() bool {
		if other.Taken == nil {
			return false
		}
		again, _, _ := other.Taken.Taken()
		return again == item
	})
	s.Do(Act{Kind: Return, A: -dead.Client().ID})
	s.until("every item is done with", 60*machine.Second, func() bool { return s.clients.ItemsLeft() == "" })
	if all["hand in failed"] != 1 {
		t.Errorf("%v", all)
	}
}
