package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/replica"
	"bellwether/wire"
)

const (
	secretA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	secretB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// opens tries to resume a session with a password and reports whether it succeeded.
func (r *running) opens(id wire.SessionID, password []byte) bool {
	r.t.Helper()
	c := r.dial()
	c.handshake(wire.ConnectRequest{Session: id, Password: password, TimeoutMS: lastingMS, HasReadOnly: true})
	return c.session.Session == id
}

// TestSecretOfSessions shows that with a secret nobody can take over a session by its id,
// and that a secret is replaced step by step, on servers that are not restarted, without
// losing a session.
func TestSecretOfSessions(t *testing.T) {
	dir := t.TempDir()
	g := newTestEnsemble(t, 3, 0, false)
	file := func(id any) string { return filepath.Join(dir, fmt.Sprint(id)) }
	write := func(m *testServer, lines ...string) {
		t.Helper()
		if err := os.WriteFile(file(m.id), []byte("# secrets\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.change = func(c *config.Config) { c.Access.SessionSecretFile = file(c.Ensemble.ID) }
	for _, m := range g.servers {
		write(m, "zookeeper", secretA)
		g.start(m)
	}
	g.settled()
	from, to := g.servers[0], g.servers[1]
	old := from.connect()
	checksum := old.session.Session.Password()
	if string(old.session.Password) != string(checksum[:]) {
		t.Fatal("the first line does not make the password")
	}
	// Each step is applied to one server first: sessions can move in both directions.
	step := func(lines ...string) {
		t.Helper()
		for _, m := range g.servers {
			write(m, lines...)
			cfg := *m.config()
			m.Reload(&cfg)
			for _, at := range []*testServer{from, to, from} {
				c := at.dial()
				c.handshake(wire.ConnectRequest{Session: old.session.Session, Password: old.session.Password, TimeoutMS: lastingMS, HasReadOnly: true})
				if c.session.Session != old.session.Session {
					t.Fatalf("step %q, after server %v: the session is lost at server %v", lines, m.id, at.id)
				}
				old = c
			}
		}
	}
	step(secretA, "zookeeper")
	step(secretA)
	if from.opens(old.session.Session, checksum[:]) {
		t.Error("the session was taken over by its id")
	}
	step(secretA, secretB)
	step(secretB, secretA)
	before := replica.Secret{Key: secretA}.Password(old.session.Session)
	step(secretB)
	if to.opens(old.session.Session, before[:]) {
		t.Error("a secret that was removed still opens the session")
	}
	write(from, "short")
	cfg := *from.config()
	from.Reload(&cfg)
	if !from.opens(old.session.Session, old.session.Password) {
		t.Error("a file that cannot be read has replaced the secrets")
	}
}

// TestBadSecretFiles shows the errors for files that hold no secrets. No error shows a
// secret.
func TestBadSecretFiles(t *testing.T) {
	long := strings.Repeat("x", 40)
	for _, c := range []struct{ text, want string }{
		{"", "no secret in it"},
		{"# only a comment\n\n", "no secret in it"},
		{"hunter2", "line 1 has 7 characters"},
		{long + "\n\n" + long, "line 3 repeats line 1"},
		{"zookeeper\nzookeeper", "line 2 repeats line 1"},
		{strings.Repeat("y", secretFileMax+1), "is it another file?"},
	} {
		cfg := testConfig()
		cfg.Access.SessionSecretFile = filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(cfg.Access.SessionSecretFile, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Options{Config: cfg})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "sessionSecretFile") {
			t.Errorf("%.20q: %v, want %q", c.text, err, c.want)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "xxx") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
	cfg := testConfig()
	cfg.Access.SessionSecretFile = filepath.Join(t.TempDir(), "missing")
	if _, err := New(Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), cfg.Access.SessionSecretFile) ||
		!strings.HasSuffix(err.Error(), ": correct sessionSecretFile, or let the server's user read the file") {
		t.Errorf("a missing file: %v", err)
	}
}
