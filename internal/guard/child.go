//go:build unix

package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Child is a command that runs under a guardian, seen by its parent. Its
// methods are for one goroutine, except Signal, which any may call.
type Child struct {
	cmd    *exec.Cmd
	orders *os.File // to the guardian
	report *os.File // from it: the command's process id, then lostWord if so
}

// Start starts this program again as a guardian, with arguments the last of
// which name the command; env is its whole environment, stdin its standard
// input, nil for that of this process. The command itself starts with the
// first Renew.
func Start(args, env []string, stdin *os.File) (*Child, error) {
	if stdin == nil {
		stdin = os.Stdin
	}
	c := &Child{}
	path, err := program()
	if err != nil {
		return nil, fmt.Errorf("guardian: this program's file is not known: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the guardian: %w", err)
	}
	defer theirs.Close()
	c.orders = ours
	ours, reports, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pipe from the guardian: %w", err), c.orders.Close())
	}
	defer reports.Close()
	c.report = ours

	c.cmd = &exec.Cmd{
		Path: path, Args: append([]string{os.Args[0]}, args...), Env: env,
		Stdin: stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{theirs, reports}, // ordersFD, reportFD
		// Its own group: a key pressed at the terminal reaches it once, from us.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("guardian: %w", err), c.orders.Close(), c.report.Close())
	}
	return c, nil
}

// program is the file of this program. Linux has a name for it that holds
// even when the file has been replaced since, so that both ends of the pipes
// are the same program.
func program() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// Renew moves the deadline to as long from now as left says. The clocks are
// read before left is called: a process that is stopped in between makes the
// deadline earlier, never later.
func (c *Child) Renew(left func() time.Duration) error {
	d := after(0)
	_, err := io.WriteString(c.orders, d.later(left()).line(runWord))
	return err
}

// Stop asks the command to end and lets it be killed after grace, or at the
// deadline if that is sooner. No Renew may follow.
func (c *Child) Stop(grace time.Duration) {
	io.WriteString(c.orders, after(grace).line(stopWord)) // a guardian that is gone needs none
	c.orders.Close()
}

// Signal passes a signal on to the command.
func (c *Child) Signal(s os.Signal) { c.cmd.Process.Signal(s) }

// Wait waits for the guardian, and so for the command, and returns the
// command's exit status as shells give it, or one of the Exit constants. lost
// tells whether the command was made to end because of the deadline or Stop.
func (c *Child) Wait() (status int, lost bool) {
	c.cmd.Wait() // the status is in ProcessState, whatever it was
	c.orders.Close()
	text, _ := io.ReadAll(c.report) // what came before an error counts
	c.report.Close()
	lines := strings.Fields(string(text))
	if c.cmd.ProcessState.ExitCode() < 0 {
		avenge(lines)
	}
	reclaimTerminal()
	return exitStatus(c.cmd.ProcessState), slices.Contains(lines, lostWord)
}

// avenge kills the command's group after somebody has killed the guardian,
// which has reported it.
func avenge(report []string) {
	if len(report) == 0 {
		return
	}
	if pid, err := strconv.Atoi(report[0]); err == nil && pid > 1 {
		syscall.Kill(-pid, syscall.SIGKILL)
	}
}
