//go:build unix

package server

import "syscall"

// writeSocket writes what the socket takes; syscall.EAGAIN: it takes nothing now.
func writeSocket(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
