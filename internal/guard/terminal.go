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

// terminalGroup is the foreground process group of the terminal at standard
// input; 0 if there is none, or if it is not this process's controlling terminal.
func terminalGroup() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// inForeground reports whether this process may read the terminal: then its
// command shall.
func inForeground() bool { return terminalGroup() == unix.Getpgrp() }

// isJob reports whether this process's group was made by a shell with job
// control. The group of the session's leader has no such shell above it.
func isJob() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}

// handTerminal makes a process group the terminal's foreground group.
func handTerminal(group int) {
	signal.Ignore(syscall.SIGTTOU) // which a process in the background gets for this
	unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group)
	signal.Reset(syscall.SIGTTOU)
}

// reclaimTerminal makes this process's group the foreground one again where the
// command's was, but takes the terminal from nobody else: a second command of
// this process's group may have it.
func (c *Child) reclaimTerminal() {
	if !c.foreground {
		return
	}
	holder := terminalGroup()
	if holder == c.started() || holder > 0 && syscall.Kill(-holder, 0) != nil {
		handTerminal(unix.Getpgrp())
	}
}

// started is the command's process id; 0 when it has ended.
func (c *Child) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.command
}

// noteStop deals with a command that a signal has stopped. At a terminal, the
// shell shall notice and be able to continue it. Elsewhere it stays stopped,
// and nobody else stops with it.
func (c *Child) noteStop(number string) {
	n, _ := strconv.Atoi(number)
	s := syscall.Signal(n)
	if c.terminal && c.suspend(s) {
		c.send(order{word: contWord})
		return
	}
	c.say(fmt.Sprintf("the command (process %d) is stopped by %s; SIGCONT continues it", c.started(), unix.SignalName(s)))
}

// suspend does for the command's shell what the command's stop would do if it
// were a job itself, and reports whether the command shall go on.
func (c *Child) suspend(s syscall.Signal) (goOn bool) {
	if s != syscall.SIGTTIN && s != syscall.SIGTTOU || !inForeground() { // else it got there after the command's start
		c.reclaimTerminal()
		goOn = isJob() && stopJob()
	}
	command := c.started()
	if c.foreground = inForeground() && command > 0; c.foreground {
		handTerminal(command)
	}
	return goOn || c.foreground
}

// stopJob stops this process with its process group, so that the shell takes
// the terminal back, and reports that the shell has continued it. Meanwhile
// nobody renews the deadline. The system stops no group that no shell could
// continue.
func stopJob() (continued bool) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGCONT)
	defer signal.Stop(heard)
	syscall.Kill(0, syscall.SIGTSTP)
	for range answerTime / watchPace { // of time in which this process runs
		select {
		case <-heard:
			return true
		case <-time.After(watchPace):
		}
	}
	return false
}
