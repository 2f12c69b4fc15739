//go:build unix && !linux

package guard

import "golang.org/x/sys/unix"

// steadyClock is a clock that never jumps. It may stand still while the machine is
// suspended; the wall clock covers that time.
const steadyClock = unix.CLOCK_MONOTONIC
