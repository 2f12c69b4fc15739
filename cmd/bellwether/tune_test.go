package main

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestPaceOfTheCollector: the collector runs at our pace, unless the operator has set one.
func TestPaceOfTheCollector(t *testing.T) {
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
