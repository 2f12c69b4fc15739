package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"bellwether/internal/fourletter"
	"bellwether/internal/local"
	"bellwether/zk"
)

// Owned holds what measurements need that start their own servers.
type Owned struct {
	// Program returns the command that serves with a zoo.cfg, in its own process group. It
	// should end when its standard input ends; otherwise it stays when this process is killed.
	Program func(config string) *exec.Cmd
	// Connect opens a session with servers on this machine.
	Connect func(ctx context.Context, servers string) (*zk.Client, error)
	Dir     string // where the servers' directories are made, and deleted at the end; empty: the system's for temporary files
}

// Times that bound waits for servers of this machine.
const (
	serveTimeout = 2 * time.Minute
	stopTimeout  = 10 * time.Second
	pollPause    = time.Millisecond
)

// ensemble is a set of servers that a measurement has started.
type ensemble struct {
	owned   Owned
	servers *local.Ensemble

	mu  sync.Mutex
	log []string // the last lines of the servers' logs
}

// logLines is how many lines of logs an error quotes.
const logLines = 5

// run starts n servers, calls f, and then ends the servers and deletes their directories.
func (o Owned) run(ctx context.Context, n int, f func(*ensemble) ([]*Report, error)) (r []*Report, err error) {
	dir, err := os.MkdirTemp(o.Dir, "bellwether-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil {
			err = errors.Join(err, fmt.Errorf("the directory %s is left: %w", dir, gone))
		}
	}()
	servers, err := local.Make(local.Options{Dir: dir, Servers: n, Host: "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	defer servers.Stop(stopTimeout)
	e := &ensemble{owned: o, servers: servers}
	for id := 1; id <= n; id++ {
		if err := e.start(id); err != nil {
			return nil, err
		}
	}
	if err := e.awaitWhole(ctx); err != nil {
		return nil, err
	}
	return f(e)
}

func (e *ensemble) start(id int) error { return e.servers.Start(id, e.owned.Program, e.keep) }

// keep keeps the last lines of the servers' logs.
func (e *ensemble) keep(id int, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.log) == logLines {
		e.log = e.log[1:]
	}
	e.log = append(e.log, fmt.Sprintf("%d | %s", id, text))
}

// fail adds the end of the servers' logs to an error.
func (e *ensemble) fail(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.log {
		err = fmt.Errorf("%w\n%s", err, line)
	}
	return err
}

// until polls a condition, because processes cannot notify. It fails when a server has ended
// by itself.
func (e *ensemble) until(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, serveTimeout, fmt.Errorf("%s: not within %v", what, serveTimeout))
	defer cancel()
	for !condition() {
		for id := 1; id <= e.servers.Servers(); id++ {
			if e.servers.PID(id) == 0 {
				return e.fail(fmt.Errorf("%s: server %d has ended: %v", what, id, e.servers.HowEnded(id)))
			}
		}
		if wait(ctx, pollPause); ctx.Err() != nil {
			return e.fail(context.Cause(ctx))
		}
	}
	return nil
}

// role returns in which role a server serves; empty: it does not serve.
func (e *ensemble) role(ctx context.Context, id int) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.servers.Client(id))
	if err != nil {
		return ""
	}
	text, err := fourletter.Ask(ctx, conn, "srvr", time.Second)
	if err != nil {
		return ""
	}
	return fourletter.ParseSrvr(text).Mode
}

// awaitWhole waits until all servers serve and one of them leads or is standalone.
func (e *ensemble) awaitWhole(ctx context.Context) error {
	return e.until(ctx, "waiting until all servers serve", func() bool {
		leaders := 0
		for id := 1; id <= e.servers.Servers(); id++ {
			switch e.role(ctx, id) {
			case "leader", "standalone":
				leaders++
			case "":
				return false
			}
		}
		return leaders == 1
	})
}

// leader returns the number of the server that leads.
func (e *ensemble) leader(ctx context.Context) (int, error) {
	for id := 1; id <= e.servers.Servers(); id++ {
		if role := e.role(ctx, id); role == "leader" || role == "standalone" {
			return id, nil
		}
	}
	return 0, e.fail(errors.New("no server leads"))
}

// client opens a session with all servers.
func (e *ensemble) client(ctx context.Context) (*zk.Client, error) {
	return e.owned.Connect(ctx, e.servers.Clients())
}
