package server

import (
	"os"
	"syscall"
)

// openFiles is how many descriptors the process has open.
func openFiles() int64 {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return -1
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return -1
	}
	return int64(len(names)) - 1 // d itself
}

// maxFiles is how many it may have open.
func maxFiles() int64 {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return -1
	}
	return int64(min(lim.Cur, 1<<62))
}
