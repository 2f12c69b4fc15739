//go:build unix

package guard

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// deadline is when the command must be gone, on two clocks, in nanoseconds.
type deadline struct {
	steady int64
	wall   int64
}

// after returns the deadline that lies d from now; d may be negative.
func after(d time.Duration) deadline {
	return deadline{steadyNow() + int64(d), time.Now().UnixNano() + int64(d)}
}

// left is the time until the earlier of the two clocks reaches the deadline.
func (d deadline) left() time.Duration {
	return time.Duration(min(d.steady-steadyNow(), d.wall-time.Now().UnixNano()))
}

// steadyNow reads the clock that never jumps. Failure is a broken system.
func steadyNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(steadyClock, &ts); err != nil {
		panic(fmt.Sprintf("clock_gettime(%d): %v", steadyClock, err))
	}
	return ts.Nano()
}

// The lines of the pipe: "run STEADY WALL" renews the deadline, "stop" asks
// the command to end at once. The end of the pipe is a stop.
func (d deadline) line() string { return fmt.Sprintf("run %d %d\n", d.steady, d.wall) }

const stopLine = "stop"

var errLine = errors.New("not a line a parent sends")

// parseLine reads a line without its end; stop is true for a stop.
func parseLine(s string) (d deadline, stop bool, err error) {
	if s == stopLine {
		return d, true, nil
	}
	if _, err := fmt.Sscanf(s, "run %d %d", &d.steady, &d.wall); err != nil {
		return d, false, fmt.Errorf("%q: %w", s, errLine)
	}
	return d, false, nil
}
