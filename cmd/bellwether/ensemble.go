package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"bellwether/internal/local"
	"bellwether/internal/shell"
)

const (
	// stopTimeout is the time that the servers of an ensemble have to end.
	stopTimeout = 10 * time.Second
	// restartPause is the time between the end of a server that was not stopped and its next start.
	restartPause = 3 * time.Second
	// firstStart is the time after its first start in which a failure of a server counts as permanent, for
	// example because its port is in use or its folder is damaged.
	firstStart = time.Minute
	// ensembleMax is the largest number of servers that --ensemble accepts.
	ensembleMax = 99
)

// ensemble runs several servers on this machine, each in its own process, until a signal.
func (f serveFlags) ensemble(ctx context.Context, stdout, stderr io.Writer) error {
	host, port, err := f.checkEnsemble()
	if err != nil {
		return shell.Usage(err)
	}
	folder, err := holdFolder(f.data)
	if err != nil {
		return err
	}
	defer folder.Close()
	e, access, err := f.prepare(host, port)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if f.whileStdin {
		go endWithStdin(stop)
	}
	f.greet(stdout, e, access)
	t := newTerminal(stderr)
	defer t.out.close()
	failed := make(chan error, e.Servers()) // has room for all: each server fails at most once
	var running sync.WaitGroup
	for id := 1; id <= e.Servers(); id++ {
		k := &supervised{id: id, ensemble: e, program: f.program(), terminal: t}
		running.Go(func() {
			if err := k.run(ctx); err != nil {
				failed <- err
			}
		})
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop() // from now on a second signal ends this process at once, and the servers end with it
	e.Stop(stopTimeout)
	running.Wait()
	return err
}

// prepare makes the folders of the servers and, with --tls, their certificates. access holds the flags that a
// client needs.
func (f serveFlags) prepare(host string, port int) (e *local.Ensemble, access string, err error) {
	o := local.Options{
		Dir: f.data, Servers: f.servers, Host: host, Port: port, Admin: true,
		Settings: []string{"autopurge.purgeInterval=1"},
	}
	if f.tls {
		if access, err = useTLS(&o, f.data, host); err != nil {
			return nil, "", err
		}
	}
	if e, err = local.Make(o); err != nil {
		return nil, "", shell.Usage(err)
	}
	return e, access, nil
}

// greet prints where the servers are, and commands to try.
func (f serveFlags) greet(w io.Writer, e *local.Ensemble, access string) {
	fmt.Fprintln(w, greeting(e.Servers(), e.Clients(), f.data))
	for id := 1; id <= e.Servers(); id++ {
		fmt.Fprintf(w, "admin port of server %d: http://%s/\n", id, e.Admin(id))
	}
	fmt.Fprintf(w, "try: bellwether status --server %s%s\n", e.Clients(), access)
	fmt.Fprintf(w, "     bellwether election explain --server %s%s\n", e.Clients(), access)
	if f.tls {
		fmt.Fprintf(w, "     bellwether tls check %s%s\n", e.Client(1), access)
	}
}

// greeting returns the line with the addresses of the servers and how to end them.
func greeting(servers int, clients, data string) string {
	end := "them"
	if servers == 1 {
		end = "it"
	}
	return fmt.Sprintf("%s for clients at %s, data in %s; Ctrl-C or SIGTERM ends %s", shell.Count(servers, "server"), clients, data, end)
}

// checkEnsemble checks the flags and returns the host and the port of the first server.
func (f serveFlags) checkEnsemble() (host string, port int, err error) {
	if f.servers < 1 || f.servers > ensembleMax {
		return "", 0, fmt.Errorf("--ensemble %d: want from 1 to %d servers", f.servers, ensembleMax)
	}
	if _, _, err := f.logHandler(); err != nil {
		return "", 0, err
	}
	if f.listen == "" {
		return "127.0.0.1", 2181, nil
	}
	host, text, err := net.SplitHostPort(f.listen)
	port, perr := strconv.Atoi(text)
	if err != nil || perr != nil || host == "" || port < 0 || port+f.servers > 65536 {
		return "", 0, fmt.Errorf("--listen %q: want host:port of the first server, as in 127.0.0.1:2181, with %d ports", f.listen, f.servers)
	}
	return host, port, nil
}

// holdFolder locks a folder for this process, so that no other process can change the ports of its servers.
// Close unlocks the folder.
func holdFolder(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.Close()
		return nil, fmt.Errorf("%s is in use by another serve --ensemble: end that one, or name another folder", dir)
	}
	return d, nil
}

// supervised is a server that is started again whenever it ends.
type supervised struct {
	id       int
	ensemble *local.Ensemble
	program  local.Program
	terminal terminal
	last     string // the last line of the server's log
}

// run keeps the server running until ctx ends. It restarts a server that ended by itself or was killed, after a
// pause. If the server cannot start at all, run returns an error.
func (k *supervised) run(ctx context.Context) error {
	first := time.Now()
	for ctx.Err() == nil {
		how := k.once()
		if ctx.Err() != nil {
			break
		}
		var exit *exec.ExitError
		if errors.As(how, &exit) && exit.Exited() && time.Since(first) < firstStart {
			return &shell.StatusError{Status: exit.ExitCode(), Err: fmt.Errorf("server %d cannot serve: %s", k.id, k.reason(how))}
		}
		k.terminal.line(k.id, fmt.Sprintf("has ended (%s); it will be started again in %v", ending(how), restartPause))
		_ = sleep(ctx, restartPause) // an error means that ctx has ended, which ends the loop
	}
	return nil
}

// once runs the server until its process ends, and returns how it ended.
func (k *supervised) once() error {
	if err := k.ensemble.Start(k.id, k.program, k.line); err != nil {
		return err
	}
	ended := k.ensemble.Ended(k.id)
	if pid := k.ensemble.PID(k.id); pid != 0 {
		k.terminal.line(k.id, fmt.Sprintf("is process %d", pid))
	}
	if ended != nil {
		<-ended
	}
	return k.ensemble.HowEnded(k.id)
}

func (k *supervised) line(id int, text string) {
	k.last = text
	k.terminal.line(id, text)
}

// reason returns why the server ended: the last line of its log, without time and level.
func (k *supervised) reason(how error) string {
	if _, text, found := strings.Cut(k.last, " ERROR "); found {
		return text
	}
	return cmp.Or(strings.TrimPrefix(k.last, "bellwether: "), how.Error())
}

// ending describes in words how a process ended.
func ending(how error) string {
	if how == nil {
		return "by itself"
	}
	return how.Error()
}

// program returns a function that makes commands: each runs this program as a server with the given zoo.cfg.
func (f serveFlags) program() local.Program {
	return func(config string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd := exec.Command(self, "serve", "--config", config, "--while-stdin",
			"--log-format", f.logFormat, "--log-level", f.logLevel)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches only this process, which then ends the servers
		return cmd
	}
}

// terminal lets several servers write whole lines to one terminal.
type terminal struct{ out *logOutput }

func newTerminal(w io.Writer) terminal {
	var t terminal
	t.out = newLogOutput(w, func(lines int) {
		fmt.Fprintf(t.out, "%s of the log were lost because nobody read it\n", shell.Count(lines, "line"))
	})
	return t
}

func (t terminal) line(id int, text string) { fmt.Fprintf(t.out, "%d | %s\n", id, text) }

// endWithStdin calls stop when the standard input ends.
func endWithStdin(stop func()) {
	if _, err := io.Copy(io.Discard, os.Stdin); err == nil || errors.Is(err, os.ErrClosed) {
		stop()
	}
}
