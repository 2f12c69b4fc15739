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

// The lines of the pipe to the guardian. "run STEADY WALL GRACE" renews the
// deadline; GRACE, in nanoseconds, is how long before it the command is asked
// to end. "stop STEADY WALL 0" asks the command to end at once and may bring
// the deadline forward. "cont 0 0 0" continues a command that was stopped at
// the terminal. The end of the pipe asks the command to end too.
const (
	runWord  = "run"
	stopWord = "stop"
	contWord = "cont"
)

// order is one line of the pipe.
type order struct {
	word  string
	due   deadline
	grace time.Duration
}

func (o order) String() string {
	return fmt.Sprintf("%s %d %d %d\n", o.word, o.due.steady, o.due.wall, int64(o.grace))
}

var errLine = errors.New("not a line a parent sends")

// parseOrder reads a line.
func parseOrder(s string) (o order, err error) {
	n, err := fmt.Sscanf(s, "%s %d %d %d", &o.word, &o.due.steady, &o.due.wall, &o.grace)
	known := o.word == runWord || o.word == stopWord || o.word == contWord
	if n != 4 || err != nil || !known {
		return o, fmt.Errorf("%q: %w", s, errLine)
	}
	return o, nil
}

// The first words of the lines of the pipe from the guardian.
const (
	startedWord = "started" // and the command's process id
	lostWord    = "lost"    // the command was asked to end because the claim ends
	endedWord   = "ended"   // the command has, but perhaps not all that it left behind
	stoppedWord = "stopped" // and the number of the signal that stopped the command
	leftWord    = "left"    // and what SIGKILL did not end, for people
	goneWord    = "gone"    // all of the command has ended, or it was not started
	errorWord   = "error"   // and why the command could not be started, for people
)
