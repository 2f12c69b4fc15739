package election

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// A first start that is interrupted leaves some voters with an epoch and none
// with a transaction. The empty ones must not wait for a leader for ever:
// with all voters there, there is nothing to wait for. With one missing there
// is, for it may have a history.
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
		t.Fatalf("empty servers elect while a voter is missing:\n%s", strings.Join(w.story, "\n"))
	}
	w.start(5)
	if !w.converge(10_000) {
		t.Fatalf("no leader:\n%s\n%s", strings.Join(w.story, "\n"), w.states())
	}
	if len(w.wrong) > 0 {
		t.Fatal(w.wrong[0])
	}
}

// The caution stays where one of the voters knows of a transaction.
func TestLostHistoryIsNotFoundedAnew(t *testing.T) {
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
		t.Fatalf("two empty servers follow one with a history, or lead it:\n%s", strings.Join(w.story, "\n"))
	}
}
