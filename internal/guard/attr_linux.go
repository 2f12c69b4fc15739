package guard

import "syscall"

// commandAttr puts the command into its own process group and ties its life
// to the thread that starts it, which Main never gives up.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
