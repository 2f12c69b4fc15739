//go:build !race

package tree

import (
	"fmt"
	"runtime"
	"testing"
)

// TestMemoryPerZnode: a znode with 100 bytes of data and a name of 15 bytes uses a
// limited amount of memory, with many or few znodes in a directory.
func TestMemoryPerZnode(t *testing.T) {
	const n, limit = 200_000, 300
	for _, perDirectory := range []int{10, 1000, n} {
		before := liveHeap()
		tree := New(Options{Seed: 1})
		fill(t, tree, n, perDirectory)
		perNode := float64(liveHeap()-before) / float64(tree.nodes)
		runtime.KeepAlive(tree)
		t.Logf("%d per directory: %.0f bytes", perDirectory, perNode)
		if perNode > limit {
			t.Errorf("%d per directory: a znode takes %.0f bytes, at most %d are wanted", perDirectory, perNode, limit)
		}
	}
}

// TestMemoryPerWatch: a one-shot watch uses a limited amount of memory. The paths have 26
// bytes, and 1000 connections have watches.
func TestMemoryPerWatch(t *testing.T) {
	const n, limit = 200_000, 250
	tree := New(Options{Seed: 1})
	conns := make([]conn, 1000)
	before := liveHeap()
	for i := range n {
		tree.watches.add(&conns[i%len(conns)], fmt.Sprintf("/directory/node-%010d", i), dataOnce)
	}
	perWatch := float64(liveHeap()-before) / n
	runtime.KeepAlive(tree)
	t.Logf("%.0f bytes", perWatch)
	if perWatch > limit {
		t.Errorf("a watch takes %.0f bytes, at most %d are wanted", perWatch, limit)
	}
}
