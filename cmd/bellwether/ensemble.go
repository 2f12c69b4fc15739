package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"bellwether/internal/local"
)

// stopPatience is how long the servers of an ensemble may take to end.
const stopPatience = 10 * time.Second

// restartPause is how long a server that ended by itself stays down.
const restartPause = 3 * time.Second

// ensemble runs several servers on this machine, each a process, until a signal.
func (f serveFlags) ensemble(ctx context.Context, stdout, stderr io.Writer) error {
	host, port, err := f.base()
	if err != nil {
		return usage(err)
	}
	e, err := local.Make(local.Options{Dir: f.data, Servers: f.servers, Host: host, Port: port})
	if err != nil {
		return usage(err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	defer e.Stop(stopPatience)
	t := &terminal{w: stderr}
	var running sync.WaitGroup
	for id := 1; id <= e.Servers(); id++ {
		running.Go(func() { f.keep(ctx, e, id, t) })
	}
	fmt.Fprintf(stdout, "%d servers for clients at %s, data in %s; SIGTERM or Ctrl-C ends them\n", e.Servers(), e.Clients(), f.data)
	fmt.Fprintf(stdout, "try: bellwether status --server %s\n", e.Clients())
	<-ctx.Done()
	stop() // a second signal ends this process at once, and with it the servers
	e.Stop(stopPatience)
	running.Wait()
	return nil
}

// base is the address of the first server's client port.
func (f serveFlags) base() (string, int, error) {
	if f.listen == "" {
		return "127.0.0.1", 2181, nil
	}
	host, text, err := net.SplitHostPort(f.listen)
	port, perr := strconv.Atoi(text)
	if err != nil || perr != nil || port < 0 || port+f.servers > 65536 {
		return "", 0, fmt.Errorf("--listen %q: want host:port of the first server, as in 127.0.0.1:2181, with %d ports", f.listen, f.servers)
	}
	return host, port, nil
}

// keep has a server run until ctx ends; one that ends by itself, or is
// killed, is started again after a pause.
func (f serveFlags) keep(ctx context.Context, e *local.Ensemble, id int, t *terminal) {
	for ctx.Err() == nil {
		if err := e.Start(id, f.program(), t.line); err != nil {
			t.line(id, err.Error())
		} else if ended := e.Ended(id); ended != nil {
			t.line(id, fmt.Sprintf("process %d", e.PID(id)))
			<-ended
		}
		if ctx.Err() != nil {
			return
		}
		t.line(id, fmt.Sprintf("has ended, and is started again in %v", restartPause))
		select {
		case <-time.After(restartPause):
		case <-ctx.Done():
		}
	}
}

// program is this program as the server of a zoo.cfg.
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
