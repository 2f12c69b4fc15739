package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/admin/web"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/preflight"
	"bellwether/internal/server"
	"bellwether/internal/store"
)

// machine examines what a start needs besides the data: certificates, logins, addresses and ports.
func (p *preflightRun) machine(ctx context.Context, c *config.Config) {
	quiet := *c
	quiet.Audit.Enable = false // a trial would create the audit log
	soon, err := server.TryFiles(&quiet)
	p.report.Add(preflight.Settings(nil, errors.Join(err, web.Check(c)))...)
	for _, text := range soon {
		p.report.Add(preflight.Finding{Severity: preflight.Warns, Where: "certificates", What: text})
	}
	if c.TLS.ForClients() || !c.Standalone() && c.TLS.ForServers() {
		p.certificates(ctx, c)
	}
	for _, a := range []ensemble.HostPort{c.Client, c.TLS.Client} {
		p.address(c, a)
	}
	for _, n := range tryQuorumPorts(c) {
		p.report.Add(preflight.Finding{Severity: preflight.Warns, Where: n.Key, What: n.Text})
	}
	if c.Admin.Enabled && !c.Admin.ForceHTTPS {
		p.occupied(ctx, c, "admin.serverPort", c.Admin.Address, c.Admin.CommandURL+"/ruok", `"ruok"`, c.Standalone())
	}
	if c.Metrics.OwnPort() {
		p.occupied(ctx, c, "metricsProvider.httpPort", c.Metrics.Address, "/metrics", "znode_count", true)
	}
}

// certificates adds what tls check finds.
func (p *preflightRun) certificates(ctx context.Context, c *config.Config) {
	r := &tlsReport{warnDays: 30, now: time.Now()}
	r.checkConfig(ctx, c)
	for _, text := range r.Faults {
		p.report.Add(preflight.Finding{Severity: preflight.Prevents, Where: "certificates", What: text, Why: "connections would fail", Do: "see bellwether tls check --config " + c.File})
	}
	for _, text := range r.Warnings {
		p.report.Add(preflight.Finding{Severity: preflight.Warns, Where: "certificates", What: text})
	}
}

// address checks that this machine has an address for clients, without taking the port.
func (p *preflightRun) address(c *config.Config, a ensemble.HostPort) {
	if a.IsZero() {
		return
	}
	a.Port = 0
	ln, err := net.Listen("tcp", a.String())
	if err != nil {
		p.report.Add(preflight.Finding{Severity: preflight.Prevents, Where: c.File, What: fmt.Sprintf("clients cannot be accepted at %s: %v", a.Host, err),
			Why: "the server would not start here", Do: "run this command on the machine of the server, or correct the address"})
		return
	}
	ln.Close()
}

// occupied adds a finding if another program than ZooKeeper uses a port that a start needs. The answer of
// ZooKeeper to a GET of path contains mark.
func (p *preflightRun) occupied(ctx context.Context, c *config.Config, key string, a ensemble.HostPort, path, mark string, needed bool) {
	if a.IsWildcard() {
		a.Host = "127.0.0.1"
	}
	if a.Port == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.flags.port.timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.String())
	if err != nil {
		return
	}
	conn.Close()
	if httpHolds(ctx, "http://"+a.String()+path, mark) {
		return
	}
	f := preflight.Finding{Severity: preflight.Warns, Where: c.File, What: fmt.Sprintf("%s: another program than ZooKeeper seems to use %s", key, a), Why: "the server would run without this port", Do: "end that program, or choose another port"}
	if needed {
		f.Severity, f.Why = preflight.Prevents, refusesPort
	}
	p.report.Add(f)
}

const refusesPort = "Bellwether would refuse to start while the port is in use"

// httpHolds reports whether the answer to a GET contains a text.
func httpHolds(ctx context.Context, url, text string) bool {
	const most = 1 << 20
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	return err == nil && strings.Contains(string(body), text)
}

// data examines the data directory.
func (p *preflightRun) data(c *config.Config) {
	o := store.Options{DataDir: c.DataDir, LogDir: c.DataLogDir, TrustEmpty: c.Storage.TrustEmpty, NoDBCreate: !c.Storage.AutocreateDB}
	entries, err := preflight.Entries(dataDirs(c)...)
	if err != nil {
		p.unread(c, err)
		return
	}
	p.report.Add(preflight.Owners(entries, ownUser())...)
	bar := newReadBar("preflight", p.flags.json(), o.Files()...)
	d, err := preflight.ReadData(bar.fs(), o)
	bar.Close()
	if err != nil {
		p.unread(c, err)
		return
	}
	p.held = d
	t := &d.Tree
	if d.Check.LastZxid >= 0 {
		p.report.Fine(c.DataDir, "the data can be loaded up to %v; the newest snapshot has %d znodes (%d ephemeral, %d containers, %d with a TTL), %d ACLs and %d sessions; about %.1f MiB in memory",
			d.Check.LastZxid, t.Nodes, t.Ephemerals, t.Containers, t.TTLs, t.ACLs, t.Sessions, float64(t.MemoryBytes())/(1<<20))
	}
	p.report.Add(d.Judge(preflight.Needs{
		FrameBytes: c.Limits.FrameBytes, ExtendedTypes: c.Tree.ExtendedTypes, Schemes: schemesOf(c), Memory: server.MemoryMax(),
		Copy: preflight.SizeOf(entries), Free: preflight.Free(c.DataDir), LogFree: preflight.Free(c.DataLogDir), LogBytes: c.Storage.PreAllocBytes,
	})...)
}

// unread adds the finding for a data directory that cannot be read.
func (p *preflightRun) unread(c *config.Config, err error) {
	f := preflight.Finding{Severity: preflight.Unseen, Where: c.DataDir, What: err.Error(), Do: "run this command on the machine of the server, as the user that runs ZooKeeper"}
	layout := (*store.LayoutError)(nil)
	if errors.As(err, &layout) {
		f.Severity, f.Why, f.Do = preflight.Prevents, "Bellwether would refuse to start", ""
	}
	if errors.Is(err, fs.ErrNotExist) {
		f.Do = "give the zoo.cfg of the running server: " + f.Do
	}
	p.report.Add(f)
}

// schemesOf returns the schemes of ACL entries that are switched on.
func schemesOf(c *config.Config) []string {
	all := []string{"world", "ip", "digest"}
	if c.Access.SASLScheme {
		all = append(all, "sasl")
	}
	if c.TLS.ForClients() {
		all = append(all, "x509")
	}
	return all
}

// ports checks whether the ports of the other servers can be reached: the election port of each, and the quorum
// port of the leader, because only a leader listens there.
func (p *preflightRun) ports(ctx context.Context, c *config.Config, live *preflight.Live) []preflight.Finding {
	if c.Standalone() {
		return nil
	}
	var all []preflight.Finding
	for _, s := range c.Ensemble.Members.Servers() {
		if s.ID == c.Ensemble.ID || !live.Serves(s.ID) {
			continue
		}
		ports := []string{s.Addresses[0].Election()}
		if live.Leads(s.ID) {
			ports = append(ports, s.Addresses[0].Quorum())
		}
		for _, port := range ports {
			if err := p.reach(ctx, port); err != nil {
				all = append(all, preflight.Finding{Severity: preflight.Prevents, Where: "server." + strconv.FormatInt(int64(s.ID), 10), What: fmt.Sprintf("%s cannot be reached from here: %v", port, err),
					Why: "the new server could not join the ensemble", Do: "run this command on the machine of the server, or open the port"})
			}
		}
	}
	return all
}

// reach connects to a port and closes the connection.
func (p *preflightRun) reach(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, p.flags.port.timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// ownUser returns the user id of this process.
func ownUser() int { return os.Geteuid() }
