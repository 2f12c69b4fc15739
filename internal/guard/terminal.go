//go:build unix

package guard

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminalGroup returns the foreground process group of the terminal at standard
// input, or 0 if there is none or it is not this process's controlling terminal.
func terminalGroup() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// inForeground reports whether this process, and therefore its command, may read the
// terminal.
func inForeground() bool { return terminalGroup() == unix.Getpgrp() }

// isJob reports whether a shell with job control made this process's group. No such shell
// made the group of the session leader.
func isJob() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}

// giveTerminal makes a process group the terminal's foreground group.
func giveTerminal(group int) {
	signal.Ignore(syscall.SIGTTOU) // the call below sends SIGTTOU to a process in the background, which would stop it
	unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group)
	signal.Reset(syscall.SIGTTOU)
}

// reclaimTerminal makes this process's group the foreground group again if the command's
// group is the foreground group now. It does not take the terminal from any other group:
// a second command of this process's group may have it.
func (c *Child) reclaimTerminal() {
	if !c.foreground {
		return
	}
	holder := terminalGroup()
	if holder == c.started() || holder > 0 && syscall.Kill(-holder, 0) != nil {
		giveTerminal(unix.Getpgrp())
	}
}

// started returns the command's process id, or 0 when it has ended.
func (c *Child) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.command
}

// noteStop handles a command that a signal has stopped. At a terminal, the shell must
// notice the stop and be able to continue the command. Elsewhere the command stays
// stopped and no other process stops with it.
func (c *Child) noteStop(number string) {
	n, _ := strconv.Atoi(number)
	s := syscall.Signal(n)
	if c.terminal && c.suspend(s) {
		c.send(order{word: contWord})
		return
	}
	c.say(fmt.Sprintf("the command (process %d) is stopped by %s; SIGCONT continues it", c.started(), unix.SignalName(s)))
}

// suspend stops this process after a signal has stopped the command, so that the shell
// sees the stop as if the command were its own job. It returns after the shell has
// continued this process, and reports whether the command must be continued.
func (c *Child) suspend(s syscall.Signal) (goOn bool) {
	// If the command stopped because it lacks the terminal, and this process is in the
	// foreground, it came there after the command's start: the command only needs the terminal.
	if s != syscall.SIGTTIN && s != syscall.SIGTTOU || !inForeground() {
		c.reclaimTerminal()
		goOn = isJob() && stopJob()
	}
	command := c.started()
	if c.foreground = inForeground() && command > 0; c.foreground {
		giveTerminal(command)
	}
	return goOn || c.foreground
}

// stopJob stops this process with its process group, so that the shell takes the
// terminal back, and reports whether the shell has continued it. While this process is
// stopped, nothing renews the deadline. The system does not stop a group that no shell
// could continue.
func stopJob() (continued bool) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGCONT)
	defer signal.Stop(heard)
	syscall.Kill(0, syscall.SIGTSTP)
	for range answerTimeout / watchInterval { // counts only time in which this process runs
		select {
		case <-heard:
			return true
		case <-time.After(watchInterval):
		}
	}
	return false
}
