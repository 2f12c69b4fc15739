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
	return deadline{steadyNow(), time.Now().UnixNano()}.later(d)
}

// later is the deadline moved on; by may be negative.
func (d deadline) later(by time.Duration) deadline {
	return deadline{d.steady + int64(by), d.wall + int64(by)}
}

// earlier is the one of two deadlines that comes first on each clock.
func (d deadline) earlier(o deadline) deadline {
	return deadline{min(d.steady, o.steady), min(d.wall, o.wall)}
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

// The lines of the pipe: "run STEADY WALL" renews the deadline, "stop STEADY
// WALL" asks the command to end at once and may bring the deadline forward.
// The end of the pipe asks it to end too.
const (
	runWord  = "run"
	stopWord = "stop"
)

// lostWord is what a guardian reports when it has asked the command to end.
const lostWord = "lost"

func (d deadline) line(word string) string { return fmt.Sprintf("%s %d %d\n", word, d.steady, d.wall) }

var errLine = errors.New("not a line a parent sends")

// parseLine reads a line without its end; stop tells which kind it is.
func parseLine(s string) (d deadline, stop bool, err error) {
	var word string
	if _, err := fmt.Sscanf(s, "%s %d %d", &word, &d.steady, &d.wall); err != nil || word != runWord && word != stopWord {
		return d, false, fmt.Errorf("%q: %w", s, errLine)
	}
	return d, word == stopWord, nil
}
