package target

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// process is one run of a server.
type process struct {
	cmd   *exec.Cmd
	begun time.Time
	asked bool          // the test has asked it to end or killed it
	done  chan struct{} // closed when the process has ended and ended is set
	ended time.Time
}

// watched waits in the background for the end of a started process.
func watched(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd, begun: time.Now(), done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState contains the result
		p.ended = time.Now()
		close(p.done)
	}()
	return p
}

// running reports whether the process is running; a nil process is not.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends a signal. It sets asked if the signal ends processes.
func (p *process) signal(sig syscall.Signal) error {
	ends := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL}
	if p.running() && slices.Contains(ends, sig) {
		p.asked = true
	}
	return p.cmd.Process.Signal(sig)
}

// leftByItself reports whether the process has ended although the test did not end it.
func (p *process) leftByItself() bool { return p != nil && !p.running() && !p.asked }

// byItself returns the processes of this server that ended although the test did not end them.
func (s *Server) byItself() []*process {
	all := slices.Clone(s.left)
	if s.process.leftByItself() {
		all = append(all, s.process)
	}
	return all
}

// Report returns the text that a failing test prints about its servers: which ended by
// themselves, the first one first, and the ends of all logs.
func Report(servers ...*Server) string {
	type end struct {
		*process
		name string
	}
	var ends []end
	for i, s := range servers {
		for _, p := range s.byItself() {
			ends = append(ends, end{p, fmt.Sprintf("server %d (%s)", i+1, s.Kind)})
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return a.ended.Compare(b.ended) })
	var text strings.Builder
	for _, e := range ends {
		fmt.Fprintf(&text, "%s, process %d, ended by itself at %s, %v after its start: %v\n", e.name, e.cmd.Process.Pid,
			e.ended.Format(time.TimeOnly), e.ended.Sub(e.begun).Round(time.Millisecond), e.cmd.ProcessState)
	}
	if len(ends) == 0 {
		text.WriteString("no server ended by itself\n")
	}
	for i, s := range servers {
		fmt.Fprintf(&text, "end of the log of server %d (%s):\n%s\n", i+1, s.Kind, s.Log())
	}
	return text.String()
}
