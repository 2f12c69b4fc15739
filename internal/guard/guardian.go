//go:build unix

package guard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses of a guardian besides the command's own.
const (
	ExitLost    = 120 // the deadline passed, or the parent said stop
	ExitNotExec = 126 // the command exists but cannot be run
	ExitNoCmd   = 127 // there is no such command
)

// Where the guardian finds its ends of the pipes.
const (
	ordersFD = 3
	reportFD = 4
)

// Main is the guardian process: it waits for the first deadline, runs argv
// under it, and returns the exit status. grace is how long before the
// deadline the command is asked to end (SIGTERM) before it is killed.
func Main(argv []string, grace time.Duration) int {
	// The command dies with the thread that started it: keep this one.
	runtime.LockOSThread()
	pipe, report := os.NewFile(ordersFD, "orders"), os.NewFile(reportFD, "report")
	if len(argv) == 0 || !isPipe(pipe) || !isPipe(report) {
		fmt.Fprintln(os.Stderr, "bellwether: guardian: started by hand; use bellwether elect")
		return 2
	}
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportFD)
	signals := make(chan os.Signal, 16) // more than a person sends while one is handled
	signal.Notify(signals, Forwarded()...)
	orders := make(chan order, 1)
	go readOrders(pipe, orders)

	first, ok := <-orders
	if !ok || first.stop || first.due.left() <= 0 {
		fmt.Fprintln(report, 0, lostWord)
		return ExitLost
	}
	g := guardian{grace: grace, due: first.due, orders: orders, signals: signals, report: report}
	return g.run(argv)
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// order is one line of the pipe.
type order struct {
	due  deadline
	stop bool
}

// readOrders hands on the pipe's lines until its end, then closes orders. A
// line that makes no sense is an end too: the safe side.
func readOrders(pipe io.Reader, orders chan<- order) {
	defer close(orders)
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		due, stop, err := parseLine(lines.Text())
		if err != nil {
			return
		}
		orders <- order{due, stop}
	}
}

// guardian is the state of Main's loop.
type guardian struct {
	grace   time.Duration
	due     deadline
	orders  <-chan order
	signals <-chan os.Signal
	report  io.Writer

	pid    int
	asked  bool // SIGTERM was sent because the claim ends; no renewal counts any more
	killed bool
}

func (g *guardian) run(argv []string) int {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = commandAttr()
	foreground(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "bellwether: %s: %v\n", argv[0], errors.Unwrap(err))
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return ExitNoCmd
		}
		return ExitNotExec
	}
	g.pid = cmd.Process.Pid
	fmt.Fprintln(g.report, g.pid)
	done := make(chan struct{})
	go func() {
		cmd.Wait() // the status is read from ProcessState below
		close(done)
	}()
	g.watch(done)
	syscall.Kill(-g.pid, syscall.SIGKILL) // what the command left behind in its group
	if g.asked || g.killed {
		fmt.Fprintln(g.report, lostWord)
		return ExitLost
	}
	return exitStatus(cmd.ProcessState)
}

// watch ends when the command has.
func (g *guardian) watch(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case s := <-g.signals:
			syscall.Kill(-g.pid, s.(syscall.Signal))
		case o, ok := <-g.orders:
			g.obey(o, ok)
		case <-timer.C:
		}
		timer.Reset(g.enforce())
	}
}

// obey takes an order; ok is false at the end of the pipe.
func (g *guardian) obey(o order, ok bool) {
	switch {
	case !ok:
		g.orders = nil
		g.ask()
	case o.stop:
		g.due = g.due.earlier(o.due)
		g.ask()
	case !g.asked:
		g.due = o.due
	}
}

// enforce acts on what time it is and returns when to look again.
func (g *guardian) enforce() time.Duration {
	left := g.due.left()
	switch {
	case left <= 0:
		syscall.Kill(-g.pid, syscall.SIGKILL)
		g.killed = true
		return 100 * time.Millisecond // again, for what was forked meanwhile
	case left <= g.grace:
		g.ask()
		return left
	}
	// Clocks may jump while a timer sleeps: look at them twice a second.
	return min(left-g.grace, 500*time.Millisecond)
}

// ask tells the command, once, that it should end.
func (g *guardian) ask() {
	if !g.asked {
		g.asked = true
		syscall.Kill(-g.pid, syscall.SIGTERM)
		syscall.Kill(-g.pid, syscall.SIGCONT)
	}
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
func exitStatus(p *os.ProcessState) int {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.ExitCode()
}
