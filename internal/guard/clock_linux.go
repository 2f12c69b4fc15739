package guard

import "golang.org/x/sys/unix"

// steadyClock counts the time a suspended machine sleeps too.
const steadyClock = unix.CLOCK_BOOTTIME
