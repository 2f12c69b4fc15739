package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bellwether/internal/clientconfig"
	"bellwether/internal/secure"
	"bellwether/internal/shell"
)

// portFlags are the flags for a handshake with a port.
type portFlags struct {
	flags   *pflag.FlagSet
	timeout time.Duration
}

// tlsFlags and tlsVariables are the prefixes of the names of the flags and variables for TLS.
const (
	tlsFlags     = "tls-"
	tlsVariables = "BELLWETHER_TLS_"
)

// add adds the flags to a command. when says when they have an effect.
func (f *portFlags) add(c *cobra.Command, when string) {
	f.flags = c.Flags()
	for _, s := range clientconfig.Settings {
		if strings.HasPrefix(s.Flag, tlsFlags) {
			f.flags.String(s.Flag, "", when+": "+s.Usage+" (default $"+s.Env+")")
		}
	}
	f.flags.DurationVar(&f.timeout, "connect-timeout", 10*time.Second, when+": how long to try")
}

// seenReport holds what a handshake has shown.
type seenReport struct {
	Address     string   `json:"address"`
	Version     string   `json:"protocol,omitempty"`
	Suite       string   `json:"suite,omitempty"`
	Asked       bool     `json:"asks_for_certificate"`
	Shown       bool     `json:"certificate_shown"`
	Authorities []string `json:"authorities,omitempty"` // the authorities of clients that the server names
}

// check adds what a handshake with a port shows.
func (f portFlags) check(ctx context.Context, r *tlsReport, address string) error {
	p, err := f.probe(address)
	if err != nil {
		return shell.Usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	seen, err := p.Run(ctx)
	if err != nil {
		r.fault("%v", err)
	}
	if unreachable := (*secure.UnreachableError)(nil); errors.As(err, &unreachable) {
		r.unreachable = true
		return nil
	}
	r.Handshake = &seenReport{address, seen.Version, seen.Suite, seen.Asked, seen.Shown, seen.Authorities}
	for _, c := range seen.Chain {
		report := certReport{Use: useShown, Subject: secure.NameOf(c), Issuer: secure.IssuerOf(c), Names: secure.NamesOf(c), NotAfter: c.NotAfter.UTC()}
		if err == nil {
			r.certificate(report, c.NotBefore)
			continue
		}
		report.Days = int(c.NotAfter.Sub(r.now).Hours() / 24) // no further fault, because err has been reported already
		r.Certificates = append(r.Certificates, report)
	}
	return nil
}

// probe returns the handshake that the flags and variables describe.
func (f portFlags) probe(address string) (p secure.Probe, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return p, fmt.Errorf("%q: want HOST:PORT, as in zk1:2281 or [::1]:2281", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return p, fmt.Errorf("%q: port %q is not a number from 1 to 65535", address, port)
	}
	c, err := f.load()
	if err != nil {
		return p, err
	}
	return c.Probe(address), nil
}

// load returns how to connect with TLS.
func (f portFlags) load() (*clientconfig.Config, error) {
	if f.timeout <= 0 {
		return nil, fmt.Errorf("--connect-timeout %v: want more than 0", f.timeout)
	}
	return clientconfig.Load(f.value, func(name string) string {
		if strings.HasPrefix(name, tlsVariables) { // other variables, such as those of a login, are ignored
			return os.Getenv(name)
		}
		return ""
	})
}

// given reports whether any flag for TLS was given.
func (f portFlags) given() bool {
	yes := false
	f.flags.Visit(func(flag *pflag.Flag) { yes = yes || strings.HasPrefix(flag.Name, tlsFlags) })
	return yes
}

// value returns the value of a flag, and whether it was given. TLS is always switched on.
func (f portFlags) value(name string) (string, bool) {
	if name+"-" == tlsFlags {
		return "true", true
	}
	if flag := f.flags.Lookup(name); flag != nil {
		return flag.Value.String(), flag.Changed
	}
	return "", false
}

func (s *seenReport) print(w io.Writer) {
	if s.Version == "" {
		fmt.Fprintf(w, "%s: no handshake\n", s.Address)
		return
	}
	fmt.Fprintf(w, "%s: %s with %s\n", s.Address, s.Version, s.Suite)
	asks := "is not asked for a certificate"
	switch {
	case s.Shown:
		asks = "has shown its certificate"
	case s.Asked:
		asks = "is asked for a certificate"
	}
	if len(s.Authorities) > 0 {
		asks += "; the server trusts " + strings.Join(s.Authorities, ", ")
	}
	fmt.Fprintf(w, "the client %s\n", asks)
}
