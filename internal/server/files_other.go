//go:build !linux

package server

// openFiles is not known on this system.
func openFiles() int64 { return -1 }

// machineMemory is not known on this system.
func machineMemory() int64 { return 0 }

// maxFiles is not known on this system.
func maxFiles() int64 { return -1 }
