package wiretest

import (
	"runtime"
	"testing"
)

// CheckAllocated fails if f takes more than limit bytes of heap, garbage
// included. Others allocate too while f runs, so it is run again, a few
// times, before it is believed to be f: f must do the same each time.
func CheckAllocated(t testing.TB, limit int, f func()) {
	t.Helper()
	const tries = 5
	var got uint64
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if got = after.TotalAlloc - before.TotalAlloc; got <= uint64(limit) {
			return
		}
	}
	t.Errorf("%d bytes allocated, at most %d are allowed", got, limit)
}

// Decoding may take allocFactor bytes for each byte of input, garbage
// included, and allocBase besides: a few records and an error. The worst
// case is a vector of empty strings from a stream: each takes 4 bytes there
// and 16 in memory, and a vector that doubles takes up to four times that.
const (
	allocFactor = 16
	allocBase   = 2 << 10
)

// AllocBudget is the most that decoding an input of n bytes may allocate.
func AllocBudget(n int) int { return allocFactor*n + allocBase }

// ReadStep is the room, in bytes, that a reader of a stream makes before anything
// has arrived.
const ReadStep = 8 << 10
