package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"bellwether/internal/bench"
	"bellwether/internal/portblock"
)

// etcdCluster is a set of running servers of etcd.
type etcdCluster struct {
	servers   []*etcdServer
	endpoints []string
	began     time.Time // when the first process was started
}

type etcdServer struct {
	args []string
	cmd  *exec.Cmd
}

// withEtcd starts n servers of etcd, calls f, and ends them.
func (r *run) withEtcd(ctx context.Context, n int, f func(*etcdCluster) error) (err error) {
	dir, err := os.MkdirTemp(r.dir, "bellwether-report-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ports, err := portblock.Free("127.0.0.1", 2*n)
	if err != nil {
		return err
	}
	url := func(port int) string { return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("s%d=%s", i, url(ports[n+i])))
	}
	c := &etcdCluster{began: time.Now()}
	defer c.kill()
	for i := range n {
		c.endpoints = append(c.endpoints, url(ports[i]))
		s := &etcdServer{args: []string{"--name", fmt.Sprintf("s%d", i), "--data-dir", filepath.Join(dir, strconv.Itoa(i)),
			"--listen-client-urls", url(ports[i]), "--advertise-client-urls", url(ports[i]),
			"--listen-peer-urls", url(ports[n+i]), "--initial-advertise-peer-urls", url(ports[n+i]),
			"--initial-cluster", strings.Join(members, ","), "--log-level", "error", "--quota-backend-bytes", strconv.Itoa(8 << 30)}}
		c.servers = append(c.servers, s)
		if err := s.start(r.etcdProgram); err != nil {
			return err
		}
	}
	return f(c)
}

func (s *etcdServer) start(program string) error {
	s.cmd = exec.Command(program, s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stderr = &bytes.Buffer{}
	return s.cmd.Start()
}

func (c *etcdCluster) kill() {
	for _, s := range c.servers {
		if s.cmd.Process != nil {
			_ = s.cmd.Process.Kill() // an error means that it has ended
			_ = s.cmd.Wait()
		}
	}
}

func (c *etcdCluster) setting(r *run) bench.Setting {
	s := bench.Setting{Warmup: r.warmup, Duration: r.duration}
	for _, server := range c.servers {
		s.Servers = append(s.Servers, server.cmd.Process.Pid)
	}
	return s
}

// client opens a connection to servers.
func etcdClient(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, Context: ctx, DialTimeout: serveTimeout, Logger: zap.NewNop()})
}

// clients opens n connections, shared out evenly over the servers, when these serve.
func (c *etcdCluster) clients(ctx context.Context, n int) (all []*clientv3.Client, err error) {
	for i := range n {
		client, err := etcdClient(ctx, c.endpoints[i%len(c.endpoints)])
		if err != nil {
			return all, err
		}
		all = append(all, client)
		if err := c.served(ctx, client); err != nil {
			return all, err
		}
	}
	return all, nil
}

// served waits until a put succeeds.
func (c *etcdCluster) served(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	for {
		short, end := context.WithTimeout(ctx, time.Second)
		_, err := client.Put(short, "served", "")
		end()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func closeAll(clients []*clientv3.Client) {
	for _, c := range clients {
		c.Close()
	}
}

// etcdLoad puts on etcd what corresponds to a load.
func etcdLoad(ctx context.Context, r *run, n int, l bench.Load) (all []figure, err error) {
	err = r.withEtcd(ctx, n, func(c *etcdCluster) error {
		clients, err := c.clients(ctx, l.Connections)
		defer closeAll(clients)
		if err != nil {
			return err
		}
		e, err := newEtcdWork(ctx, l, clients)
		if err != nil {
			return err
		}
		s := c.setting(r)
		if l.Operations > 0 {
			s.Duration = 24 * time.Hour // it ends with the last operation
			e.left.Store(int64(l.Operations))
			s.Warmup = 0
		}
		report, err := s.Repeat(ctx, string(l.Kind), l.Connections*l.Outstanding, e.operate)
		if err == nil {
			all = figuresOf(report)
		}
		return err
	})
	return all, err
}

// etcdWork is what corresponds to a load.
type etcdWork struct {
	load    bench.Load
	clients []*clientv3.Client
	lease   clientv3.LeaseID
	value   string
	next    atomic.Int64
	left    atomic.Int64 // operations, if their number is limited
}

func newEtcdWork(ctx context.Context, l bench.Load, clients []*clientv3.Client) (*etcdWork, error) {
	e := &etcdWork{load: l, clients: clients, value: string(make([]byte, l.Size))}
	for i := range l.Keys {
		if _, err := clients[0].Put(ctx, e.key(int64(i)), e.value); err != nil {
			return nil, err
		}
	}
	lease, err := clients[0].Grant(ctx, 3600)
	if err == nil {
		e.lease = lease.ID
	}
	return e, err
}

func (e *etcdWork) key(i int64) string {
	return "/bench/" + strconv.FormatInt(i%int64(e.load.Keys), 10)
}

// operate carries out one operation.
func (e *etcdWork) operate(ctx context.Context, worker int) error {
	c, n := e.clients[worker%len(e.clients)], e.next.Add(1)
	switch e.load.Kind {
	case bench.Write:
		_, err := c.Put(ctx, e.key(n), e.value)
		return err
	case bench.Create:
		if e.load.Operations > 0 && e.left.Add(-1) < 0 {
			return bench.ErrDone
		}
		_, err := c.Put(ctx, "/bench/new/"+strconv.FormatInt(n, 10), e.value)
		return err
	case bench.Ephemerals:
		key := "/bench/bid-" + strconv.FormatInt(n, 10)
		if _, err := c.Put(ctx, key, e.value, clientv3.WithLease(e.lease)); err != nil {
			return err
		}
		_, err := c.Delete(ctx, key)
		return err
	}
	_, err := c.Get(ctx, e.key(n), clientv3.WithSerializable())
	return err
}

// etcdFanout changes one key that many clients watch, each with its own connection. The watches of
// etcd stay, so nothing sets them again; the next change waits until all clients have the last one.
func etcdFanout(ctx context.Context, r *run) (all []figure, err error) {
	err = r.withEtcd(ctx, 1, func(c *etcdCluster) error {
		clients, err := c.clients(ctx, watchers+1)
		defer closeAll(clients)
		if err != nil {
			return err
		}
		var events []clientv3.WatchChan
		for _, client := range clients[1:] {
			w := client.Watch(clientv3.WithRequireLeader(ctx), "watched", clientv3.WithCreatedNotify())
			if first := <-w; first.Err() != nil {
				return first.Err()
			}
			events = append(events, w)
		}
		value := string(make([]byte, size))
		report, err := c.setting(r).Deliver(ctx, "fanout", watchers, bench.Delivery{
			Change: func() error {
				_, err := clients[0].Put(ctx, "watched", value)
				return err
			},
			Await: func(i int) error {
				e := <-events[i]
				return e.Err()
			},
		})
		if err == nil {
			all = fanoutFigures(report)
		}
		return err
	})
	return all, err
}

func etcdColdStart(ctx context.Context, r *run) (all []figure, err error) {
	err = r.withEtcd(ctx, 3, func(c *etcdCluster) error {
		client, err := etcdClient(ctx, c.endpoints...)
		if err != nil {
			return err
		}
		defer client.Close()
		err = c.served(ctx, client)
		all = []figure{{"to the first write", "ms", millis(time.Since(c.began)), false}}
		return err
	})
	return all, err
}

// etcdSignals are the failures of the leader, in the order of failover.
var etcdSignals = []struct {
	failure bench.Failure
	signal  syscall.Signal
}{{bench.Kill, syscall.SIGKILL}, {bench.Stop, syscall.SIGTERM}, {bench.Pause, syscall.SIGSTOP}}

func etcdFailover(ctx context.Context, r *run) (all []figure, err error) {
	for _, s := range etcdSignals {
		err := r.withEtcd(ctx, 3, func(c *etcdCluster) error {
			gap, err := c.fail(ctx, s.signal)
			all = append(all, figure{failureNames[s.failure], "ms", millis(gap), false})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// afterFailure is how long puts must succeed again before the gap is taken as over.
const afterFailure = 5 * time.Second

// fail sends the leader a signal, and returns the longest time without a put that succeeds, for a client
// of another server.
func (c *etcdCluster) fail(ctx context.Context, signal syscall.Signal) (time.Duration, error) {
	leader, err := c.leader(ctx)
	if err != nil {
		return 0, err
	}
	client, err := etcdClient(ctx, c.endpoints[(leader+1)%len(c.endpoints)])
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := c.served(ctx, client); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.servers[leader].cmd.Process.Signal(signal); err != nil {
		return 0, err
	}
	longest := time.Duration(0)
	for last := began; time.Since(began) < longest+afterFailure || longest == 0; {
		short, end := context.WithTimeout(ctx, time.Second)
		_, err := client.Put(short, "written", "")
		end()
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case time.Since(began) > serveTimeout:
			return 0, fmt.Errorf("puts do not succeed again: %w", err)
		case err == nil:
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	}
	return longest, nil
}

// leader returns the number of the server that leads.
func (c *etcdCluster) leader(ctx context.Context) (int, error) {
	clients, err := c.clients(ctx, len(c.endpoints))
	defer closeAll(clients)
	if err != nil {
		return 0, err
	}
	for i, endpoint := range c.endpoints {
		status, err := clients[i].Status(ctx, endpoint)
		if err != nil {
			return 0, err
		}
		if status.Leader == status.Header.MemberId {
			return i, nil
		}
	}
	return 0, errors.New("no server of etcd leads")
}
