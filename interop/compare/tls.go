package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/bench"
	"bellwether/internal/portblock"
	"bellwether/interop/target"
	"bellwether/zk"
)

// tlsLoads are the loads of -tls, with one request in flight on each connection.
var tlsLoads = []struct {
	kind        bench.Kind
	connections int
}{
	{bench.Read, 1},
	{bench.Read, 64},
	{bench.Write, 1},
	{bench.Write, 64},
}

// tlsTurns is how often each load is measured with TLS and without, by turns. The median of the
// turns is shown.
const tlsTurns = 3

// The files of one measurement.
const (
	serverFile = "server.pem"
	clientFile = "client.pem"
)

// costOfTLS measures how much throughput and latency TLS costs.
func costOfTLS(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m := &tlsMeter{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir}}
	if err := m.certify(); err != nil {
		return nil, err
	}
	s, _, err := m.start("")
	if err != nil {
		return nil, err
	}
	defer s.Kill()
	for _, load := range tlsLoads {
		if err := m.compare(s, bench.Load{Kind: load.kind, Connections: load.connections, Outstanding: 1, Keys: 1000, Size: 100}); err != nil {
			return nil, err
		}
	}
	return m.figures, nil
}

// tlsMeter measures one server with a port for TLS.
type tlsMeter struct {
	*meter
	secure string      // the address of the port
	config *tls.Config // TLS configuration of the clients
}

// certify makes the certificates and the lines of zoo.cfg for a port with TLS.
func (m *tlsMeter) certify() error {
	if err := issue(m.dir, serverFile, clientFile); err != nil {
		return err
	}
	port, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		return err
	}
	m.secure = net.JoinHostPort("127.0.0.1", strconv.Itoa(port[0]))
	m.extra = tlsLines(m.dir)
	m.extra["secureClientPort"], m.extra["secureClientPortAddress"] = strconv.Itoa(port[0]), "127.0.0.1"
	m.config, err = clientTLS(m.dir)
	return err
}

// issue writes an authority and certificates for servers on loopback or, if the name is
// clientFile, for a client. Files that are there stay as they are.
func issue(dir string, files ...string) error {
	plan := authority.Plan{Dir: dir, Now: time.Now()}
	for _, file := range files {
		s := authority.Subject{File: file, Name: file}
		if file != clientFile {
			s.Hosts = []string{"127.0.0.1"}
		}
		plan.Subjects = append(plan.Subjects, s)
	}
	_, err := authority.Init(plan)
	return err
}

// tlsLines returns the lines of zoo.cfg for TLS with clients, without the port. ZooKeeper needs
// netty for it; then netty serves the port without TLS too.
func tlsLines(dir string) map[string]string {
	return map[string]string{
		"ssl.keyStore.location":   filepath.Join(dir, serverFile),
		"ssl.trustStore.location": filepath.Join(dir, authority.CertFile),
		"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
	}
}

// clientTLS returns the configuration of clients, which resume their TLS sessions.
func clientTLS(dir string) (*tls.Config, error) {
	pem := filepath.Join(dir, clientFile)
	pair, err := tls.LoadX509KeyPair(pem, pem)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, authority.CertFile))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the authority's file holds no certificate")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(0)}, nil
}

// turn is the result of one of the measurements that compare makes by turns.
type turn struct {
	perSecond, p99, cpu int64 // cpu is the processor time of the server for an operation, in ns
}

// compare measures one load by turns with TLS and without.
func (m *tlsMeter) compare(s *target.Server, load bench.Load) error {
	ways := []bench.Connect{
		func(ctx context.Context) (*zk.Client, error) { return zk.Connect(ctx, s.Addr, nil) },
		func(ctx context.Context) (*zk.Client, error) {
			return zk.Connect(ctx, m.secure, &zk.Options{TLS: m.config})
		},
	}
	var turns [2][]turn
	for n := range tlsTurns {
		for way, connect := range ways {
			load.Connect, load.Root = connect, fmt.Sprintf("/%s-%d-%d-%d", load.Kind, load.Connections, n, way)
			if n == 0 {
				load.Duration = m.plan.warmup
				if _, err := m.once(s, load); err != nil {
					return err
				}
			}
			load.Duration = m.plan.duration
			t, err := m.once(s, load)
			if err != nil {
				return err
			}
			turns[way] = append(turns[way], t)
		}
	}
	what := fmt.Sprintf("%s, %d connections", load.Kind, load.Connections)
	plain, secure := medians(turns[0]), medians(turns[1])
	m.say(plain.String(), "%s, without TLS", what)
	m.say(secure.String(), "%s, with TLS", what)
	m.say(fmt.Sprintf("%.2f of the throughput, %.2f of the p99", ratio(secure.perSecond, plain.perSecond), ratio(secure.p99, plain.p99)),
		"%s, TLS/plain", what)
	return nil
}

// once puts a load on the server.
func (m *tlsMeter) once(s *target.Server, load bench.Load) (turn, error) {
	before, err := processor(s.PID())
	if err != nil {
		return turn{}, err
	}
	reports, err := load.Run(m.ctx)
	if err != nil {
		return turn{}, err
	}
	r := reports[0]
	after, err := processor(s.PID())
	return turn{int64(r.PerSecond()), r.P99.Microseconds(), (after - before).Nanoseconds() / max(r.Operations, 1)}, err
}

func (t turn) String() string {
	return fmt.Sprintf("%d/s, p99 %d µs, cpu %.1f µs/op", t.perSecond, t.p99, float64(t.cpu)/1000)
}

// medians returns the median of each figure.
func medians(turns []turn) turn {
	of := func(figure func(turn) int64) int64 {
		var all []int64
		for _, t := range turns {
			all = append(all, figure(t))
		}
		return median(all)
	}
	return turn{
		of(func(t turn) int64 { return t.perSecond }),
		of(func(t turn) int64 { return t.p99 }),
		of(func(t turn) int64 { return t.cpu }),
	}
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }
