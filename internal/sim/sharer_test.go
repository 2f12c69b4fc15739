package sim

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// shared counts what members own and do.
type shared map[string]int

func (shared) Name() string { return "Shared" }

func (c shared) See(o any) string {
	switch o.(type) {
	case partOwned:
		c["owned"]++
	case taskBegan:
		c["begun"]++
	case taskDone:
		c["done"]++
	}
	return ""
}

// TestSharing lets members share parts and do tasks under all faults while they come and
// go. It checks that no part has two owners, that no task is done after it is over, and
// that in the end every part has one owner and no task is left.
func TestSharing(t *testing.T) {
	for _, x := range []struct {
		recipe Recipe
		want   map[string]int
	}{
		{Partitioner, map[string]int{"owned": 200}},
		{Work, map[string]int{"owned": 200, "begun": 200, "done": 150}},
	} {
		t.Run(string(x.recipe), func(t *testing.T) {
			all := shared{}
			for seed := range uint64(3) {
				s := New(Options{
					Seed: seed + 1, Events: 60_000, Recipe: x.recipe,
					Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200,
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
func (s *scene) someTask() (all []*sharer, o *owner) {
	s.opt.Recipe = Work
	for n := range 2 {
		s.cast(s.scripted(nil), n)
	}
	all = s.sharers()
	s.until("a task is begun", 30*second, func() bool { o = all[1].doing(); return o != nil })
	s.quiet = true
	return all, o
}

// doing returns the owner whose task is being done; nil: there is none.
func (s *sharer) doing() *owner {
	for _, o := range s.owners {
		if o.task.due && !o.task.did {
			return o
		}
	}
	return nil
}

// TestTaskOfADeadMemberIsTakenOver hangs a member that is doing a task until its session is
// over. It checks that another member does the task, and that the first one ends nothing
// when it goes on.
func TestTaskOfADeadMemberIsTakenOver(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		all, o := s.someTask()
		s.Do(Act{Kind: Hang, A: -all[1].c.id})
		s.until("another does it", 60*second, func() bool { other := all[0].doing(); return other != nil && other.part == o.part })
		s.Do(Act{Kind: Return, A: -all[1].c.id})
		s.until("all tasks are done", 60*second, func() bool { return s.allShared() == "" })
	}
}

// TestTaskOfAKickedOwnerStays deletes the bid by which a task is owned. It checks that the
// owner does not end the task before it owns it again.
func TestTaskOfAKickedOwnerStays(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		k := s.client(nil)
		_, o := s.someTask()
		bid := claim.Join(o.parent(), o.line.State().Bid)
		o.kicked = true
		kick := k.ask(requestOf(&claim.Op{Kind: claim.OpDelete, Path: bid, Version: claim.AnyVersion}))
		s.until("the bid is gone", 20*second, func() bool { return kick.done != 0 })
		s.until("all tasks are done", 60*second, func() bool { return s.allShared() == "" })
	}
}

// brokenShares are sequences of observations that break the rule of shared parts.
var brokenShares = []broken{
	{"a part with two owners", shareRule, func(_ *check.History, s *Sim, _, _ *server) []any {
		all := someOwners(s, "p", "q")
		other := newOwner(all[1].s, "p")
		other.line = all[1].line
		return []any{partOwned{all[0], 2}, partOwned{all[1], 3}, partProven{all[1]}, partOwned{other, 4}}
	}},
	{"an owner's token that is older than the last", shareRule, func(_ *check.History, s *Sim, _, _ *server) []any {
		all := someOwners(s, "p", "q")
		return []any{partOwned{all[0], 3}, partOwned{all[1], 2}, partOwned{all[0], 2}}
	}},
	{"an owner's session ends before its term", shareRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		all := someOwners(s, "p")
		end := func(session wire.SessionID) check.Committed {
			return check.Committed{Server: a.id, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: session, Type: wire.OpCloseSession}, Body: &record.CloseSessionTxn{}}}
		}
		return []any{partOwned{all[0], 3}, end(99), end(1)}
	}},
	{"a task begun that is over", shareRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		all := someOwners(s, "t", "u")
		return []any{submits(a, "t"), taskBegan{all[0]}, taskBegan{all[1]}}
	}},
	{"a task said to be over that is not", shareRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		all := someOwners(s, "t")
		return []any{submits(a, "t"), taskBegan{all[0]}, taskDone{all[0]}}
	}},
	{"a task that goes, and nobody has begun it", shareRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{submits(a, "t"), wrote(a, 1, &record.DeleteTxn{Path: shareTasks + "/t"})}
	}},
	{"a task ended by who does not own it", shareRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		all := someOwners(s, "t")
		return []any{submits(a, "t"), taskBegan{all[0]}, wrote(a, 1, &record.DeleteTxn{Path: shareTasks + "/t"})}
	}},
}

func shareRule(_ *check.History, s *Sim) check.Checker { return newShares(s) }

func submits(v *server, task string) check.Committed {
	return wrote(v, 9, &record.CreateTxn{Path: shareTasks + "/" + task})
}

// someOwners returns owners of members with sessions 1, 2 and so on, each of which owns a
// part.
func someOwners(s *Sim, parts ...string) (all []*owner) {
	var clients []*client
	for i, part := range parts {
		k := holder(s, wire.SessionID(i+1))
		m := &sharer{c: k.c}
		o := newOwner(m, part)
		o.line = k.line.(*lines.Election)
		m.owners, k.c.player = []*owner{o}, m
		clients, all = append(clients, k.c), append(all, o)
	}
	s.clients = slices.Clone(clients)
	return all
}
