//go:build unix

package guard

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Child is the parent's view of a command that runs under a guardian. Its
// methods are safe for concurrent use.
type Child struct {
	guardian   int
	orders     *os.File // the pipe to the guardian
	say        func(string)
	adopts     bool          // this process becomes the parent of the processes of a killed guardian
	terminal   bool          // the command's standard input is the terminal of this process
	foreground bool          // the command was given that terminal; used by listen, and by supervise after listen has ended
	ended      chan struct{} // closed when the guardian and all processes of the command have ended and status is set

	mu       sync.Mutex
	reaped   bool // the guardian has ended; its process id may belong to another process now
	due      deadline
	begun    bool     // Renew was called at least once
	lost     bool     // the command was asked to end
	gone     bool     // the guardian has reported that no process of the command is left
	command  int      // the command's process id; 0 before the guardian reports it and after the command has ended
	heard    int      // lines received from the guardian
	reported struct { // the last message about processes that SIGKILL does not end
		when time.Time
		lost bool
	}
	status int
}

var (
	// spawning is held while a guardian is started and added to guardians, so that
	// killLeftovers never takes a new guardian for a leftover process.
	spawning  sync.Mutex
	guardians = map[int]bool{} // the process ids of the living guardians
	// adoptsOrphans reports whether this process had no children before its first
	// guardian and has become the parent of orphaned descendants. Every child that is
	// not a guardian then comes from a guardian's command.
	adoptsOrphans = sync.OnceValue(func() bool {
		f, err := familyOf(os.Getpid(), nil)
		return err == nil && os.Getpid() != 1 && len(f.living) == 0 && len(f.zombies) == 0 && adoptOrphans() == nil
	})
)

// Start starts this program again as a guardian. The command itself starts
// with the first Renew. A process that calls Start should start no other child
// processes: if a guardian is killed, they are taken for processes of its command.
func Start(c Command) (*Child, error) {
	path, err := program()
	if err != nil {
		return nil, fmt.Errorf("guardian: cannot find this program's file: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the guardian: %w", err)
	}
	defer theirs.Close()
	reports, report, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pipe from the guardian: %w", err), ours.Close())
	}
	defer report.Close()
	child := &Child{orders: ours, say: c.Say, adopts: adoptsOrphans(), ended: make(chan struct{})}
	child.terminal = c.Stdin == nil && terminalGroup() > 0
	child.foreground = child.terminal && inForeground()
	if err := child.spawn(path, c, theirs, report); err != nil {
		return nil, errors.Join(fmt.Errorf("guardian: %w", err), ours.Close(), reports.Close())
	}
	read := make(chan struct{})
	go child.listen(reports, read)
	go child.supervise(read)
	if err := child.tell(c); err != nil {
		child.kill()
		<-child.ended
		return nil, fmt.Errorf("guardian: %w", err)
	}
	return child, nil
}

// spawn starts the guardian and registers it in guardians.
func (c *Child) spawn(path string, what Command, orders, report *os.File) error {
	if what.Stdin == nil {
		what.Stdin = os.Stdin
	}
	cmd := &exec.Cmd{
		Path: path, Args: []string{guardianName}, Env: what.Env,
		Stdin: what.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{orders, report}, // these become ordersFD and reportFD
		// In its own group, the guardian gets a signal key of the terminal once, from this process.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	spawning.Lock()
	defer spawning.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	c.guardian = cmd.Process.Pid
	guardians[c.guardian] = true
	return nil
}

const (
	answerTimeout = 2 * time.Second       // how long a guardian may be silent when its command must end
	watchInterval = 50 * time.Millisecond // how often the parent checks whether it must act itself
)

// tell sends the guardian its command line.
func (c *Child) tell(what Command) error {
	s := spec{Foreground: c.foreground}
	for _, a := range what.Argv {
		s.Argv = append(s.Argv, []byte(a))
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := c.orders.SetWriteDeadline(time.Now().Add(5 * answerTimeout)); err != nil {
		return err
	}
	if _, err = c.orders.Write(append(line, '\n')); err != nil {
		return err
	}
	return c.orders.SetWriteDeadline(time.Time{})
}

// program returns the path of this program's file. On Linux, /proc/self/exe stays
// valid after the file has been replaced, so both ends of the pipes run the same
// program. Without /proc, program searches for the file as the shell did.
func program() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	if path, err := os.Executable(); err == nil {
		return path, nil
	}
	return exec.LookPath(os.Args[0])
}

// Renew moves the deadline to now plus left(). The command is asked to end when only
// grace is left before the deadline. Renew reads the clocks before it calls left: if
// this process is stopped in between, the deadline is too early, never too late. A
// Renew after Stop has no effect.
func (c *Child) Renew(left func() time.Duration, grace time.Duration) error {
	due := after(0)
	due = due.later(left())
	c.mu.Lock()
	if !c.lost {
		c.due, c.begun = due, true
	}
	c.mu.Unlock()
	return c.send(order{runWord, due, grace})
}

// Stop asks the command to end. The guardian kills it after grace, or at the
// deadline if that is earlier. Do not call Renew afterwards.
func (c *Child) Stop(grace time.Duration) {
	due := after(grace)
	c.mu.Lock()
	c.due, c.begun, c.lost = c.due.earlier(due), true, true
	c.mu.Unlock()
	c.send(order{stopWord, due, 0})
	c.orders.Close() // the end of the pipe also asks the command to end
}

// send writes an order, unless the pipe is full: a guardian that does not read
// keeps an earlier deadline, which is safe. send makes one attempt without a write
// deadline: on a slow machine, a deadline could pass before the first attempt, and the
// order would be lost.
func (c *Child) send(o order) error {
	pipe, err := c.orders.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = pipe.Write(func(fd uintptr) bool {
		_, failed = syscall.Write(int(fd), []byte(o.String())) // atomic: shorter than PIPE_BUF
		return true
	})
	return cmp.Or(failed, err)
}

// Signal passes a signal on to the command.
func (c *Child) Signal(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		syscall.Kill(c.guardian, s.(syscall.Signal))
	}
}

func (c *Child) kill() { c.Signal(syscall.SIGKILL) }

// Ended returns a channel that is closed when all processes of the command have ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits for Ended and returns the command's exit status as a shell reports
// it, or one of the Exit constants. lost reports whether the command was made to
// end because of the deadline or Stop.
func (c *Child) Wait() (status int, lost bool) {
	<-c.ended
	if c.lost {
		return ExitLost, true
	}
	return c.status, false
}

// Survivors reports whether SIGKILL has failed to end processes of the command.
func (c *Child) Survivors() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.reported.when.IsZero()
}

// listen reads the guardian's reports until the guardian has ended.
func (c *Child) listen(reports *os.File, read chan<- struct{}) {
	defer close(read)
	defer reports.Close()
	for lines := bufio.NewScanner(reports); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		c.mu.Lock()
		c.heard++
		switch word {
		case startedWord:
			c.command, _ = strconv.Atoi(rest)
		case endedWord:
			c.command = 0
		case goneWord:
			c.gone = true
		case lostWord:
			c.lost = true
		}
		c.mu.Unlock()
		switch word {
		case leftWord:
			c.reportSurvivors(rest)
		case errorWord:
			c.say(rest)
		case stoppedWord:
			c.noteStop(rest)
		}
	}
}

// reportSurvivors calls say with a message about processes that do not end: once every
// reportInterval, and when the command is lost.
func (c *Child) reportSurvivors(text string) {
	c.mu.Lock()
	if c.lost {
		text += "; the claim is lost: another process may already run the command"
	} else {
		text += "; the claim is kept until it ends"
	}
	news := c.reported.when.IsZero() || c.reported.lost != c.lost || time.Since(c.reported.when) > reportInterval
	if news {
		c.reported.when, c.reported.lost = time.Now(), c.lost
	}
	c.mu.Unlock()
	if news {
		c.say(text)
	}
}

// supervise watches the guardian until it has ended, and then kills the processes
// that it has left behind.
func (c *Child) supervise(read <-chan struct{}) {
	defer close(c.ended)
	reaped := make(chan syscall.WaitStatus, 1)
	go c.reapGuardian(reaped)
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var l overdue
	var status syscall.WaitStatus
	for alive := true; alive; {
		select {
		case status = <-reaped:
			alive = false
		case <-tick.C:
			c.enforce(&l)
		}
	}
	<-read
	c.orders.Close()
	if !c.gone {
		c.killLeftovers()
	}
	spawning.Lock()
	delete(guardians, c.guardian)
	spawning.Unlock()
	c.reclaimTerminal()
	c.mu.Lock()
	c.status = exitStatus(status)
	c.mu.Unlock()
}

// reapGuardian waits for the guardian's end. It continues the guardian whenever a
// signal stops it.
func (c *Child) reapGuardian(reaped chan<- syscall.WaitStatus) {
	for {
		var ws syscall.WaitStatus
		switch _, err := syscall.Wait4(c.guardian, &ws, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
		case err == nil && ws.Stopped():
			c.Signal(syscall.SIGCONT)
		default:
			c.mu.Lock()
			c.reaped = true
			c.mu.Unlock()
			reaped <- ws
			return
		}
	}
}

// overdue holds what the parent knows of a guardian that has not ended its command in time.
type overdue struct {
	killer killer
	heard  int           // lines received at the last check
	silent time.Duration // time without a new line, while this process ran
	killed bool          // the guardian was killed; a debugger may delay its end
}

// enforce ends the command itself when the deadline has passed and the guardian has
// not done so: the guardian may be stopped or get no CPU time.
func (c *Child) enforce(l *overdue) {
	c.mu.Lock()
	begun, due, command, heard := c.begun, c.due, c.command, c.heard
	c.mu.Unlock()
	if !begun || due.left() > 0 {
		return
	}
	if l.silent += watchInterval; l.heard != heard {
		l.heard, l.silent = heard, 0
	}
	if !l.killer.due() {
		return
	}
	if command > 0 {
		syscall.Kill(-command, syscall.SIGKILL)
	}
	l.killer.kill(c.guardian, nil)
	if l.silent > answerTimeout && c.adopts && !l.killed {
		l.killed = true
		c.mu.Lock()
		c.lost = true
		c.mu.Unlock()
		c.say(fmt.Sprintf("the guardian (process %d) does not answer: killing it and the command", c.guardian))
		c.kill()
	}
}

// killLeftovers kills the processes that a killed guardian has left behind.
func (c *Child) killLeftovers() {
	if c.command > 0 {
		syscall.Kill(-c.command, syscall.SIGKILL)
	}
	if !c.adopts {
		return
	}
	var k killer
	for clear := 0; clear < 2; { // one search may miss a process whose parent changes meanwhile
		if !k.due() {
			<-time.After(k.next())
			continue
		}
		spawning.Lock()
		var others []int
		for pid := range guardians {
			others = append(others, pid)
		}
		k.kill(os.Getpid(), others)
		spawning.Unlock()
		c.mu.Lock()
		c.lost = c.lost || c.begun && c.due.left() <= 0
		c.mu.Unlock()
		reap(others)
		if clear++; len(k.found.living) > 0 {
			clear = 0
			if text := k.survivors(); text != "" {
				c.reportSurvivors(text)
			}
		}
	}
}
