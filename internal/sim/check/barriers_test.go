package check

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/wire"
)

// brokenBarriers are sequences of observations that break the rule of a double barrier of
// size two.
var brokenBarriers = []broken{
	{"ready for one alone", barrierRule, func(_ *History) []any {
		return []any{stood(a, 1, "a"), gone(a, 2, "a"), stood(a, 3, "b"), stood(a, 4, "ready")}
	}},
	{"ready made anew for who is left", barrierRule, func(_ *History) []any {
		return []any{stood(a, 1, "a"), stood(a, 2, "b"), stood(a, 3, "ready"), gone(a, 4, "a"), gone(a, 5, "ready"), stood(a, 6, "ready")}
	}},
	{"kazoo's ready made anew when the round is over", kazooRule, func(_ *History) []any {
		return append(readyAgain(a), gone(a, 7, "ready"), gone(a, 8, "b"), stood(a, 9, "c"), stood(a, 10, "ready"))
	}},
	{"let in without ready", barrierRule, func(_ *History) []any {
		return []any{stood(a, 1, "a"), stood(a, 2, "ready of others"), MemberIn{1, "a", false}}
	}},
	{"let in by what the dead have left", barrierRule, func(_ *History) []any {
		return []any{
			stood(a, 1, "a"), stood(a, 2, "b"), stood(a, 3, "ready"), stood(a, 4, "c"), MemberIn{1, "c", true},
			gone(a, 5, "a"), gone(a, 6, "b"), stood(a, 7, "d"), MemberIn{1, "d", true},
		}
	}},
	{"let out before the others", barrierRule, func(_ *History) []any {
		return []any{stood(a, 1, "a"), stood(a, 2, "b"), stood(a, 3, "ready"), MemberIn{1, "a", false}, gone(a, 4, "a"), MemberOut{1, "a", false}}
	}},
}

func barrierRule(*History) Checker { return newBarriers(&present{recipe: Recipe{GateSize: 2}}) }

func kazooRule(*History) Checker {
	return newBarriers(&present{recipe: Recipe{GateSize: 2, KazooBarrier: true}})
}

// readyAgain returns a round of kazoo's variant in which b makes the ready znode again
// after a has left.
func readyAgain(v ensemble.ServerID) []any {
	return []any{stood(v, 1, "a"), stood(v, 2, "b"), stood(v, 3, "ready"), gone(v, 4, "ready"), gone(v, 5, "a"), stood(v, 6, "ready")}
}

// TestReadyOfKazooIsMadeAgain checks that the checker accepts a member's late request:
// another member made the ready znode before it and has left since.
func TestReadyOfKazooIsMadeAgain(t *testing.T) {
	c := kazooRule(nil)
	for _, o := range readyAgain(a) {
		if wrong := c.See(o); wrong != "" {
			t.Error(wrong)
		}
	}
}

// stood and gone return the transactions by which a znode of the barrier is created and
// deleted.
func stood(v ensemble.ServerID, z wire.Zxid, name string) Committed {
	return Committed{Server: v, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Zxid: z}, Body: &record.CreateTxn{Path: GatePath + "/" + name}}}
}

func gone(v ensemble.ServerID, z wire.Zxid, name string) Committed {
	return Committed{Server: v, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Zxid: z}, Body: &record.DeleteTxn{Path: GatePath + "/" + name}}}
}
