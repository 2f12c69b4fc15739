package authority

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// Subject is a server or client that gets a certificate.
type Subject struct {
	// File is the name of its file in the folder.
	File string
	// Name is the common name: what an operator reads, and the x509 identity of a client.
	Name string
	// Hosts are the DNS names and IP addresses of a server. Clients and servers compare
	// them with the address that they dialled. A client has no hosts.
	Hosts []string
}

// Plan holds what Init makes.
type Plan struct {
	Dir      string // the folder; it is created if it is missing
	Subjects []Subject
	Days     int // how long a certificate is valid; 0: 397
	Now      time.Time
}

const daysDefault = 397 // a year, and a month to renew the certificate

// Status says what Init did with a file.
type Status string

// What Init did with a file.
const (
	Created Status = "created" // the certificate was missing
	Kept    Status = "kept"    // the certificate is still good
	Renewed Status = "renewed" // the certificate and its key are new, because the old one expires soon or has other names
)

// File is a file that Init made or kept.
type File struct {
	Path     string
	Name     string // name of the subject
	Status   Status
	NotAfter time.Time
}

// Init makes the authority of a plan and its certificates. If the authority exists, it is
// kept. A certificate is kept while more than a third of its validity is left and its names
// are those of the plan. The first File is the authority's certificate. If Init fails,
// every file is as it was or complete, and Init can be repeated.
func Init(p Plan) ([]File, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	a, status, err := p.authority()
	if err != nil {
		return nil, err
	}
	files := []File{{filepath.Join(p.Dir, CertFile), a.cert.Subject.CommonName, status, a.cert.NotAfter}}
	if !p.Now.Before(a.cert.NotAfter) {
		return nil, fmt.Errorf("the authority in %s expired on %s: make a new one in another folder, and let servers and clients trust both until all have new certificates",
			p.Dir, a.cert.NotAfter.UTC().Format(time.DateOnly))
	}
	for _, s := range p.Subjects {
		f, err := p.subject(a, s)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// authority opens or creates the authority.
func (p *Plan) authority() (*Authority, Status, error) {
	a, err := Open(p.Dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return a, Kept, err
	}
	a, err = Create(p.Dir, "Bellwether private authority of "+p.Now.UTC().Format(time.DateOnly), p.Now)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: %s is missing beside it: restore that file; only if this authority has issued nothing, remove the key and start again", err, CertFile)
	}
	return a, Created, err
}

// subject keeps, renews or creates the certificate of a subject.
func (p *Plan) subject(a *Authority, s Subject) (File, error) {
	f := File{Path: filepath.Join(p.Dir, s.File), Name: s.Name, Status: Renewed}
	old, err := readCert(f.Path)
	if err == nil {
		_, err = tls.LoadX509KeyPair(f.Path, f.Path) // the file must also hold the key of the certificate
		if err != nil {
			err = fmt.Errorf("%s: the key does not belong to the certificate, or is missing: remove the file to have both made anew (%w)", f.Path, err)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Status = Created
	case err != nil:
		return f, err
	case !a.issued(old, s):
	case p.Now.Add(old.NotAfter.Sub(old.NotBefore) / 3).Before(old.NotAfter):
		f.Status, f.NotAfter = Kept, old.NotAfter
		return f, nil
	}
	cert, err := a.issue(s.File, s, p.Now, cmp.Or(p.Days, daysDefault))
	if err != nil {
		return f, err
	}
	f.NotAfter = cert.NotAfter
	return f, nil
}

// check checks the plan before anything is written.
func (p *Plan) check() error {
	if p.Days < 0 || p.Days > authorityDays {
		return fmt.Errorf("a validity of %d days: use 1 to %d", p.Days, authorityDays)
	}
	files := map[string]string{CertFile: "the authority", KeyFile: "the authority"}
	for _, s := range p.Subjects {
		switch {
		case s.File == "" || filepath.Base(s.File) != s.File || strings.HasPrefix(s.File, "."):
			return fmt.Errorf("the name %q cannot be part of a file name: use letters, digits, dots and dashes", s.Name)
		case files[s.File] != "":
			return fmt.Errorf("%s and %s would share the file %s: rename one", files[s.File], s.Name, s.File)
		case s.Name == "" || len(s.Name) > nameMax:
			return fmt.Errorf("the name %q has %d bytes: a certificate takes 1 to %d", s.Name, len(s.Name), nameMax)
		}
		files[s.File] = s.Name
		for _, host := range s.Hosts {
			if err := checkHost(host); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// nameMax is the limit of X.509 for a common name.
const nameMax = 64

// checkHost checks that a certificate can name a host.
func checkHost(host string) error {
	ip := net.ParseIP(host)
	switch {
	case ip != nil && ip.IsUnspecified():
		return fmt.Errorf("the address %s cannot be reached from other machines: give the one in the server line of the other members", host)
	case ip != nil:
		return nil
	case host == "" || len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*") != "":
		return fmt.Errorf("%q is neither a DNS name nor an IP address", host)
	}
	return nil
}
