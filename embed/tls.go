package embed

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/secure"
	"bellwether/zk"
)

// certificates are the files of an ensemble with TLS: a private authority, a certificate for each server, and
// one for clients.
type certificates struct {
	dir    string
	client *tls.Config
}

// clientName is the common name of the clients' certificate.
const clientName = "client"

// newCertificates makes the files for an ensemble whose addresses are known. They are in a new folder.
func newCertificates(e *Ensemble) (*certificates, error) {
	dir, err := os.MkdirTemp("", "bellwether-tls-")
	if err != nil {
		return nil, err
	}
	c := &certificates{dir: dir}
	subjects := []authority.Subject{{File: "client.pem", Name: clientName}}
	for _, s := range e.servers {
		subjects = append(subjects, authority.Subject{File: serverFile(s.id), Name: fmt.Sprint("server.", s.id), Hosts: e.hostsOf(s)})
	}
	if _, err = authority.Init(authority.Plan{Dir: dir, Subjects: subjects, Now: time.Now()}); err == nil {
		c.client, err = c.clientConfig()
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

func serverFile(id int) string { return fmt.Sprintf("server.%d.pem", id) }

// hostsOf returns the names and addresses under which a server is reached.
func (e *Ensemble) hostsOf(s *Server) []string {
	at, _, _ := net.SplitHostPort(s.address) // no error: Start made the address
	hosts := []string{at, machineAddr(s.id).String(), "localhost", "127.0.0.1", "::1"}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// clientConfig reads the files of clients.
func (c *certificates) clientConfig() (*tls.Config, error) {
	files := c.clientFiles()
	text, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}

func (c *certificates) clientFiles() zk.TLSFiles {
	pair := filepath.Join(c.dir, "client.pem")
	return zk.TLSFiles{CA: filepath.Join(c.dir, authority.CertFile), Cert: pair, Key: pair}
}

// settings returns the settings of a server. members is true if it has connections to other servers.
func (c *certificates) settings(id int, client ensemble.HostPort, members bool) config.TLS {
	family := func(f secure.Family) secure.Settings {
		s, err := secure.Parse(f, map[string]secure.Value{
			string(f) + "keyStore.location":   {Text: filepath.Join(c.dir, serverFile(id))},
			string(f) + "trustStore.location": {Text: filepath.Join(c.dir, authority.CertFile)},
		})
		if err != nil {
			panic(err) // the settings are constant
		}
		return s
	}
	return config.TLS{Client: client, Clients: family(secure.Clients), Quorum: members, Servers: family(secure.Servers)}
}

// remove removes the files. c may be nil.
func (c *certificates) remove() error {
	if c == nil {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// TLSConfig returns a configuration with which a client connects to an ensemble with Options.TLS, for
// zk.Options.TLS. It is a copy, which the caller may change. Without Options.TLS it is nil.
func (e *Ensemble) TLSConfig() *tls.Config {
	if e.certs == nil {
		return nil
	}
	return e.certs.client.Clone()
}

// TLSFiles names the PEM files with which a client connects to an ensemble with Options.TLS, for
// zk.Options.TLSFiles and for clients in other languages: the authority, and one file with the certificate and
// its key. Close removes the files. Without Options.TLS the names are empty.
func (e *Ensemble) TLSFiles() zk.TLSFiles {
	if e.certs == nil {
		return zk.TLSFiles{}
	}
	return e.certs.clientFiles()
}
