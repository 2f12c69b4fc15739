package store

import (
	"syscall"
	"testing"
)

// TestFailedSyncIsMendedAtTheNextStart: after a failed fsync, the next process can read
// data that is not on the disk, and its own fsync succeeds without writing that data.
// That process sends the data to other servers, so the data must survive a power failure.
func TestFailedSyncIsMendedAtTheNextStart(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		d := newDriver(NewMem(5), dataOptions)
		must(t, d.start())
		must(t, d.commit(1, 2))
		if fresh {
			must(t, d.roll())
		}
		d.m.Fail(OpSync, 1, syscall.EIO)
		if d.commit(3, 4) == nil {
			t.Fatal("the sync has not failed")
		}
		d.m.Crash(KeepAll)
		w, res, err := load(d.m, dataOptions)
		must(t, err)
		if w.last != 4 {
			t.Fatalf("the system has forgotten what it was told: %v, %q", w.last, res.Notes)
		}
		for v := range variants {
			c := d.m.Clone(uint64(v))
			c.Crash(2 + v)
			if w, res, err = load(c, dataOptions); err != nil || w.last != 4 {
				t.Errorf("in a new log %v: the history ends at %v after a power failure, %v, %q", fresh, w.last, err, res.Notes)
			}
		}
	}
}
