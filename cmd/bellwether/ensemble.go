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
	// stopTimeout is how long the servers of an ensemble may take to end.
	stopTimeout = 10 * time.Second
	// restartPause is how long a server that ended by itself stays down.
	restartPause = 3 * time.Second
	// firstStart is how long after its first start a server that fails is one
	// that cannot serve at all: a port that is taken, a folder that is damaged.
	firstStart = time.Minute
	// ensembleMax is how many servers one machine may be asked to run.
	ensembleMax = 99
)

// ensemble runs several servers on this machine, each a process, until a signal.
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
	e, err := local.Make(local.Options{
		Dir: f.data, Servers: f.servers, Host: host, Port: port,
		Settings: []string{"autopurge.purgeInterval=1"},
	})
	if err != nil {
		return shell.Usage(err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if f.whileStdin {
		go endWithStdin(stop)
	}
	fmt.Fprintln(stdout, greeting(e.Servers(), e.Clients(), f.data))
	fmt.Fprintf(stdout, "try: bellwether status --server %s\n", e.Clients())
	fmt.Fprintf(stdout, "     bellwether election explain --server %s\n", e.Clients())
	t := &terminal{w: stderr}
	failed := make(chan error, e.Servers()) // each fails once at most
	var running sync.WaitGroup
	for id := 1; id <= e.Servers(); id++ {
		k := &kept{id: id, ensemble: e, program: f.program(), terminal: t}
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
	stop() // a second signal ends this process at once, and with it the servers
	e.Stop(stopTimeout)
	running.Wait()
	return err
}

// greeting says what serves now, and how it ends.
func greeting(servers int, clients, data string) string {
	end := "them"
	if servers == 1 {
		end = "it"
	}
	return fmt.Sprintf("%s for clients at %s, data in %s; Ctrl-C or SIGTERM ends %s", shell.Count(servers, "server"), clients, data, end)
}

// checkEnsemble checks the flags, and returns the address of the first server.
func (f serveFlags) checkEnsemble() (host string, port int, err error) {
	if f.servers < 1 || f.servers > ensembleMax {
		return "", 0, fmt.Errorf("--ensemble %d: want from 1 to %d servers", f.servers, ensembleMax)
	}
	if _, _, err := f.logger(io.Discard); err != nil {
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

// holdFolder locks a folder for this process, so that no other process gives the servers
// other ports. Close unlocks it.
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

// kept is a server that is started again whenever it ends.
type kept struct {
	id       int
	ensemble *local.Ensemble
	program  local.Program
	terminal *terminal
	last     string // line of its log
}

// run keeps the server running until ctx ends. A server that ends by itself or is killed
// is started again after a pause; a server that cannot start at all is an error.
func (k *kept) run(ctx context.Context) error {
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
		k.terminal.line(k.id, fmt.Sprintf("has ended (%s), and is started again in %v", ending(how), restartPause))
		_ = sleep(ctx, restartPause) // the end of ctx ends the loop
	}
	return nil
}

// once runs the server until its process ends, and says how it ended.
func (k *kept) once() error {
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

func (k *kept) line(id int, text string) {
	k.last = text
	k.terminal.line(id, text)
}

// reason returns why the server ended: the last line of its log, without the time and
// the level.
func (k *kept) reason(how error) string {
	if _, text, found := strings.Cut(k.last, " ERROR "); found {
		return text
	}
	return cmp.Or(strings.TrimPrefix(k.last, "bellwether: "), how.Error())
}

// ending says in words how a process ended.
func ending(how error) string {
	if how == nil {
		return "by itself"
	}
	return how.Error()
}

// program returns this program as a command that serves a zoo.cfg.
func (f serveFlags) program() local.Program {
	return func(config string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd := exec.Command(self, "serve", "--config", config, "--while-stdin",
			"--log-format", f.logFormat, "--log-level", f.logLevel)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process, which ends them
		return cmd
	}
}

// terminal lets several servers write lines to one terminal.
type terminal struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *terminal) line(id int, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.w, "%d | %s\n", id, text)
}

// endWithStdin calls stop when the standard input ends.
func endWithStdin(stop func()) {
	if _, err := io.Copy(io.Discard, os.Stdin); err == nil || errors.Is(err, os.ErrClosed) {
		stop()
	}
}
