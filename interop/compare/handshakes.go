package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

const (
	tlsClientsSession  = 40 * time.Second // session timeout of the TLS clients
	tlsClientsMax      = 2 * time.Minute  // limit for the time until all clients are connected, and until all are served again
	tlsClientsParallel = 64               // clients that connect at the same time
	spareFiles         = 500              // files that a process may have open besides its connections
)

// handshakes measures how long very many TLS clients are without service when their leader is
// killed, then the reload of a certificate.
func handshakes(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	if err := enoughFiles(p.clients); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m := &meter{ctx: ctx, kind: kind, plan: p, dir: dir}
	if err := issue(dir, serverFile, clientFile); err != nil {
		return nil, err
	}
	c := &tlsClients{ensemble: &ensemble{meter: m}}
	if c.config, err = clientTLS(dir); err != nil {
		return nil, err
	}
	if err := c.measure(); err != nil {
		return nil, err
	}
	r := &tlsMeter{meter: m}
	return m.figures, r.reloads()
}

// enoughFiles returns an error if this process, and so each server, may not open that many
// connections.
func enoughFiles(clients int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if need := uint64(clients + spareFiles); limit.Max < need {
		return fmt.Errorf("-clients %d needs %d open files, and the limit is %d: raise it with ulimit -n", clients, need, limit.Max)
	}
	return nil
}

// tlsClients is a large number of TLS clients of one ensemble.
type tlsClients struct {
	*ensemble
	config  *tls.Config
	clients []*zk.Client
}

// measure connects all clients to the leader, kills it, and reports how long each client waits
// for the answer of another server.
func (c *tlsClients) measure() error {
	c.extra = tlsLines(c.dir)
	c.extra["client.portUnification"] = "true"
	// Without a secureClientPort ZooKeeper knows no certificates of clients unless this line is there.
	c.extra["authProvider.x509"] = "org.apache.zookeeper.server.auth.X509AuthenticationProvider"
	defer c.ensemble.end()
	defer c.leave()
	if _, err := c.begin(); err != nil {
		return err
	}
	leader, err := c.e.AwaitWhole(waitMax)
	if err != nil {
		return err
	}
	if err := c.join(leader); err != nil {
		return err
	}
	before, err := c.processors(leader)
	if err != nil {
		return err
	}
	c.e.Servers[leader].Kill()
	waits, expired := c.returns()
	after, err := c.processors(leader)
	if err != nil {
		return err
	}
	c.report(waits, after-before, expired)
	return nil
}

// report prints how long the clients waited. If not all of them were served in time, the
// figures are about those that were.
func (c *tlsClients) report(waits []time.Duration, used time.Duration, expired int) {
	what := fmt.Sprintf("kill -9 of the leader of %d TLS clients: ", len(c.clients))
	after, rate, each := "-", "-", "-"
	if n := len(waits); n > 0 {
		at := func(share int) time.Duration { return waits[(n-1)*share/100] }
		after = fmt.Sprintf("half %d, 99%% %d, all %d ms", at(50).Milliseconds(), at(99).Milliseconds(), at(100).Milliseconds())
		rate = fmt.Sprintf("%.0f/s", float64(n)/at(100).Seconds())
		each = fmt.Sprintf("%d µs", used.Microseconds()/int64(n))
	}
	c.say(fmt.Sprintf("%d of %d", len(waits), len(c.clients)), "%sserved again within %v", what, tlsClientsMax)
	c.say(after, "%sserved again after", what)
	c.say(rate, "%sclients served again per second", what)
	c.say(each, "%sprocessor time of the servers for each client", what)
	c.say(fmt.Sprint(expired), "%ssessions lost", what)
}

// join connects all clients to one server. Later they may use all servers.
func (c *tlsClients) join(server int) error {
	ctx, cancel := context.WithTimeout(c.ctx, tlsClientsMax)
	defer cancel()
	began := time.Now()
	c.clients = make([]*zk.Client, c.plan.clients)
	next, errs := make(chan int), make(chan error, tlsClientsParallel)
	var workers sync.WaitGroup
	for range tlsClientsParallel {
		workers.Go(func() {
			for i := range next {
				var err error
				if c.clients[i], err = zk.Connect(ctx, c.e.Servers[server].Addr, &zk.Options{TLS: c.config, SessionTimeout: tlsClientsSession}); err == nil {
					err = c.clients[i].SetServers(c.e.Addrs())
				}
				if err != nil {
					errs <- err
					cancel()
					return
				}
			}
		})
	}
	for i := 0; i < len(c.clients) && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	c.say(fmt.Sprintf("%.0f/s", float64(len(c.clients))/time.Since(began).Seconds()), "%d TLS clients connect to the leader, %d at a time", len(c.clients), tlsClientsParallel)
	return ctx.Err()
}

// returns waits until each client is served by another server than before, and returns the
// sorted times and the number of clients whose session was lost.
func (c *tlsClients) returns() (waits []time.Duration, expired int) {
	ctx, cancel := context.WithTimeout(c.ctx, tlsClientsMax)
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	var workers sync.WaitGroup
	for _, client := range c.clients {
		workers.Go(func() {
			session := client.Session().ID
			for ctx.Err() == nil {
				if _, _, err := client.Get(ctx, c.path); err != nil {
					continue
				}
				took := time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, took)
				if client.Session().ID != session {
					expired++
				}
				return
			}
		})
	}
	workers.Wait()
	slices.Sort(waits)
	return waits, expired
}

// processors returns the CPU time that the servers have used, except for one.
func (c *tlsClients) processors(except int) (sum time.Duration, err error) {
	for i, s := range c.e.Servers {
		if i == except {
			continue
		}
		used, err := processor(s.PID())
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// leave ends all clients without closing their sessions.
func (c *tlsClients) leave() {
	for _, client := range c.clients {
		if client != nil {
			client.Detach()
		}
	}
}
