package main

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestGarbageCollectorSettings shows that the program sets the garbage collector, but keeps the values that the
// operator has set.
func TestGarbageCollectorSettings(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "77")
	tuneMemory()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("with GOGC set: %d", got)
	}
	os.Unsetenv("GOGC")
	tuneMemory()
	if got := debug.SetGCPercent(77); got != gcPercent {
		t.Errorf("without GOGC: %d, want %d", got, gcPercent)
	}
}
