package main

import (
	"os"
	"runtime/debug"
	"testing"

	"bellwether/internal/server"
)

// TestGarbageCollectorSettings shows that the program sets the garbage collector, but keeps the values that the
// operator has set.
func TestGarbageCollectorSettings(t *testing.T) {
	before, limit := debug.SetGCPercent(77), debug.SetMemoryLimit(1<<40)
	defer debug.SetGCPercent(before)
	defer debug.SetMemoryLimit(limit)
	t.Setenv("GOGC", "77")
	t.Setenv("GOMEMLIMIT", "1TiB")
	tuneMemory()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("with GOGC set: %d", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("with GOMEMLIMIT set: %d", got)
	}
	os.Unsetenv("GOGC")
	os.Unsetenv("GOMEMLIMIT")
	tuneMemory()
	if got := debug.SetGCPercent(77); got != gcPercent {
		t.Errorf("without GOGC: %d, want %d", got, gcPercent)
	}
	if got, most := debug.SetMemoryLimit(-1), server.MemoryMax(); most <= 0 || got <= most/2 || got >= most {
		t.Errorf("without GOMEMLIMIT: %d of %d bytes", got, most)
	}
}
