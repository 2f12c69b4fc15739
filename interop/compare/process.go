package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat. Linux uses 100 per second on every
// architecture.
const clockTick = 10 * time.Millisecond

// processor returns the CPU time that a process has used.
func processor(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may contain blanks; utime and stime are the 12th and 13th
	// words after it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) (int64, error) { return memory(pid, "VmRSS:") }

// peakResident returns the largest resident memory since the process started or resetPeak
// was called.
func peakResident(pid int) (int64, error) { return memory(pid, "VmHWM:") }

// memory returns a value of /proc/PID/status in bytes.
func memory(pid int, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc of process %d has no line %s", pid, name)
}
