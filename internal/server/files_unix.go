//go:build unix

package server

import "syscall"

// maxFiles returns how many descriptors the process may have open; -1 if that is unknown.
func maxFiles() int64 {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return -1
	}
	return int64(min(uint64(lim.Cur), 1<<62))
}
