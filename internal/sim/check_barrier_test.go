package sim

import (
	"testing"

	"bellwether/internal/claim/barrier"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// brokenBarriers are sequences of observations that break the rule of a double barrier of
// size two.
var brokenBarriers = []broken{
	{"ready for one alone", barrierRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{stood(a, 1, "a"), gone(a, 2, "a"), stood(a, 3, "b"), stood(a, 4, "ready")}
	}},
	{"ready made anew for who is left", barrierRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{stood(a, 1, "a"), stood(a, 2, "b"), stood(a, 3, "ready"), gone(a, 4, "a"), gone(a, 5, "ready"), stood(a, 6, "ready")}
	}},
	{"kazoo's ready made anew when the round is over", kazooRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return append(readyAgain(a), gone(a, 7, "ready"), gone(a, 8, "b"), stood(a, 9, "c"), stood(a, 10, "ready"))
	}},
	{"let in without ready", barrierRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{stood(a, 1, "a"), stood(a, 2, "ready of others"), memberIn{someMember("a"), false}}
	}},
	{"let in by what the dead have left", barrierRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{
			stood(a, 1, "a"), stood(a, 2, "b"), stood(a, 3, "ready"), stood(a, 4, "c"), memberIn{someMember("c"), true},
			gone(a, 5, "a"), gone(a, 6, "b"), stood(a, 7, "d"), memberIn{someMember("d"), true},
		}
	}},
	{"let out before the others", barrierRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		g := someMember("a")
		return []any{stood(a, 1, "a"), stood(a, 2, "b"), stood(a, 3, "ready"), memberIn{g, false}, gone(a, 4, "a"), memberOut{g}}
	}},
}

func barrierRule(_ *check.History, s *Sim) check.Checker {
	s.opt.Leases = 1
	return newBarriers(s)
}

func kazooRule(_ *check.History, s *Sim) check.Checker {
	s.opt.Leases, s.opt.Recipe = 1, KazooBarrier
	return newBarriers(s)
}

// readyAgain returns a round of kazoo's variant in which b makes the ready znode again
// after a has left.
func readyAgain(v *server) []any {
	return []any{stood(v, 1, "a"), stood(v, 2, "b"), stood(v, 3, "ready"), gone(v, 4, "ready"), gone(v, 5, "a"), stood(v, 6, "ready")}
}

// TestReadyOfKazooIsMadeAgain checks that the checker accepts a member's late request:
// another member made the ready znode before it and has left since.
func TestReadyOfKazooIsMadeAgain(t *testing.T) {
	s := newScene(t, Options{Seed: 1})
	b := kazooRule(nil, s.Sim)
	for _, o := range readyAgain(s.servers[0]) {
		if wrong := b.See(o); wrong != "" {
			t.Error(wrong)
		}
	}
}

// someMember returns a member with the given znode.
func someMember(name string) *barrierMember {
	g := newBarrierMember(&client{})
	g.name, g.m = name, barrier.NewMember(barrier.MemberConfig{})
	return g
}

// stood and gone return the transactions by which a znode of the barrier is created and
// deleted.
func stood(v *server, z wire.Zxid, name string) check.Committed {
	return check.Committed{Server: v.id, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Zxid: z}, Body: &record.CreateTxn{Path: gatePath + "/" + name}}}
}

func gone(v *server, z wire.Zxid, name string) check.Committed {
	return check.Committed{Server: v.id, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Zxid: z}, Body: &record.DeleteTxn{Path: gatePath + "/" + name}}}
}
