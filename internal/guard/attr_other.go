//go:build unix && !linux

package guard

import "syscall"

// commandAttr returns attributes that give the command its own process group.
func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
