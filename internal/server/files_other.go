//go:build !linux

package server

// openFiles is not known on this system.
func openFiles() int64 { return -1 }

// maxFiles is not known on this system.
func maxFiles() int64 { return -1 }
