//go:build unix && !linux

package guard

import "golang.org/x/sys/unix"

// steadyClock may stand still while the machine is suspended; the wall clock
// covers that.
const steadyClock = unix.CLOCK_MONOTONIC
