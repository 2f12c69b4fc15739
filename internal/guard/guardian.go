//go:build unix

package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardianName is the guardian's process name and its whole command line. It shares
// nothing with the name of this program or of the command, so a killall or pkill with
// one of those names does not end the guardian. Linux shows at most 15 bytes.
const guardianName = "claim-guardian"

// IsGuardian reports whether this process was started as a guardian. If so, the main
// function must call nothing but [Main].
func IsGuardian() bool { return len(os.Args) == 1 && filepath.Base(os.Args[0]) == guardianName }

// The file descriptors of the guardian's ends of the pipes.
const (
	ordersFD = 3
	reportFD = 4
)

// spec is the first line that the parent sends, as JSON.
type spec struct {
	Argv       [][]byte // bytes, because arguments need not be UTF-8
	Foreground bool     // the command becomes the terminal's foreground process group
}

// Main runs the guardian process and returns its exit status.
func Main() int {
	// commandAttr ties the command's life to the thread that starts it: keep this thread.
	runtime.LockOSThread()
	pipe, report := os.NewFile(ordersFD, "orders"), os.NewFile(reportFD, "report")
	if !isPipe(pipe) || !isPipe(report) {
		fmt.Fprintln(os.Stderr, "bellwether: guardian: not started by a parent process; run bellwether elect instead")
		return 2
	}
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportFD)
	setName(guardianName)
	adoptOrphans()                      // on failure, only the command's process group can be found
	signals := make(chan os.Signal, 16) // more than a person sends while one is handled
	signal.Notify(signals, Forwarded()...)

	status := guard(pipe, report, signals)
	fmt.Fprintln(report, goneWord)
	return status
}

// guard reads the command and the first deadline, and runs the command until it ends.
func guard(pipe io.Reader, report io.Writer, signals <-chan os.Signal) (status int) {
	var what spec
	lines := bufio.NewReader(pipe)
	if first, err := lines.ReadBytes('\n'); err != nil || json.Unmarshal(first, &what) != nil || len(what.Argv) == 0 {
		return ExitLost // the parent has ended
	}
	orders := make(chan order, 1)
	go readOrders(lines, orders)
	first, ok := <-orders
	if !ok || first.word != runWord || first.due.left() <= 0 {
		fmt.Fprintln(report, lostWord)
		return ExitLost
	}
	g := guardian{order: first, orders: orders, signals: signals, report: report}
	return g.run(what)
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// readOrders sends the pipe's lines to orders until the pipe ends, then closes orders.
// An invalid line counts as the end, which is the safe choice.
func readOrders(pipe io.Reader, orders chan<- order) {
	defer close(orders)
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		o, err := parseOrder(lines.Text())
		if err != nil {
			return
		}
		orders <- o
	}
}

// guardian is the state of Main's loop.
type guardian struct {
	order   // the last order
	orders  <-chan order
	signals <-chan os.Signal
	report  io.Writer

	pid   int
	asked bool // SIGTERM was sent because the claim ends; later renewals have no effect

	ended    bool // the command has ended, and status is set
	status   syscall.WaitStatus
	killer   killer    // kills what the command leaves behind
	reported time.Time // the last message about survivors to standard error, once the parent has ended
}

func (g *guardian) run(what spec) int {
	argv := make([]string, len(what.Argv))
	for i, a := range what.Argv {
		argv[i] = string(a)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = commandAttr()
	cmd.SysProcAttr.Foreground = what.Foreground // Ctty 0: standard input is the terminal
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(g.report, "%s %s: %v\n", errorWord, strings.ReplaceAll(argv[0], "\n", " "), errors.Unwrap(err))
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return ExitNoCmd
		}
		return ExitNotExec
	}
	// The guardian must neither stop nor end when it writes to a terminal or to a pipe
	// without a reader, or when it gets a terminal key's signal together with the command.
	// The command has already started, so it does not inherit the ignored signals.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE)
	g.pid = cmd.Process.Pid
	fmt.Fprintln(g.report, startedWord, g.pid)
	children := make(chan child)
	go waitForChildren(children)
	g.watch(children)
	switch {
	case g.asked:
		return ExitLost
	case !g.ended: // all processes have ended, but the command's status was not seen
		return 128 + int(syscall.SIGKILL)
	}
	return exitStatus(g.status)
}

// child is a child process that has ended or was stopped.
type child struct {
	pid    int
	status syscall.WaitStatus
}

// waitForChildren reaps the children of this process, adopted ones included, until
// there are none, and then closes children. If orphans are adopted, no process of
// the command is left at that point.
func waitForChildren(children chan<- child) {
	defer close(children)
	for {
		var c child
		var err error
		if c.pid, err = syscall.Wait4(-1, &c.status, syscall.WUNTRACED, nil); err == nil {
			children <- c
		} else if err != syscall.EINTR {
			return
		}
	}
}

// watch runs the guardian's loop until the command and all processes it left behind have ended.
func (g *guardian) watch(children <-chan child) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case c, ok := <-children:
			if !ok {
				return
			}
			g.noteChild(c)
		case s := <-g.signals:
			g.signal(s.(syscall.Signal))
		case o, ok := <-g.orders:
			g.obey(o, ok)
		case <-timer.C:
		}
		next, over := g.enforce()
		if over {
			return
		}
		timer.Reset(next)
	}
}

func (g *guardian) noteChild(c child) {
	switch {
	case c.pid != g.pid:
	case !c.status.Stopped():
		g.ended, g.status = true, c.status
		syscall.Kill(-g.pid, syscall.SIGKILL) // kills the rest of its process group
		fmt.Fprintln(g.report, endedWord)
	default:
		fmt.Fprintln(g.report, stoppedWord, int(c.status.StopSignal()))
	}
}

// signal sends a signal to the command's process group. If the signal asks it to end,
// signal also continues the group, because a stopped process would not react.
func (g *guardian) signal(s syscall.Signal) {
	if g.ended {
		return
	}
	syscall.Kill(-g.pid, s)
	if slices.Contains(endSignals, s) {
		syscall.Kill(-g.pid, syscall.SIGCONT)
	}
}

// endSignals are the signals with which users end a command.
var endSignals = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// obey carries out an order; ok is false at the end of the pipe.
func (g *guardian) obey(o order, ok bool) {
	switch {
	case !ok:
		g.orders = nil
		g.askToEnd()
	case o.word == stopWord:
		g.due = g.due.earlier(o.due)
		g.askToEnd()
	case o.word == contWord:
		g.signal(syscall.SIGCONT)
	case !g.asked:
		g.order = o
	}
}

// enforce asks the command to end, or kills it, if it is time to. It returns when to
// check again, or that nothing is left to do.
func (g *guardian) enforce() (next time.Duration, over bool) {
	left := g.due.left()
	if left <= g.grace {
		g.askToEnd()
	}
	switch {
	case left <= 0 || g.ended:
		g.signal(syscall.SIGKILL)
		return g.sweep()
	case left > g.grace:
		left -= g.grace
	}
	// Clocks may jump while a timer sleeps: check twice a second.
	return min(left, 500*time.Millisecond), false
}

// sweep kills the remaining processes of the command and reports those that do not end.
func (g *guardian) sweep() (next time.Duration, over bool) {
	if !g.killer.due() {
		return g.killer.next(), false
	}
	over = g.killer.kill(os.Getpid(), nil)
	if text := g.killer.survivors(); text != "" && !over {
		if _, err := fmt.Fprintln(g.report, leftWord, text); err != nil && time.Since(g.reported) > reportInterval { // the parent has ended
			g.reported = time.Now()
			fmt.Fprintf(os.Stderr, "bellwether: %s; another process may already run the command\n", text)
		}
	}
	return g.killer.next(), over
}

// askToEnd sends SIGTERM once to the command's process group, and to its daemons:
// processes outside the group that have no other parent to tell them.
func (g *guardian) askToEnd() {
	if g.asked {
		return
	}
	g.asked = true
	fmt.Fprintln(g.report, lostWord)
	g.signal(syscall.SIGTERM)
	daemons, _ := familyOf(os.Getpid(), nil) // without /proc, familyOf finds none
	self := os.Getpid()
	daemons.living = slices.DeleteFunc(daemons.living, func(p process) bool { return p.parent != self || p.group == g.pid })
	daemons.signal(syscall.SIGTERM)
}

// Forwarded returns the signals that parent and guardian pass on to the command:
// those that end or notify a process, except the ones that this process was started
// to ignore, as by nohup.
func Forwarded() []os.Signal {
	all := []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	return slices.DeleteFunc(all, signal.Ignored)
}

// exitStatus returns the status as a shell reports it: the exit code, or 128+n for signal n.
func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
