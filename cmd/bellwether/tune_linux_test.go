package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// TestBallastTakesNoMemory: the ballast is not touched, even if it begins in memory that was in use before.
func TestBallastTakesNoMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	t.Setenv("GOGC", "")
	for range 64 { // memory at the end of the heap that is free again
		runtime.KeepAlive(make([]byte, 1<<20))
	}
	runtime.GC()
	ballast = strings.Builder{}
	before := residentPages(t)
	tuneMemory()
	if grown := (residentPages(t) - before) * os.Getpagesize(); grown > ballastBytes/2 {
		t.Errorf("it takes %d bytes", grown)
	}
}

// residentPages returns the number of pages of the process that are in memory.
func residentPages(t *testing.T) (pages int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	var size int
	_, err = fmt.Sscan(string(text), &size, &pages)
	must(t, err)
	return pages
}
