package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// shared counts what members own and do.
type shared map[string]int

func (shared) Name() string { return "Shared" }

func (c shared) See(o any) string {
	switch o.(type) {
	case check.PartOwned:
		c["owned"]++
	case check.TaskBegan:
		c["begun"]++
	case check.TaskDone:
		c["done"]++
	}
	return ""
}

// TestSharing lets members share parts and do tasks under all faults while they come and
// go. It checks that no part has two owners, that no task is done after it is over, and
// that in the end every part has one owner and no task is left.
func TestSharing(t *testing.T) {
	for _, x := range []struct {
		recipe client.Recipe
		want   map[string]int
	}{
		{client.Partitioner, map[string]int{"owned": 200}},
		{client.Work, map[string]int{"owned": 150, "begun": 150, "done": 100}},
	} {
		t.Run(string(x.recipe), func(t *testing.T) {
			all := shared{}
			for seed := range uint64(3) {
				s := New(Options{
					Seed: seed + 1, Events: 60_000, Recipe: x.recipe,
					Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200, SessionTicks: 8,
					rule: func() check.Checker { return all },
				})
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

// someTask waits until one of two members is doing a task, and stops further submissions.
func (s *scene) someTask() (all []*client.Sharer, o *client.Owner) {
	s.opt.Recipe = client.Work
	for n := range 2 {
		s.clients.Cast(s.scripted(nil), n)
	}
	all = s.clients.Sharers()
	s.until("a task is begun", 30*machine.Second, func() bool { o = all[1].Doing(); return o != nil })
	s.quiet = true
	return all, o
}

// TestTaskOfADeadMemberIsTakenOver hangs a member that is doing a task until its session is
// over. It checks that another member does the task, and that the first member does not
// end the task when it goes on.
func TestTaskOfADeadMemberIsTakenOver(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		all, o := s.someTask()
		s.Do(Act{Kind: Hang, A: -all[1].Client().ID})
		s.until("another does it", 60*machine.Second, func() bool { other := all[0].Doing(); return other != nil && other.Part == o.Part })
		s.Do(Act{Kind: Return, A: -all[1].Client().ID})
		s.until("all tasks are done", 60*machine.Second, func() bool { return s.clients.PartsMissing() == "" })
	}
}

// TestTaskStaysWhenTheBidIsDeleted deletes the bid by which a task is owned. It checks that the
// owner does not end the task before it owns the task again.
func TestTaskStaysWhenTheBidIsDeleted(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		k := s.client(nil)
		_, o := s.someTask()
		bid := o.Bid()
		o.BidDeleted = true
		kick := k.Ask(client.RequestOf(&claim.Op{Kind: claim.OpDelete, Path: bid, Version: claim.AnyVersion}))
		s.until("the bid is gone", 20*machine.Second, func() bool { return kick.Done != 0 })
		s.until("all tasks are done", 60*machine.Second, func() bool { return s.clients.PartsMissing() == "" })
	}
}
