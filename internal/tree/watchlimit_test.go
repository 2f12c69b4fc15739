//go:build !race

package tree

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/wire"
)

// TestWatchesOfOneConnectionAreBounded: the watches of one connection use at most
// WatchBytesMax. Memory of removed watches can be used again, and other connections are
// not affected.
func TestWatchesOfOneConnectionAreBounded(t *testing.T) {
	tr := New(Options{})
	greedy, modest := &conn{session: 1}, &conn{session: 2}
	long := strings.Repeat("x", 1<<20)
	var out wire.StatResponse
	set := 0
	for ; set < 1000; set++ {
		tr.Exists(greedy, fmt.Sprintf("/%d%s", set, long), true, &out)
		if log := greedy.take(); log[0] == "overflow" {
			break
		}
	}
	if set != 255 { // the limit is 256 MiB, and a watch needs a little more than its path
		t.Fatalf("%d watches of 1 MiB were set", set)
	}
	if n := tr.Counts().Watches; n != int64(set) {
		t.Errorf("%d watches are counted, %d were set", n, set)
	}
	tr.Exists(modest, "/a", true, &out)
	if log := modest.take(); log[0] == "overflow" {
		t.Error("another connection is refused")
	}
	if code := tr.RemoveWatches(greedy, "/0"+long, wire.WatcherAny); code != wire.OK {
		t.Fatal(code)
	}
	greedy.take()
	tr.Exists(greedy, "/again"+long, true, &out)
	if log := greedy.take(); log[0] == "overflow" {
		t.Error("the memory of a removed watch cannot be used again")
	}
	tr.Forget(greedy)
	if n := tr.Counts().Watches; n != 1 {
		t.Errorf("%d watches are left, want the other's", n)
	}
}
