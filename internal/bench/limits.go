package bench

import (
	"fmt"
	"syscall"
)

// Limits that catch typing errors.
const (
	connectionsMax = 100_000
	keysMax        = 10_000_000
	sizeMax        = 1_000_000 // a request of 1 MiB is too large for a server with its default settings
	rateMax        = 10_000_000
	roundsMax      = 10_000
)

// between returns an error if a number is out of range.
func between(name string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s: %d, want %d to %d", name, n, least, most)
	}
	return nil
}

// filesReserve is how many files a process needs besides its connections.
const filesReserve = 32

// checkFiles returns an error if this process may not open so many connections.
func checkFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // the system does not say
	}
	if need := uint64(connections) + filesReserve; need > limit.Cur {
		return fmt.Errorf("%d connections need %d open files, and this process may open %d: raise the limit (ulimit -n), or use fewer connections", connections, need, limit.Cur)
	}
	return nil
}
