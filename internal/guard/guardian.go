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

// guardianName is the name of the guardian process for ps, killall and pkill.
// It has nothing of the program's name, and the guardian's command line holds
// nothing else. So a killall or pkill with the name of the program, or of the
// command, does not end the guardian. Linux shows 15 bytes.
const guardianName = "claim-guardian"

// IsGuardian reports whether this process was started as a guardian: its main
// function then calls nothing but [Main].
func IsGuardian() bool { return len(os.Args) == 1 && filepath.Base(os.Args[0]) == guardianName }

// Where the guardian finds its ends of the pipes.
const (
	ordersFD = 3
	reportFD = 4
)

// spec is the first line of the pipe to the guardian, as JSON.
type spec struct {
	Argv       [][]byte // need not be UTF-8
	Foreground bool     // the command reads the terminal
}

// Main is the guardian process. It returns the exit status.
func Main() int {
	// The command dies with the thread that started it: keep this one.
	runtime.LockOSThread()
	pipe, report := os.NewFile(ordersFD, "orders"), os.NewFile(reportFD, "report")
	if !isPipe(pipe) || !isPipe(report) {
		fmt.Fprintln(os.Stderr, "bellwether: guardian: started by hand; use bellwether elect")
		return 2
	}
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportFD)
	setName(guardianName)
	adoptOrphans()                      // where that is not possible, the command's group is all that is found
	signals := make(chan os.Signal, 16) // more than a person sends while one is handled
	signal.Notify(signals, Forwarded()...)

	status := guard(pipe, report, signals)
	fmt.Fprintln(report, goneWord)
	return status
}

// guard reads the command and the first deadline, and runs the command under it.
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

// readOrders hands on the pipe's lines until its end, then closes orders. A
// line that makes no sense is an end too: the safe side.
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
	order   // the last one
	orders  <-chan order
	signals <-chan os.Signal
	report  io.Writer

	pid   int
	asked bool // SIGTERM was sent because the claim ends; no renewal counts any more

	ended  bool // the command has, with status
	status syscall.WaitStatus
	hunt   hunt      // for what the command leaves behind
	told   time.Time // of it, where the parent has ended
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
	// A guardian that writes to a terminal or to a pipe without a reader, or that
	// shares a key with the command, must neither stop nor end. The command has
	// started before, so it does not inherit this.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE)
	g.pid = cmd.Process.Pid
	fmt.Fprintln(g.report, startedWord, g.pid)
	children := make(chan child)
	go waitForChildren(children)
	g.watch(children)
	switch {
	case g.asked:
		return ExitLost
	case !g.ended: // all have gone, and nobody knows how
		return 128 + int(syscall.SIGKILL)
	}
	return exitStatus(g.status)
}

// child is a child that ended or was stopped.
type child struct {
	pid    int
	status syscall.WaitStatus
}

// waitForChildren collects the children of this process, those that it adopted
// too, until there are none. It then closes children: where orphans are
// adopted, nothing of the command is left.
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

// watch ends when the command and all that it left behind have ended.
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
		syscall.Kill(-g.pid, syscall.SIGKILL) // what is left in its group
		fmt.Fprintln(g.report, endedWord)
	default:
		fmt.Fprintln(g.report, stoppedWord, int(c.status.StopSignal()))
	}
}

// signal sends a signal to the command's process group. One that asks it to end
// also continues it, as a stopped process does not notice otherwise.
func (g *guardian) signal(s syscall.Signal) {
	if g.ended {
		return
	}
	syscall.Kill(-g.pid, s)
	if slices.Contains(endings, s) {
		syscall.Kill(-g.pid, syscall.SIGCONT)
	}
}

// endings are the signals by which people end a command.
var endings = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// obey takes an order; ok is false at the end of the pipe.
func (g *guardian) obey(o order, ok bool) {
	switch {
	case !ok:
		g.orders = nil
		g.ask()
	case o.word == stopWord:
		g.due = g.due.earlier(o.due)
		g.ask()
	case o.word == contWord:
		g.signal(syscall.SIGCONT)
	case !g.asked:
		g.order = o
	}
}

// enforce acts on what time it is and returns when to look again, or that
// nothing is left to do.
func (g *guardian) enforce() (next time.Duration, over bool) {
	left := g.due.left()
	if left <= g.grace {
		g.ask()
	}
	switch {
	case left <= 0 || g.ended:
		g.signal(syscall.SIGKILL)
		return g.sweep()
	case left > g.grace:
		left -= g.grace
	}
	// Clocks may jump while a timer sleeps: look at them twice a second.
	return min(left, 500*time.Millisecond), false
}

// sweep kills what there is of the command, and says what does not end.
func (g *guardian) sweep() (next time.Duration, over bool) {
	if !g.hunt.due() {
		return g.hunt.next(), false
	}
	over = g.hunt.kill(os.Getpid(), nil)
	if text := g.hunt.survivors(); text != "" && !over {
		if _, err := fmt.Fprintln(g.report, leftWord, text); err != nil && time.Since(g.told) > tellPace { // the parent has ended
			g.told = time.Now()
			fmt.Fprintf(os.Stderr, "bellwether: %s; another may run the command already\n", text)
		}
	}
	return g.hunt.next(), over
}

// ask tells the command, once, that it should end, and with it what left its
// process group and has no parent any more to tell it.
func (g *guardian) ask() {
	if g.asked {
		return
	}
	g.asked = true
	fmt.Fprintln(g.report, lostWord)
	g.signal(syscall.SIGTERM)
	daemons, _ := familyOf(os.Getpid(), nil) // without /proc they are not known
	self := os.Getpid()
	daemons.living = slices.DeleteFunc(daemons.living, func(p process) bool { return p.parent != self || p.group == g.pid })
	daemons.signal(syscall.SIGTERM)
}

// Forwarded are the signals that parent and guardian pass on to the command:
// those that could end or tell it something, but for the ones that this
// process was started to ignore, as by nohup.
func Forwarded() []os.Signal {
	all := []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	return slices.DeleteFunc(all, signal.Ignored)
}

// exitStatus is a shell's: the status itself, or 128+n for a signal.
func exitStatus(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
