package guard

import "syscall"

// commandAttr returns attributes that give the command its own process group and kill
// it when the thread that started it ends. Main never gives up that thread.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
