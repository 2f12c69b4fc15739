//go:build !linux

package server

// openFiles returns -1: the number of open descriptors is unknown on this system.
func openFiles() int64 { return -1 }

// machineMemory returns 0: the memory of the machine is unknown on this system.
func machineMemory() int64 { return 0 }

// spaceOf returns spaceUnknown: the space is unknown on this system.
func spaceOf(string) diskSpace { return spaceUnknown }
