//go:build unix

package guard

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Child is a command that runs under a guardian, seen by its parent. Its
// methods are for one goroutine, except Signal, which any may call.
type Child struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// Start starts a guardian with the command line guardian, whose last
// arguments name the command; env is its whole environment. The command
// itself starts with the first Renew.
func Start(guardian, env []string) (*Child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the guardian: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(guardian[0], guardian[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = env
	cmd.ExtraFiles = []*os.File{r}
	// Its own group: a key pressed at the terminal reaches it once, from us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("guardian: %w", err)
	}
	return &Child{cmd, w}, nil
}

// Renew moves the deadline to d from now.
func (c *Child) Renew(d time.Duration) error {
	_, err := c.pipe.WriteString(after(d).line())
	return err
}

// Stop asks the command to end; the deadline stands.
func (c *Child) Stop() {
	fmt.Fprintln(c.pipe, stopLine) // a guardian that is gone needs none
	c.pipe.Close()
}

// Signal passes a signal on to the command.
func (c *Child) Signal(s os.Signal) { c.cmd.Process.Signal(s) }

// Wait waits for the guardian, and so for the command, and returns the
// command's exit status as shells give it, or one of the Exit constants.
func (c *Child) Wait() int {
	c.cmd.Wait() // the status is in ProcessState, whatever it was
	reclaimTerminal()
	return exitStatus(c.cmd.ProcessState)
}
