package guard

import "golang.org/x/sys/unix"

// steadyClock is a clock that never jumps and also counts the time for which the
// machine is suspended.
const steadyClock = unix.CLOCK_BOOTTIME
