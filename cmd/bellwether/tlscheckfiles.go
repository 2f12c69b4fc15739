package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/secure"
	"bellwether/internal/shell"
)

// portReport holds what the ports of one family of settings accept.
type portReport struct {
	For     string   `json:"for"` // clients or servers
	TLS     []string `json:"tls,omitempty"`
	Plain   []string `json:"without_tls,omitempty"`
	Both    []string `json:"with_or_without_tls,omitempty"`
	DialTLS bool     `json:"dials_with_tls,omitempty"` // this server uses TLS when it connects to other servers
	*acceptReport
	Authorities []string      `json:"authorities,omitempty"`
	Members     []memberProof `json:"members,omitempty"`
}

// acceptReport holds what the settings of a port with TLS allow.
type acceptReport struct {
	Versions       []string `json:"protocols"`
	Suites         []string `json:"suites"`
	ClientAuth     string   `json:"client_auth"`
	NamesOfServers bool     `json:"verifies_names_of_servers"`
	NamesOfClients bool     `json:"verifies_names_of_clients"`
	CRL            bool     `json:"crl"`
	OCSP           bool     `json:"ocsp"`
	chosen         bool     // zoo.cfg names the suites
}

// ofSettings returns what a port with these settings accepts.
func ofSettings(s secure.Settings) acceptReport {
	return acceptReport{
		Versions: s.Versions(), Suites: s.Suites(), ClientAuth: string(s.ClientAuth), chosen: s.CipherSuites != nil,
		NamesOfServers: s.VerifyServerNames, NamesOfClients: s.VerifyClientNames, CRL: s.CRL, OCSP: s.OCSP,
	}
}

// memberProof holds what the certificate of a member must hold.
type memberProof struct {
	Server int64    `json:"server"`
	Names  []string `json:"one_of,omitempty"` // empty: the certificate may have any name
}

// filesMax bounds how long reading revocation lists and resolving names may take.
const filesMax = 30 * time.Second

// checkTLSFiles adds what a zoo.cfg and its files say.
func checkTLSFiles(ctx context.Context, r *tlsReport, file string) error {
	c, err := serveFlags{config: file}.load()
	if err != nil {
		return shell.Usage(err)
	}
	r.checkConfig(ctx, c)
	return nil
}

// checkConfig adds what a configuration and its files say.
func (r *tlsReport) checkConfig(ctx context.Context, c *config.Config) {
	ctx, cancel := context.WithTimeout(ctx, filesMax)
	defer cancel()
	for _, n := range remarks(c) {
		if strings.HasPrefix(n.Key, "ssl.") || strings.Contains(n.Key, "ortUnification") || strings.HasPrefix(n.Key, "secureClient") {
			r.warn("%s", n)
		}
	}
	clients, servers := portReport{For: "clients"}, portReport{For: "servers"}
	clientPorts(c, &clients)
	serverPorts(c, &servers)
	if store := r.family(ctx, &clients, c.TLS.Clients, c.TLS.ForClients()); store != nil {
		r.clientNames(store, c)
	}
	if store := r.family(ctx, &servers, c.TLS.Servers, c.TLS.ForServers()); store != nil {
		r.ownCertificate(ctx, store, c)
	}
	r.Ports = []portReport{clients}
	if !c.Standalone() {
		r.Ports = append(r.Ports, servers)
	}
}

func clientPorts(c *config.Config, p *portReport) {
	switch at := c.Client.String(); {
	case at != "" && c.TLS.ClientUnified:
		p.Both = append(p.Both, at)
	case at != "":
		p.Plain = append(p.Plain, at)
	}
	if at := c.TLS.Client.String(); at != "" {
		p.TLS = append(p.TLS, at)
	}
}

func serverPorts(c *config.Config, p *portReport) {
	if c.Standalone() {
		return
	}
	self, _ := c.Ensemble.Members.Server(c.Ensemble.ID)
	ports := &p.Plain
	switch {
	case c.TLS.QuorumUnified:
		ports = &p.Both
	case c.TLS.Quorum:
		ports = &p.TLS
	}
	for _, a := range self.Addresses {
		*ports = append(*ports, a.Quorum(), a.Election())
	}
	p.DialTLS = c.TLS.Quorum
	if !c.TLS.ForServers() {
		return
	}
	for _, s := range c.Ensemble.Members.Servers() {
		proof := memberProof{Server: int64(s.ID)}
		if c.TLS.Servers.VerifyServerNames {
			proof.Names = hostsOf(s)
			if shared := c.TLS.Servers.SharedName; shared != "" && len(proof.Names) > 0 {
				proof.Names = append(proof.Names, shared)
			}
		}
		p.Members = append(p.Members, proof)
	}
}

// hostsOf returns the hosts of a server line. The certificate of the server must hold one of them. If one of them
// is a wildcard, it returns none.
func hostsOf(s ensemble.Server) []string {
	var hosts []string
	for _, a := range s.Addresses {
		if (ensemble.HostPort{Host: a.Host}).IsWildcard() {
			return nil
		}
		hosts = append(hosts, strings.Trim(a.Host, "[]"))
	}
	return hosts
}

// family reads the files of a family of settings, and adds what they hold. It returns nil if no port uses the
// family, or if a file cannot be used.
func (r *tlsReport) family(ctx context.Context, p *portReport, s secure.Settings, used bool) *secure.Store {
	if !used {
		return nil
	}
	accept := ofSettings(s)
	p.acceptReport = &accept
	store, err := secure.Open(s)
	if err != nil {
		r.fault("%v", err)
		return nil
	}
	for _, c := range store.Certificates() {
		if !c.Ours {
			p.Authorities = append(p.Authorities, c.Subject)
		}
		r.ofStore(c)
	}
	if s.TrustStore.Location == "" {
		p.Authorities = []string{"every authority that this system trusts"}
	}
	for _, l := range listsOf(ctx, store, s) {
		r.list(l)
	}
	return store
}

// ofStore adds a certificate of a file, unless the same one was added before.
func (r *tlsReport) ofStore(c secure.Certificate) {
	use := useTrusted
	if c.Ours {
		use = useShown
	}
	if slices.ContainsFunc(r.Certificates, func(o certReport) bool {
		return o.File == c.File && o.Subject == c.Subject && o.Use == use && o.NotAfter.Equal(c.NotAfter)
	}) {
		return
	}
	report := certReport{File: c.File, Use: use, Subject: c.Subject, Issuer: c.Issuer(), NotAfter: c.NotAfter.UTC()}
	if c.Ours {
		report.Names = c.Names()
	}
	r.certificate(report, c.NotBefore)
}

// listsOf reads the revocation lists of a store if its settings ask for them.
func listsOf(ctx context.Context, store *secure.Store, s secure.Settings) []secure.List {
	if !s.CRL && !s.OCSP {
		return nil
	}
	return store.Lists(ctx)
}

// list adds a revocation list. A list that is out of date makes servers refuse all certificates that name it.
func (r *tlsReport) list(l secure.List) {
	report := listReport{Place: l.Place, Issuer: l.Issuer, NextUpdate: l.NextUpdate.UTC()}
	switch {
	case l.Err != nil:
		report.Error = l.Err.Error()
		r.fault("the revocation list %s cannot be read: %v", l.Place, l.Err)
	case !l.NextUpdate.IsZero() && l.NextUpdate.Before(r.now):
		r.fault("the revocation list %s of %q ended at %s: let the authority issue a new one", l.Place, l.Issuer, l.NextUpdate.UTC().Format(time.RFC3339))
	}
	r.Lists = append(r.Lists, report)
}

// clientNames warns if clients that connect to the configured client address would refuse the server's certificate.
func (r *tlsReport) clientNames(store *secure.Store, c *config.Config) {
	at := c.TLS.Client
	if at.IsZero() {
		at = c.Client
	}
	if at.IsWildcard() || at.IsLoopback() || at.Host == "" {
		return // the names that clients use are not known
	}
	if err := store.CheckOwnNames(at.Host); err != nil {
		r.warn("clients that connect to %s would refuse this server: %v", at, err)
	}
}

// ownCertificate adds a fault if other members would refuse this server.
func (r *tlsReport) ownCertificate(ctx context.Context, store *secure.Store, c *config.Config) {
	if err := store.CheckOwn(ctx); err != nil {
		r.fault("other servers with this configuration would refuse this server: %v", err)
		return
	}
	self, ok := c.Ensemble.Members.Server(c.Ensemble.ID)
	hosts := hostsOf(self)
	if !ok || len(hosts) == 0 {
		return
	}
	if err := store.CheckOwnMember(ctx, hosts...); err != nil {
		r.fault("other servers would refuse this server as server.%d: %v", self.ID, err)
	}
}

func (p portReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", p.For)
	line := func(what string, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	for _, ports := range []struct {
		what string
		at   []string
	}{{"TLS", p.TLS}, {"TLS or not", p.Both}, {"without TLS", p.Plain}} {
		if len(ports.at) > 0 {
			line(ports.what, "%s", strings.Join(ports.at, ", "))
		}
	}
	if len(p.TLS)+len(p.Both)+len(p.Plain) == 0 {
		line("no port", "zoo.cfg names none for %s", p.For)
	}
	if p.acceptReport == nil {
		return
	}
	if p.For == "servers" {
		line("dials", "%s", map[bool]string{true: "other servers with TLS", false: "other servers without TLS"}[p.DialTLS])
	}
	line("protocols", "%s", strings.Join(p.Versions, ", "))
	if p.chosen {
		line("suites", "%s", strings.Join(p.Suites, ", "))
	} else {
		line("suites", "all %d that are safe; -o json lists them", len(p.Suites))
	}
	line("certificate", "%s", clientAuthText[secure.ClientAuth(p.ClientAuth)])
	line("trusted", "%s", strings.Join(p.Authorities, ", "))
	line("names", "%s", p.namesText())
	for _, m := range p.Members {
		if len(m.Names) > 0 {
			line("", "server.%d must prove %s", m.Server, strings.Join(m.Names, " or "))
		}
	}
	line("revocation", "%s", p.revocationText())
}

// withoutTLS returns a line that says that no port of a server uses TLS; empty: a port does, or no server was read.
func withoutTLS(families []portReport) string {
	var plain []string
	for _, p := range families {
		if p.acceptReport != nil {
			return ""
		}
		plain = append(plain, p.Plain...)
	}
	if len(plain) == 0 {
		return ""
	}
	return fmt.Sprintf("this server uses no TLS: connections to %s are not encrypted\n", strings.Join(plain, ", "))
}

// clientAuthText says in words what ssl.clientAuth means.
var clientAuthText = map[secure.ClientAuth]string{
	secure.Need: "the side that connects must show one",
	secure.Want: "the side that connects may show none; one that it shows must be valid",
	secure.None: "the side that connects is not asked for one",
}

func (p portReport) namesText() string {
	switch {
	case p.For == "clients" && p.NamesOfClients:
		return "the certificate of a client must hold its name or address"
	case p.For == "clients":
		return "the names of clients are not compared"
	case !p.NamesOfServers:
		return "not compared: a server with any trusted certificate can claim to be any member"
	case len(p.Both) > 0:
		return "compared on connections with TLS: a program without TLS can claim to be any member"
	case p.ClientAuth == string(secure.None):
		return "compared when this server dials: any program can claim to be any member"
	case p.ClientAuth == string(secure.Want):
		return "compared with the certificates that are shown: a program without one can claim to be any member"
	case !p.NamesOfClients:
		return "compared when this server dials, and with the member whose id another server claims"
	}
	return "compared at both ends of a connection, and with the member whose id another server claims"
}

func (a *acceptReport) revocationText() string {
	switch {
	case a.OCSP && a.CRL:
		return "by OCSP, then by revocation lists"
	case a.OCSP:
		return "by OCSP, then by the lists that certificates name"
	case a.CRL:
		return "by revocation lists"
	}
	return "not checked"
}
