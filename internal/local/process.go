package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Program returns a command that serves with the given zoo.cfg and ends when its standard
// input ends.
type Program func(config string) *exec.Cmd

// server is one server of the ensemble.
type server struct {
	id                  int
	dir, config, client string
	admin               int      // the admin port; 0: none
	proc                *process // nil while the server does not run
	exit                error    // how the last process ended
}

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	alive io.Closer     // the pipe to its standard input
	ended chan struct{} // closed when the process has ended
}

// ErrStopped is returned by Start after Stop was called.
var ErrStopped = errors.New("the ensemble is stopped")

// Start starts the process of a server. It calls line for each line of the server's log,
// one call at a time for each server. It fails if the server runs already, or after Stop.
func (e *Ensemble) Start(id int, program Program, line func(id int, text string)) error {
	s := e.servers[id-1]
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped:
		return ErrStopped
	case s.proc != nil:
		return fmt.Errorf("server %d runs already", id)
	}
	cmd := program(s.config)
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("server %d cannot be started: %w", id, err)
	}
	p := &process{cmd: cmd, alive: alive, ended: make(chan struct{})}
	s.proc = p
	go e.watch(s, p, log, line)
	return nil
}

// watch forwards the log until the process has ended, and then records how it ended.
func (e *Ensemble) watch(s *server, p *process, log io.Reader, line func(int, string)) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(s.id, lines.Text())
	}
	_, _ = io.Copy(io.Discard, log) // a line that is too long stops the scanner, but must not block the process
	exit := p.cmd.Wait()
	e.mu.Lock()
	s.proc, s.exit = nil, exit
	e.mu.Unlock()
	close(p.ended)
}

// process returns a server's process, or nil if it does not run.
func (e *Ensemble) process(id int) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[id-1].proc
}

// PID returns the process id of a server, or 0 if it does not run.
func (e *Ensemble) PID(id int) int {
	if p := e.process(id); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// Ended returns a channel that is closed when the server's current process ends, or nil
// if the server does not run.
func (e *Ensemble) Ended(id int) <-chan struct{} {
	if p := e.process(id); p != nil {
		return p.ended
	}
	return nil
}

// HowEnded returns how the last process of a server ended: nil for status 0, or an
// *exec.ExitError for another status or a signal.
func (e *Ensemble) HowEnded(id int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[id-1].exit
}

// Kill kills a server as kill -9 does, and waits for its end.
func (e *Ensemble) Kill(id int) error {
	p := e.process(id)
	if p == nil {
		return fmt.Errorf("server %d does not run", id)
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// Stop asks all servers to end (SIGTERM) and kills those that have not ended within
// timeout. No server can be started afterwards.
func (e *Ensemble) Stop(timeout time.Duration) {
	all := e.stop()
	for _, p := range all {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that the process has already ended
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	late := false
	for _, p := range all {
		if !late {
			select {
			case <-p.ended:
				continue
			case <-limit.C:
				late = true
			}
		}
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// stop prevents further starts and returns the running processes.
func (e *Ensemble) stop() (all []*process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, s := range e.servers {
		if s.proc != nil {
			all = append(all, s.proc)
		}
	}
	return all
}
