package wiretest

import (
	"runtime"
	"testing"
)

// CheckAllocated fails if f allocates more than limit bytes of heap, garbage
// included. Other goroutines may allocate while f runs. So CheckAllocated runs f
// several times, and fails only if each run allocates too much. f must do the
// same each time.
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

// Decoding may allocate allocFactor bytes for each byte of input, garbage
// included, and allocBase bytes for a few records and an error. The worst
// case is a vector of empty strings from a stream: each takes 4 bytes there
// and 16 in memory, and a vector that doubles takes up to four times that.
const (
	allocFactor = 16
	allocBase   = 2 << 10
)

// AllocBudget returns how many bytes decoding an input of n bytes may allocate.
func AllocBudget(n int) int { return allocFactor*n + allocBase }

// ReadStep is the size, in bytes, of the buffer that a reader of a stream allocates
// before any data has arrived.
const ReadStep = 8 << 10
