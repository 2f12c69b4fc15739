package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bellwether/internal/bench"
	"bellwether/internal/fourletter"
	"bellwether/internal/local"
	"bellwether/interop/target"
	"bellwether/zk"
)

// Times for servers.
const (
	serveTimeout = 3 * time.Minute // until all servers serve
	stopTimeout  = 30 * time.Second
	pollPause    = 2 * time.Millisecond
	session      = 30 * time.Second // session timeout of the clients
)

// setup says which servers of ZooKeeper's protocol are started, and how.
type setup struct {
	servers   int // with the observers
	observers int
	settings  []string // more lines of each zoo.cfg
	java      []string // more flags of Apache's Java process
	env       []string // more variables in the environment of Bellwether
	line      func(id int, text string)
}

// program returns the command that starts a server of ZooKeeper's protocol.
func (r *run) program(system string) local.Program { return r.programOf(system, setup{}) }

func (r *run) programOf(system string, s setup) local.Program {
	return func(config string) *exec.Cmd {
		cmd := exec.Command(r.binary, "serve", "--config", config, "--while-stdin", "--log-level", "warn")
		cmd.Env = append(os.Environ(), s.env...)
		if system == zooKeeper {
			flags := append([]string{"-Xms" + r.heap, "-Xmx" + r.heap}, s.java...)
			cmd = exec.Command("java", append(flags, "-cp", target.ClassPath("slf4j-nop.jar"),
				"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)...)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}
}

// cluster is a set of running servers of ZooKeeper's protocol.
type cluster struct {
	*local.Ensemble
	run    *run
	system string
	size   int
	began  time.Time // when the first process was started
}

// withServers starts n servers with new directories, calls f, and ends the servers.
func (r *run) withServers(ctx context.Context, system string, n int, f func(*cluster) error) (err error) {
	return r.with(ctx, system, setup{servers: n}, f)
}

// with starts servers with new directories, calls f, and ends the servers.
func (r *run) with(ctx context.Context, system string, s setup, f func(*cluster) error) (err error) {
	dir, err := os.MkdirTemp(r.dir, "bellwether-report-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	servers, err := local.Make(local.Options{Dir: dir, Servers: s.servers, Observers: s.observers, Host: "127.0.0.1", Settings: s.settings})
	if err != nil {
		return err
	}
	defer servers.Stop(stopTimeout)
	c := &cluster{Ensemble: servers, run: r, system: system, size: s.servers, began: time.Now()}
	for id := range s.servers {
		if err := c.start(id+1, s); err != nil {
			return err
		}
	}
	return f(c)
}

// start starts the process of a server.
func (c *cluster) start(id int, s setup) error {
	line := s.line
	if line == nil {
		line = func(int, string) {}
	}
	return c.Start(id, c.run.programOf(c.system, s), line)
}

// restart kills a standalone server, adds the settings to its zoo.cfg, and starts it again.
func (c *cluster) restart(ctx context.Context, s setup) error {
	if err := c.Kill(1); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(c.Folder(1), "zoo.cfg"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, line := range s.settings {
		_, wrote := fmt.Fprintln(file, line)
		err = errors.Join(err, wrote)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := c.start(1, s); err != nil {
		return err
	}
	return c.settled(ctx)
}

// settled waits until all servers serve, one of them as the leader or standalone.
func (c *cluster) settled(ctx context.Context) error {
	return c.until(ctx, func() bool {
		leaders := 0
		for id := range c.size {
			switch c.role(ctx, id+1) {
			case "leader", "standalone":
				leaders++
			case "":
				return false
			}
		}
		return leaders == 1
	})
}

// until polls, because processes cannot notify.
func (c *cluster) until(ctx context.Context, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	for !condition() {
		for id := range c.size {
			if c.PID(id+1) == 0 {
				return fmt.Errorf("server %d has ended: %v", id+1, c.HowEnded(id+1))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the servers do not serve: %w", ctx.Err())
		case <-time.After(pollPause):
		}
	}
	return nil
}

func (c *cluster) role(ctx context.Context, id int) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Client(id))
	if err != nil {
		return ""
	}
	text, err := fourletter.Ask(ctx, conn, "srvr", time.Second)
	if err != nil {
		return ""
	}
	return fourletter.ParseSrvr(text).Mode
}

// follower returns a server that follows.
func (c *cluster) follower(ctx context.Context) (int, error) {
	for id := range c.size {
		if c.role(ctx, id+1) == "follower" {
			return id + 1, nil
		}
	}
	return 0, errors.New("no server follows")
}

func (c *cluster) pids() (all []int) {
	for id := range c.size {
		all = append(all, c.PID(id+1))
	}
	return all
}

// hurry ends the clean-up of every run at once: see results.
var hurry = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// setting returns how to measure servers, which are given as host:port,host:port.
func (r *run) setting(servers string, pids []int) bench.Setting {
	return bench.Setting{
		Connect: func(ctx context.Context) (*zk.Client, error) { return connect(ctx, servers) },
		Raw: &bench.Raw{Servers: strings.Split(servers, ","), Timeout: session, Dial: func(ctx context.Context, server string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server)
		}},
		Root: "/bench", Warmup: r.warmup, Duration: r.duration, Servers: pids,
		Hurry: hurry,
	}
}

func connect(ctx context.Context, servers string) (*zk.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	return zk.Connect(ctx, servers, &zk.Options{SessionTimeout: session})
}

// owned returns the settings of measurements that start their own servers.
func (r *run) owned(system string) bench.Owned {
	return bench.Owned{Program: r.program(system), Connect: connect, Dir: r.dir}
}
