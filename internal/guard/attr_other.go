//go:build unix && !linux

package guard

import "syscall"

// commandAttr puts the command into its own process group.
func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
