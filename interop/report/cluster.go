package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
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

// program returns the command that starts a server of ZooKeeper's protocol.
func (r *run) program(system string) local.Program {
	return func(config string) *exec.Cmd {
		cmd := exec.Command(r.binary, "serve", "--config", config, "--while-stdin", "--log-level", "warn")
		if system == zooKeeper {
			cmd = exec.Command("java", "-Xms"+r.heap, "-Xmx"+r.heap, "-cp", target.ClassPath("slf4j-nop.jar"),
				"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}
}

// cluster is a set of running servers of ZooKeeper's protocol.
type cluster struct {
	*local.Ensemble
	size  int
	began time.Time // when the first process was started
}

// withServers starts n servers with new directories, calls f, and ends the servers.
func (r *run) withServers(ctx context.Context, system string, n int, f func(*cluster) error) (err error) {
	dir, err := os.MkdirTemp(r.dir, "bellwether-report-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	servers, err := local.Make(local.Options{Dir: dir, Servers: n, Host: "127.0.0.1"})
	if err != nil {
		return err
	}
	defer servers.Stop(stopTimeout)
	c := &cluster{Ensemble: servers, size: n, began: time.Now()}
	for id := range n {
		if err := servers.Start(id+1, r.program(system), func(int, string) {}); err != nil {
			return err
		}
	}
	return f(c)
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
