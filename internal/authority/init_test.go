package authority

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// plan is a plan for two servers and a client.
func plan(t *testing.T) Plan {
	return Plan{Dir: filepath.Join(t.TempDir(), "tls"), Now: now, Subjects: []Subject{
		{File: "server.1.pem", Name: "server.1", Hosts: []string{"zk1.example", "10.0.0.1"}},
		{File: "server.2.pem", Name: "server.2", Hosts: []string{"zk2.example", "::1"}},
		{File: "client-app.pem", Name: "app"},
	}}
}

// initialise calls Init and returns what it did with each file, by base name.
func initialise(t *testing.T, p Plan) map[string]Status {
	t.Helper()
	files, err := Init(p)
	if err != nil {
		t.Fatal(err)
	}
	did := map[string]Status{}
	for _, f := range files {
		did[filepath.Base(f.Path)] = f.Status
		if cert, err := readCert(f.Path); err != nil || !cert.NotAfter.Equal(f.NotAfter) {
			t.Errorf("%s ends %v, told %v (%v)", f.Path, cert.NotAfter, f.NotAfter, err)
		}
	}
	return did
}

// TestCertificatesConnect shows that a server and a client with certificates of one
// authority can connect, and that a certificate serves only the names it was issued for.
func TestCertificatesConnect(t *testing.T) {
	p := plan(t)
	initialise(t, p)
	roots := x509.NewCertPool()
	b, err := os.ReadFile(filepath.Join(p.Dir, CertFile))
	if err != nil || !roots.AppendCertsFromPEM(b) {
		t.Fatal("the authority's certificate cannot be read", err)
	}
	load := func(file string) []tls.Certificate {
		file = filepath.Join(p.Dir, file)
		c, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	clock := func() time.Time { return now }
	for _, c := range []struct{ server, client, name, want string }{
		{"server.1.pem", "client-app.pem", "zk1.example", ""},
		{"server.1.pem", "client-app.pem", "10.0.0.1", ""},
		{"server.1.pem", "server.2.pem", "zk1.example", ""}, // servers dial each other
		{"server.1.pem", "client-app.pem", "zk2.example", "not zk2.example"},
		{"server.2.pem", "client-app.pem", "10.0.0.1", "10.0.0.1"},
		{"client-app.pem", "client-app.pem", "zk1.example", "zk1.example"}, // a client cannot act as a server
	} {
		near, far := net.Pipe()
		server := tls.Server(far, &tls.Config{Certificates: load(c.server), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, Time: clock})
		client := tls.Client(near, &tls.Config{Certificates: load(c.client), RootCAs: roots, ServerName: c.name, Time: clock})
		accepted := make(chan error, 1)
		go func() { accepted <- server.Handshake(); far.Close() }()
		err := client.Handshake()
		near.Close()
		if other := <-accepted; c.want == "" {
			err = errors.Join(err, other)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s, client %s: %v, want %q", c.server, c.name, c.client, err, c.want)
		}
	}
}

// TestInitKeepsWhatIsGood shows that a repeated Init renews a certificate whose hosts have changed or of which less
// than a third of the validity is left, and keeps the others.
func TestInitKeepsWhatIsGood(t *testing.T) {
	p := plan(t)
	if did := initialise(t, p); did[CertFile] != Created || did["server.1.pem"] != Created || len(did) != 4 {
		t.Errorf("first: %v", did)
	}
	before, err := os.ReadFile(filepath.Join(p.Dir, "server.1.pem"))
	if err != nil {
		t.Fatal(err)
	}
	p.Subjects[1].Hosts = []string{"zk2.elsewhere.example"}
	p.Subjects = append(p.Subjects, Subject{File: "client-new.pem", Name: "new"})
	want := map[string]Status{CertFile: Kept, "server.1.pem": Kept, "server.2.pem": Renewed, "client-app.pem": Kept, "client-new.pem": Created}
	for name, status := range initialise(t, p) {
		if status != want[name] {
			t.Errorf("%s: %s, want %s", name, status, want[name])
		}
	}
	if after, _ := os.ReadFile(filepath.Join(p.Dir, "server.1.pem")); !bytes.Equal(before, after) {
		t.Error("a certificate that is kept was written again")
	}
	p.Now = now.AddDate(0, 0, daysDefault*2/3+1)
	for name, status := range initialise(t, p) {
		if want := map[bool]Status{true: Kept, false: Renewed}[name == CertFile]; status != want {
			t.Errorf("after two thirds of its validity, %s: %s, want %s", name, status, want)
		}
	}
}

// TestPrivateFiles shows that only the owner can read a private key, and that no temporary
// file stays.
func TestPrivateFiles(t *testing.T) {
	p := plan(t)
	initialise(t, p)
	var names []string
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name())
		if want := map[bool]fs.FileMode{true: 0o644, false: 0o600}[e.Name() == CertFile]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", e.Name(), info.Mode(), want)
		}
	}
	if want := []string{KeyFile, CertFile, "client-app.pem", "server.1.pem", "server.2.pem"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}

// TestEndOfTheAuthority shows that no certificate outlives its authority, and that an
// authority that has expired issues nothing.
func TestEndOfTheAuthority(t *testing.T) {
	p := plan(t)
	initialise(t, p)
	a, err := Open(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	p.Now = a.Certificate().NotAfter.AddDate(0, 0, -1)
	files, err := Init(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.NotAfter.After(a.Certificate().NotAfter) {
			t.Errorf("%s ends after its authority", f.Path)
		}
	}
	p.Now = a.Certificate().NotAfter
	if _, err := Init(p); err == nil || !strings.Contains(err.Error(), "expired on") {
		t.Errorf("an expired authority: %v", err)
	}
}

// TestBadPlans shows the errors for plans and folders that cannot be used. None of them
// changes a file.
func TestBadPlans(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(t *testing.T, p *Plan)
		want string
	}{
		{"an address that nobody dials", func(t *testing.T, p *Plan) { p.Subjects[0].Hosts[1] = "0.0.0.0" }, "server.1: the address 0.0.0.0"},
		{"a name with a space", func(t *testing.T, p *Plan) { p.Subjects[0].Hosts[0] = "zk 1" }, `"zk 1" is neither`},
		{"a name with a folder", func(t *testing.T, p *Plan) { p.Subjects[2].File = "../app.pem" }, "cannot be part of a file name"},
		{"the file of the authority", func(t *testing.T, p *Plan) { p.Subjects[2].File = KeyFile }, "would share the file ca-key.pem"},
		{"two of one name", func(t *testing.T, p *Plan) { p.Subjects[1] = p.Subjects[0] }, "would share the file server.1.pem"},
		{"a long name", func(t *testing.T, p *Plan) { p.Subjects[2].Name = strings.Repeat("a", 65) }, "65 bytes"},
		{"no name", func(t *testing.T, p *Plan) { p.Subjects[2].Name = "" }, "0 bytes"},
		{"too many days", func(t *testing.T, p *Plan) { p.Days = 100000 }, "100000 days"},
		{"no key", func(t *testing.T, p *Plan) { os.Remove(filepath.Join(p.Dir, KeyFile)) }, "put the key back"},
		{"no certificate", func(t *testing.T, p *Plan) { os.Remove(filepath.Join(p.Dir, CertFile)) }, "restore that file"},
		{"another key", func(t *testing.T, p *Plan) {
			b, err := os.ReadFile(filepath.Join(p.Dir, "server.1.pem"))
			if err == nil {
				err = os.WriteFile(filepath.Join(p.Dir, KeyFile), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "does not belong to ca.pem"},
		{"a damaged key", func(t *testing.T, p *Plan) { os.WriteFile(filepath.Join(p.Dir, KeyFile), []byte("x"), 0o600) }, "no PEM block PRIVATE KEY"},
		{"a damaged certificate", func(t *testing.T, p *Plan) {
			os.WriteFile(filepath.Join(p.Dir, "server.1.pem"), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600)
		}, "server.1.pem: x509"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan(t)
			initialise(t, p)
			c.edit(t, &p)
			before := contents(t, p.Dir)
			if _, err := Init(p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if after := contents(t, p.Dir); before != after {
				t.Error("a file has changed")
			}
		})
	}
}

// contents returns the names and contents of the files of a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(e.Name() + "\n" + string(b))
	}
	return all.String()
}
