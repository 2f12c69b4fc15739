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

// Program makes the command line that serves with a zoo.cfg and ends when its
// standard input does.
type Program func(config string) *exec.Cmd

// server is one server; proc is its process, nil while there is none, and how
// the end of the one before.
type server struct {
	id                  int
	dir, config, client string
	proc                *process
	how                 error
}

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	alive io.Closer     // its standard input
	ended chan struct{} // closed when it has ended
}

// ErrStopped: Stop was called, so that no server is started any more.
var ErrStopped = errors.New("the ensemble is stopped")

// Start starts the process of a server. Each line of its log goes to line, one
// call at a time for each server. An error if it runs already, or after Stop.
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

// watch passes the log on until the process has ended.
func (e *Ensemble) watch(s *server, p *process, log io.Reader, line func(int, string)) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(s.id, lines.Text())
	}
	_, _ = io.Copy(io.Discard, log) // a line too long ends the scanner, not the process
	how := p.cmd.Wait()
	e.mu.Lock()
	s.proc, s.how = nil, how
	e.mu.Unlock()
	close(p.ended)
}

// process is the one of a server, nil if it does not run.
func (e *Ensemble) process(id int) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[id-1].proc
}

// PID is the number of a server's process, 0 if it does not run.
func (e *Ensemble) PID(id int) int {
	if p := e.process(id); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// Ended is closed when the process that a server has now ends; nil if it has
// none.
func (e *Ensemble) Ended(id int) <-chan struct{} {
	if p := e.process(id); p != nil {
		return p.ended
	}
	return nil
}

// HowEnded is how the last process of a server ended: nil for status 0, an
// *exec.ExitError for another one or a signal.
func (e *Ensemble) HowEnded(id int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[id-1].how
}

// Kill ends a server as kill -9 does, and waits for its end.
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

// Stop ends all servers, cleanly, and kills what has not ended within patience.
// None is started any more.
func (e *Ensemble) Stop(patience time.Duration) {
	all := e.stop()
	for _, p := range all {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	}
	limit := time.NewTimer(patience)
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

// stop sees to it that the processes that run now are the last, and returns them.
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
