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

// Child is a command that runs under a guardian, seen by its parent. Its
// methods may be called by any goroutine.
type Child struct {
	guardian   int
	orders     *os.File // to the guardian
	say        func(string)
	adopts     bool          // this process inherits what a killed guardian leaves behind
	terminal   bool          // the command's standard input is the terminal of this process
	foreground bool          // the command was given that terminal; for listen and then attend
	ended      chan struct{} // the guardian and all of the command have; status is set

	mu      sync.Mutex
	reaped  bool // the guardian has ended, and its process id may be another's
	due     deadline
	begun   bool     // with the first Renew
	lost    bool     // the command was asked to end
	gone    bool     // the guardian has left nothing behind
	command int      // its process id, once the guardian has told
	heard   int      // lines of the guardian
	told    struct { // the last word of processes that do not end
		when time.Time
		lost bool
	}
	status int
}

// spawning is held while a guardian is started, so that it is known to be one.
var (
	spawning  sync.Mutex
	guardians = map[int]bool{} // that live
	// alone tells that this process had no children when it started its first
	// guardian, and gets none but by that: then all others that it has come from
	// the commands of its guardians.
	alone = sync.OnceValue(func() bool {
		f, err := familyOf(os.Getpid(), nil)
		return err == nil && os.Getpid() != 1 && len(f.living) == 0 && !f.zombies && adoptOrphans() == nil
	})
)

// Start starts this program again as a guardian. The command itself starts
// with the first Renew. A process that calls Start should start no other
// processes: what a killed guardian leaves behind could not be told from them.
func Start(c Command) (*Child, error) {
	path, err := program()
	if err != nil {
		return nil, fmt.Errorf("guardian: this program's file is not known: %w", err)
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
	child := &Child{orders: ours, say: c.Say, adopts: alone(), ended: make(chan struct{})}
	child.terminal = c.Stdin == nil && terminalGroup() > 0
	child.foreground = child.terminal && inForeground()
	if err := child.spawn(path, c, theirs, report); err != nil {
		return nil, errors.Join(fmt.Errorf("guardian: %w", err), ours.Close(), reports.Close())
	}
	read := make(chan struct{})
	go child.listen(reports, read)
	go child.attend(read)
	if err := child.tell(c); err != nil {
		child.kill()
		<-child.ended
		return nil, fmt.Errorf("guardian: %w", err)
	}
	return child, nil
}

// spawn starts the guardian.
func (c *Child) spawn(path string, what Command, orders, report *os.File) error {
	if what.Stdin == nil {
		what.Stdin = os.Stdin
	}
	cmd := &exec.Cmd{
		Path: path, Args: []string{guardianName}, Env: what.Env,
		Stdin: what.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{orders, report}, // ordersFD, reportFD
		// Its own group: a key pressed at the terminal reaches it once, from us.
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
	answerTime = 2 * time.Second       // for which a guardian may be silent when its command must end
	watchPace  = 50 * time.Millisecond // at which the parent looks whether it must act itself
)

// tell sends the guardian its command.
func (c *Child) tell(what Command) error {
	s := spec{Foreground: c.foreground}
	for _, a := range what.Argv {
		s.Argv = append(s.Argv, []byte(a))
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := c.orders.SetWriteDeadline(time.Now().Add(5 * answerTime)); err != nil {
		return err
	}
	if _, err = c.orders.Write(append(line, '\n')); err != nil {
		return err
	}
	return c.orders.SetWriteDeadline(time.Time{})
}

// program is the file of this program. Linux has a name for it that holds
// even when the file has been replaced since, so that both ends of the pipes
// are the same program. Without /proc it is looked for as the shell did.
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

// Renew moves the deadline to as long from now as left says, and the command is
// asked to end as long before it as grace says for it. The clocks are read
// before left is called: a process that is stopped in between makes the
// deadline earlier, never later. No Renew counts after a Stop.
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

// Stop asks the command to end and lets it be killed after grace, or at the
// deadline if that is sooner. No Renew may follow.
func (c *Child) Stop(grace time.Duration) {
	due := after(grace)
	c.mu.Lock()
	c.due, c.begun, c.lost = c.due.earlier(due), true, true
	c.mu.Unlock()
	c.send(order{stopWord, due, 0})
	c.orders.Close() // a guardian that is gone needs none
}

// send writes an order, unless the pipe is full: a guardian that does not read
// knows a deadline that comes too early, which is safe. The write is tried once
// and never waits, so that a slow machine loses no order: a write deadline may
// pass before the first attempt.
func (c *Child) send(o order) error {
	pipe, err := c.orders.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = pipe.Write(func(fd uintptr) bool {
		_, failed = syscall.Write(int(fd), []byte(o.String())) // whole or not at all: shorter than PIPE_BUF
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

// Ended is closed when the command has ended, with all that it left behind.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits for Ended, and returns the command's exit status as shells give
// it, or one of the Exit constants. lost tells whether the command was made to
// end because of the deadline or Stop.
func (c *Child) Wait() (status int, lost bool) {
	<-c.ended
	if c.lost {
		return ExitLost, true
	}
	return c.status, false
}

// Survivors reports whether processes of the command live on that SIGKILL does
// not end.
func (c *Child) Survivors() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.told.when.IsZero()
}

// listen reads what the guardian tells until it has ended.
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
			c.sayLeft(rest)
		case errorWord:
			c.say(rest)
		case stoppedWord:
			c.noteStop(rest)
		}
	}
}

// sayLeft tells a person now and then of processes that do not end.
func (c *Child) sayLeft(text string) {
	c.mu.Lock()
	if c.lost {
		text += "; what it ran under is lost: another may run the command already"
	} else {
		text += "; what it runs under is kept until it has"
	}
	news := c.told.when.IsZero() || c.told.lost != c.lost || time.Since(c.told.when) > tellPace
	if news {
		c.told.when, c.told.lost = time.Now(), c.lost
	}
	c.mu.Unlock()
	if news {
		c.say(text)
	}
}

// attend watches over the guardian until it has ended, and then ends what it
// has left behind.
func (c *Child) attend(read <-chan struct{}) {
	defer close(c.ended)
	reaped := make(chan syscall.WaitStatus, 1)
	go c.reapGuardian(reaped)
	tick := time.NewTicker(watchPace)
	defer tick.Stop()
	var l lateness
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
		c.avenge()
	}
	spawning.Lock()
	delete(guardians, c.guardian)
	spawning.Unlock()
	c.reclaimTerminal()
	c.mu.Lock()
	c.status = exitStatus(status)
	c.mu.Unlock()
}

// reapGuardian waits for the guardian, and continues it when it is stopped.
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

// lateness is what is known of a guardian that has not ended its command in time.
type lateness struct {
	hunt   hunt
	heard  int           // lines when it was looked last
	silent time.Duration // without a new one, while this process ran
	killed bool          // a debugger may keep it from ending
}

// enforce does what the guardian should have done when the deadline has passed:
// it may be stopped or starved.
func (c *Child) enforce(l *lateness) {
	c.mu.Lock()
	begun, due, command, heard := c.begun, c.due, c.command, c.heard
	c.mu.Unlock()
	if !begun || due.left() > 0 {
		return
	}
	if l.silent += watchPace; l.heard != heard {
		l.heard, l.silent = heard, 0
	}
	if !l.hunt.due() {
		return
	}
	if command > 0 {
		syscall.Kill(-command, syscall.SIGKILL)
	}
	l.hunt.kill(c.guardian, nil)
	if l.silent > answerTime && c.adopts && !l.killed {
		l.killed = true
		c.mu.Lock()
		c.lost = true
		c.mu.Unlock()
		c.say(fmt.Sprintf("the guardian (process %d) does not answer: it is killed with the command", c.guardian))
		c.kill()
	}
}

// avenge ends what a guardian has left behind that was killed.
func (c *Child) avenge() {
	if c.command > 0 {
		syscall.Kill(-c.command, syscall.SIGKILL)
	}
	if !c.adopts {
		return
	}
	var h hunt
	for clear := 0; clear < 2; { // one look may miss a process that just changes its parent
		if !h.due() {
			<-time.After(h.next())
			continue
		}
		spawning.Lock()
		var others []int
		for pid := range guardians {
			others = append(others, pid)
		}
		h.kill(os.Getpid(), others)
		spawning.Unlock()
		c.mu.Lock()
		c.lost = c.lost || c.begun && c.due.left() <= 0
		c.mu.Unlock()
		reap(others)
		if clear++; len(h.found.living) > 0 {
			clear = 0
			if text := h.survivors(); text != "" {
				c.sayLeft(text)
			}
		}
	}
}
