package zab

import (
	"math"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

func logOf(t testing.TB, base, entries string) *Log {
	t.Helper()
	g := NewLog(zx(base), 0)
	for _, x := range txns(entries) {
		if err := g.Append(x); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// TestLogRefusesGaps: an entry that does not follow the last entry is refused (ZOOKEEPER-4925, 1277).
func TestLogRefusesGaps(t *testing.T) {
	full := wire.MakeZxid(1, math.MaxUint32)
	for _, c := range []struct {
		last, next wire.Zxid
		ok         bool
	}{
		{zx("1.5"), zx("1.6"), true}, {zx("1.5"), zx("2.1"), true}, {zx("1.5"), zx("7.1"), true}, {0, zx("1.1"), true},
		{zx("2.0"), zx("2.1"), true},
		{zx("1.5"), zx("1.7"), false}, {zx("1.5"), zx("1.5"), false}, {zx("1.5"), zx("1.4"), false},
		{zx("1.5"), zx("2.0"), false}, {zx("1.5"), zx("2.2"), false}, {zx("2.1"), zx("1.1"), false},
		{full - 1, full, true}, {full, full + 1, false}, {full, zx("2.1"), true},
	} {
		g := NewLog(c.last, 0)
		if err := g.Append(&record.Txn{TxnHeader: record.TxnHeader{Zxid: c.next}}); (err == nil) != c.ok {
			t.Errorf("%v after %v: %v", c.next, c.last, err)
		}
	}
}

// TestLogForgetsOldApplied: applied entries are dropped when there are too many, but never the newest
// KeepMin of them. Entries that are not applied are never dropped.
func TestLogForgetsOldApplied(t *testing.T) {
	g := NewLog(0, 0)
	for i := 1; i <= 5000; i++ {
		if err := g.Append(&record.Txn{TxnHeader: record.TxnHeader{Zxid: wire.MakeZxid(1, uint32(i))}}); err != nil {
			t.Fatal(err)
		}
		if i > 100 {
			g.MarkApplied(wire.MakeZxid(1, uint32(i-100)))
		}
		applied := g.index(g.applied)
		if i > 1100 && applied < KeepMin || applied > 2*KeepMin {
			t.Fatalf("after %d: %d applied ones remembered", i, applied)
		}
	}
	if g.before+1 != g.entries[0].Zxid || len(g.entries)-g.index(g.applied) != 100 {
		t.Errorf("begins at %v after %v, %d entries not applied", g.entries[0].Zxid, g.before, len(g.entries)-g.index(g.applied))
	}
}

// TestLogReach: a truncation ends at an entry of the log, or at the beginning of an epoch.
func TestLogReach(t *testing.T) {
	g := logOf(t, "1.3", "1.4 1.5 2.1 2.2")
	installed := NewLog(0, 0)
	installed.install(zx("1.3"), txns("1.4 1.5"), 2)
	for _, c := range []struct {
		log     *Log
		to, end string
		ok      bool
	}{
		{g, "2.2", "2.2", true}, {g, "1.5", "1.5", true}, {g, "2.0", "1.5", true}, {g, "1.3", "1.3", true},
		{g, "1.2", "1.2", true}, // the entry may still be on the disk
		{g, "1.7", "1.5", false}, {g, "2.3", "2.3", false}, {g, "3.0", "3.0", false},
		{installed, "1.5", "1.5", true}, {installed, "1.4", "1.4", false}, {installed, "1.2", "1.2", false},
	} {
		if end, ok := c.log.reach(zx(c.to)); ok != c.ok || ok && end != zx(c.end) {
			t.Errorf("truncation to %s: %v %v, want %s %v", c.to, dotted(end), ok, c.end, c.ok)
		}
	}
}
