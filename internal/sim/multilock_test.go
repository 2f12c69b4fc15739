package sim

import (
	"strings"
	"testing"

	"bellwether/internal/claim/lines"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// lockTally counts what multi-lock clients get.
type lockTally map[string]int

func (lockTally) Name() string { return "LockTally" }

func (c lockTally) See(o any) string {
	switch o.(type) {
	case lockTaken:
		c["one"]++
	case allTaken:
		c["all"]++
	}
	return ""
}

// TestSeveralLocks lets clients take two or three of three locks together, named in any
// order, under all faults. It checks that no lock has two holders, that a client which
// reports all its locks holds each of them, and that in the end no client waits forever.
func TestSeveralLocks(t *testing.T) {
	all := lockTally{}
	for seed := range uint64(3) {
		s := New(Options{
			Seed: seed + 1, Events: 100_000, Recipe: SeveralLocks,
			Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200,
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

// brokenSeveral are sequences of observations that break the rule of locks that are taken
// together.
var brokenSeveral = []broken{
	{"a lock with two holders", severalRule, func(_ *check.History, s *Sim, _, _ *server) []any {
		all := someGrabs(s, "p", "q", "p")
		return []any{lockTaken{all[1], 2}, lockProven{all[1]}, lockTaken{all[2], 3}}
	}},
	{"a holder's token that is older than the last", severalRule, func(_ *check.History, s *Sim, _, _ *server) []any {
		all := someGrabs(s, "p", "q")
		return []any{lockTaken{all[0], 3}, lockTaken{all[1], 2}, lockTaken{all[0], 3}}
	}},
	{"a holder of all that lacks one", severalRule, func(_ *check.History, s *Sim, _, _ *server) []any {
		g := someGrabs(s, "p")[0].g
		other := *g
		g.paths, other.paths = []string{"p"}, []string{"p", "q"}
		return []any{allTaken{g}, allTaken{&other}}
	}},
	{"a holder's session ends before its term", severalRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		someGrabs(s, "p")
		end := func(session wire.SessionID) check.Committed {
			return check.Committed{Server: a.id, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: session, Type: wire.OpCloseSession}, Body: &record.CloseSessionTxn{}}}
		}
		return []any{end(99), end(1)}
	}},
}

func severalRule(_ *check.History, s *Sim) check.Checker { return newSeveral(s) }

// someGrabs returns grabs of multi-lock clients with sessions 1, 2 and so on, each of which
// holds a lock.
func someGrabs(s *Sim, paths ...string) (all []*grab) {
	var clients []*client
	for i, path := range paths {
		k := holder(s, wire.SessionID(i+1))
		g := &multiLock{c: k.c}
		one := &grab{runner: runner{c: k.c}, g: g, path: path, line: k.line.(*lines.Line), taken: true}
		g.grabs, k.c.player = []*grab{one}, g
		clients, all = append(clients, k.c), append(all, one)
	}
	s.clients = clients
	return all
}
