package tree

import (
	"testing"

	"bellwether/internal/record"
)

// BenchmarkSnapshot visits a million znodes as a snapshot does.
func BenchmarkSnapshot(b *testing.B) {
	tree := New(Options{Seed: 1})
	fill(b, tree, 1_000_000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		n, bytes := 0, byte(0)
		err := tree.Snapshot().Nodes(func(path string, d *record.DataNode) error {
			for _, c := range d.Data {
				bytes += c
			}
			n++
			return nil
		})
		if err != nil || n < 1_000_000 || bytes != 0 {
			b.Fatal(err, n, "znodes", bytes)
		}
	}
}

// TestSnapshotAllocatesLittle: a pass over the znodes allocates memory for some hundred of them at once.
func TestSnapshotAllocatesLittle(t *testing.T) {
	const n = 10_000
	tree := New(Options{Seed: 1})
	fill(t, tree, n, 1000)
	if got := testing.AllocsPerRun(10, func() {
		tree.Snapshot().Nodes(func(string, *record.DataNode) error { return nil })
	}); got > n/20 {
		t.Errorf("%v allocations for %d znodes", got, n)
	}
}
