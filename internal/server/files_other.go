//go:build !linux

package server

import "syscall"

// openFiles returns -1: the number of open descriptors is unknown on this system.
func openFiles() int64 { return -1 }

// machineMemory returns 0: the memory of the machine is unknown on this system.
func machineMemory() int64 { return 0 }

// maxFiles returns how many descriptors the process may have open; -1 if that is unknown.
func maxFiles() int64 {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return -1
	}
	return int64(min(uint64(lim.Cur), 1<<62))
}

// spaceOf returns spaceUnknown: the space is unknown on this system.
func spaceOf(string) diskSpace { return spaceUnknown }
