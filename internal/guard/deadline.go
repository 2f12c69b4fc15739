//go:build unix

package guard

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// deadline is the time by which the command must have ended, on two clocks, in nanoseconds.
type deadline struct {
	steady int64
	wall   int64
}

// after returns the deadline that lies d from now; d may be negative.
func after(d time.Duration) deadline {
	return deadline{steadyNow(), time.Now().UnixNano()}.later(d)
}

// later returns the deadline moved by the given time, which may be negative.
func (d deadline) later(by time.Duration) deadline {
	return deadline{d.steady + int64(by), d.wall + int64(by)}
}

// earlier returns, for each clock, the earlier of the two readings.
func (d deadline) earlier(o deadline) deadline {
	return deadline{min(d.steady, o.steady), min(d.wall, o.wall)}
}

// left returns the time until the first of the two clocks reaches the deadline.
func (d deadline) left() time.Duration {
	return time.Duration(min(d.steady-steadyNow(), d.wall-time.Now().UnixNano()))
}

// steadyNow reads steadyClock, which never jumps. It panics if the system cannot read it.
func steadyNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(steadyClock, &ts); err != nil {
		panic(fmt.Sprintf("clock_gettime(%d): %v", steadyClock, err))
	}
	return ts.Nano()
}

// The first words of the lines that the parent writes to the guardian's pipe.
// "run STEADY WALL GRACE" renews the deadline; GRACE, in nanoseconds, is how long
// before the deadline the command is asked to end. "stop STEADY WALL 0" asks the
// command to end at once and may make the deadline earlier. "cont 0 0 0" continues a
// command that was stopped at the terminal. The end of the pipe also asks the command
// to end.
const (
	runWord  = "run"
	stopWord = "stop"
	contWord = "cont"
)

// order is one line from the parent to the guardian.
type order struct {
	word  string
	due   deadline
	grace time.Duration
}

func (o order) String() string {
	return fmt.Sprintf("%s %d %d %d\n", o.word, o.due.steady, o.due.wall, int64(o.grace))
}

var errLine = errors.New("the guardian got a line that the parent process does not send")

// parseOrder parses one line from the parent.
func parseOrder(s string) (o order, err error) {
	n, err := fmt.Sscanf(s, "%s %d %d %d", &o.word, &o.due.steady, &o.due.wall, &o.grace)
	known := o.word == runWord || o.word == stopWord || o.word == contWord
	if n != 4 || err != nil || !known {
		return o, fmt.Errorf("%q: %w", s, errLine)
	}
	return o, nil
}

// The first words of the lines that the guardian writes to the parent, and what follows them.
const (
	startedWord = "started" // the command's process id
	lostWord    = "lost"    // nothing follows: the command was asked to end because the claim ends
	endedWord   = "ended"   // nothing follows: the command has ended, but other processes that it started may live
	stoppedWord = "stopped" // the number of the signal that stopped the command
	leftWord    = "left"    // a message for the user about processes that SIGKILL did not end
	goneWord    = "gone"    // nothing follows: all processes of the command have ended, or it was not started
	errorWord   = "error"   // a message for the user: why the command could not be started
)
