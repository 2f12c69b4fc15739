package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/authority"
	"bellwether/internal/ensemble"
	"bellwether/internal/shell"
)

func newTLS() *cobra.Command {
	return shell.Group(&cobra.Command{
		Use:   "tls",
		Short: "make the certificates of an ensemble, and check them",
	}, newTLSInit(), newTLSCheck())
}

const tlsInitLong = `Make a private certificate authority, a certificate for each server and one for each client, and print the lines
to add to zoo.cfg.

The servers are those of the server lines of --config, or those named with --server. A server's certificate holds the
names and addresses under which others reach it. Each file holds a private key and its certificate, in a form that
Bellwether and ZooKeeper read (PEM). The certificate of a client cannot be used as that of a server. Certificates can
be issued with ca-key.pem: keep it off the servers.

The command can be repeated. It keeps what is still good, renews certificates of which less than a third of the
validity is left or whose names have changed, and issues those that are missing. A running server reads renewed
files on SIGHUP.`

// tlsInit holds the flags of tls init.
type tlsInit struct {
	outputFlag
	dir, config      string
	servers, clients []string
	days             int
}

func newTLSInit() *cobra.Command {
	var f tlsInit
	c := &cobra.Command{
		Use:     "init",
		Short:   "make or renew a private authority and the certificates of servers and clients",
		Long:    tlsInitLong,
		Example: "  bellwether tls init --config zoo.cfg --client app\n  bellwether tls init --server 1=localhost,127.0.0.1 --dir tls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			subjects, err := f.subjects()
			if err != nil {
				return err
			}
			files, err := authority.Init(authority.Plan{Dir: f.dir, Subjects: subjects, Days: f.days, Now: time.Now()})
			if err != nil {
				return err
			}
			return f.report(cmd.OutOrStdout(), files)
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.dir, "dir", "bellwether-tls", "the folder of the authority and the certificates")
	c.Flags().StringVar(&f.config, "config", "", "zoo.cfg, or a dynamic configuration file, with the server lines")
	c.Flags().StringArrayVar(&f.servers, "server", nil, "a server, as ID=HOST[,HOST]...; may be repeated")
	c.Flags().StringArrayVar(&f.clients, "client", nil, "the name of a client, whose identity in ACLs is x509:CN=NAME; may be repeated")
	c.Flags().IntVar(&f.days, "days", 0, "how many days a certificate is valid; 0: 397")
	return c
}

// subjects returns the servers and clients that get a certificate.
func (f *tlsInit) subjects() ([]authority.Subject, error) {
	if (f.config == "") == (len(f.servers) == 0) {
		return nil, shell.Usage(errors.New("name the servers with --config or with --server"))
	}
	var all []authority.Subject
	if f.config != "" {
		servers, err := membersOf(f.config)
		if err != nil {
			return nil, shell.Usage(err)
		}
		all = servers
	}
	for _, text := range f.servers {
		id, hosts, ok := strings.Cut(text, "=")
		if !ok || id == "" || hosts == "" {
			return nil, shell.Usage(fmt.Errorf("--server %q: want ID=HOST[,HOST]..., such as 1=zk1.example,10.0.0.1", text))
		}
		all = append(all, serverSubject(id, strings.Split(hosts, ",")))
	}
	for _, name := range f.clients {
		all = append(all, authority.Subject{File: "client-" + name + ".pem", Name: name})
	}
	return all, nil
}

// serverSubject returns the subject of a server. Every certificate also holds the names of
// the loopback interface, so that tools on the server's machine can connect.
func serverSubject(id string, hosts []string) authority.Subject {
	s := authority.Subject{File: "server." + id + ".pem", Name: "server." + id}
	seen := map[string]bool{}
	for _, h := range append(hosts, "localhost", "127.0.0.1", "::1") {
		if !seen[h] {
			s.Hosts = append(s.Hosts, h)
		}
		seen[h] = true
	}
	return s
}

// membersOf reads the server lines of a configuration file.
func membersOf(file string) ([]authority.Subject, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	props, err := ensemble.ReadProperties(ensemble.Latin1(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var lines []ensemble.Property
	for _, p := range props {
		if p.Key == "dynamicConfigFile" {
			return nil, fmt.Errorf("%s has its server lines in %s: name that file with --config", file, p.Value)
		}
		if ensemble.IsMemberKey(p.Key) {
			lines = append(lines, p)
		}
	}
	m, err := ensemble.FromProperties(lines)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []authority.Subject
	for _, s := range m.Servers() {
		var hosts []string
		for _, a := range s.Addresses {
			hosts = append(hosts, strings.Trim(a.Host, "[]"))
		}
		if client := s.Client.Host; client != "" && !s.Client.IsWildcard() {
			hosts = append(hosts, strings.Trim(client, "[]"))
		}
		all = append(all, serverSubject(fmt.Sprint(s.ID), hosts))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no server lines: name the servers with --server ID=HOST", file)
	}
	return all, nil
}

// report prints what was done with each file, and what to add to zoo.cfg.
func (f *tlsInit) report(w io.Writer, files []authority.File) error {
	if f.json() {
		enc := json.NewEncoder(w)
		for _, x := range files {
			if err := enc.Encode(struct {
				Path     string    `json:"path"`
				Name     string    `json:"name"`
				Status   string    `json:"status"`
				NotAfter time.Time `json:"not_after"`
			}{x.Path, x.Name, string(x.Status), x.NotAfter.UTC()}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, x := range files {
		if _, err := fmt.Fprintf(w, "%-8s %s, valid until %s\n", x.Status, x.Path, x.NotAfter.UTC().Format(time.DateOnly)); err != nil {
			return err
		}
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(dir, filepath.Base(name)) }
	_, err = fmt.Fprintf(w, `
Copy %[1]s and the server's own file to each server, and keep %[2]s elsewhere.
Add these lines to the zoo.cfg of server 1, and to the others with their own file:

secureClientPort=2281
ssl.keyStore.location=%[3]s
ssl.trustStore.location=%[1]s
sslQuorum=true
ssl.quorum.keyStore.location=%[3]s
ssl.quorum.trustStore.location=%[1]s
`, at(authority.CertFile), at(authority.KeyFile), at(files[1].Path))
	return err
}
