//go:build unix

package guard

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreground lets a command started from a terminal read it: its process
// group becomes the terminal's foreground group.
func foreground(attr *syscall.SysProcAttr) {
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		attr.Foreground, attr.Ctty = true, 0
	}
}

// reclaimTerminal makes this process's group the foreground one again.
func reclaimTerminal() {
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err != nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp())
	signal.Reset(syscall.SIGTTOU)
}
