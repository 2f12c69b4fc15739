package sim

import (
	"strings"
	"testing"

	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
)

// lockTally counts what multi-lock clients get.
type lockTally map[string]int

func (lockTally) Name() string { return "LockTally" }

func (c lockTally) See(o any) string {
	switch o.(type) {
	case check.LockTaken:
		c["one"]++
	case check.AllTaken:
		c["all"]++
	}
	return ""
}

// TestMultiLocks lets clients take two or three of three locks together, named in any
// order, under all faults. It checks that no lock has two holders, that a client which
// reports all its locks holds each of them, and that in the end no client waits forever.
func TestMultiLocks(t *testing.T) {
	all := lockTally{}
	for seed := range uint64(4) {
		s := New(Options{
			Seed: seed + 1, Events: 100_000, Recipe: client.MultiLocks, Lies: -1,
			Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200, SessionTicks: 8,
			rule: func() check.Checker { return all },
		})
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
	}
	t.Log(all)
	if all["all"] < 100 || all["one"] < 300 {
		t.Errorf("%v", all)
	}
}
