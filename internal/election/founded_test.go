package election

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// TestInterruptedFirstStart: after an interrupted first start some voters have an epoch
// and none has a transaction. If all voters are connected, the empty ones need not wait
// for a leader. If one is missing they must wait, because it may have a history.
func TestInterruptedFirstStart(t *testing.T) {
	ids := []ensemble.ServerID{1, 2, 3, 4, 5}
	w := newWorld()
	m := membership(0, ids, nil, nil, nil)
	for _, id := range ids {
		s := w.add(id, m)
		if id <= 2 {
			s.look.Epoch = 1
		}
	}
	for _, id := range ids[:4] {
		w.start(id)
	}
	if w.converge(10_000) {
		t.Fatalf("empty servers elect while a voter is missing:\n%s", strings.Join(w.output, "\n"))
	}
	w.start(5)
	if !w.converge(10_000) {
		t.Fatalf("no leader:\n%s\n%s", strings.Join(w.output, "\n"), w.states())
	}
	if len(w.wrong) > 0 {
		t.Fatal(w.wrong[0])
	}
}

// TestEmptyServerWaitsForKnownHistory: an empty server waits if one of the voters knows
// of a transaction.
func TestEmptyServerWaitsForKnownHistory(t *testing.T) {
	ids := []ensemble.ServerID{1, 2, 3}
	w := newWorld()
	m := membership(0, ids, nil, nil, nil)
	for _, id := range ids {
		w.add(id, m)
	}
	w.servers[1].look.Epoch, w.servers[1].look.Zxid = 1, wire.MakeZxid(1, 5)
	for _, id := range ids {
		w.start(id)
	}
	if w.converge(10_000) {
		t.Fatalf("two empty servers follow one with a history, or lead it:\n%s", strings.Join(w.output, "\n"))
	}
}
