package interop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/portblock"
	"bellwether/interop/target"
	"bellwether/zk"
)

// hardenedEnsemble is three servers with the lines of docs/security.md.
type hardenedEnsemble struct {
	dir     string   // has a folder for each server, and the folders of the authorities "tls" and "other"
	clients []string // the ports for clients
	links   []string // the election ports, which every server opens
}

// TestHardenedEnsemble starts an ensemble with exactly the lines of docs/security.md, except for its
// folder and its port. A client with a certificate of the authority is served by each server; no
// other client gets a session, no election port accepts a stranger, and changes are audited.
func TestHardenedEnsemble(t *testing.T) {
	h := startHardened(t, hardenedLines(t))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i, at := range h.clients {
		c, err := zk.Connect(ctx, at, h.client("tls", "app"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Create(ctx, fmt.Sprintf("/znode%d", i), nil); err != nil {
			t.Error(err)
		}
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		log, err := os.ReadFile(filepath.Join(h.dir, strconv.Itoa(i+1), "data", "zookeeper_audit.log"))
		if err != nil || !strings.Contains(string(log), "operation=create") {
			t.Errorf("audit log of server %d: %q, %v", i+1, log, err)
		}
	}
	trust := &zk.TLSFiles{CA: filepath.Join(h.dir, "tls", authority.CertFile)}
	for who, opt := range map[string]*zk.Options{"a client without TLS": {}, "a client without a certificate": {TLSFiles: trust},
		"a client of another authority": h.client("other", "app")} {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		c, err := zk.Connect(short, h.clients[0], opt)
		cancel()
		if err == nil {
			t.Errorf("%s is connected", who)
			c.Detach()
		}
	}
	for _, port := range h.links {
		h.refuse(t, port)
	}
}

// hardenedLines returns the lines of zoo.cfg on the page.
func hardenedLines(t *testing.T) string {
	t.Helper()
	root, err := target.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A hardened ensemble\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for line := range strings.Lines(section) {
		if line, ok := strings.CutPrefix(line, "    "); ok && strings.Contains(line, "=") && !strings.Contains(line, "(") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) != 10 {
		t.Fatalf("the page has %d lines of zoo.cfg, want 10: %q", len(lines), lines)
	}
	return strings.Join(lines, "\n") + "\n"
}

// startHardened writes the files of three servers, starts them and waits until one leads.
func startHardened(t *testing.T, lines string) *hardenedEnsemble {
	t.Helper()
	h := &hardenedEnsemble{dir: t.TempDir()}
	ports, err := portblock.Free("127.0.0.1", 9)
	if err != nil {
		t.Fatal(err)
	}
	members := ""
	var servers []authority.Subject
	for id := 1; id <= 3; id++ {
		mine := ports[3*id-3 : 3*id]
		h.clients = append(h.clients, net.JoinHostPort("127.0.0.1", strconv.Itoa(mine[0])))
		h.links = append(h.links, net.JoinHostPort("127.0.0.1", strconv.Itoa(mine[2])))
		members += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", id, mine[1], mine[2])
		servers = append(servers, authority.Subject{File: fmt.Sprintf("%d.pem", id), Name: fmt.Sprintf("server.%d", id), Hosts: []string{"127.0.0.1"}})
	}
	for _, name := range []string{"tls", "other"} {
		subjects := append(servers, authority.Subject{File: "app.pem", Name: "app"})
		if _, err := authority.Init(authority.Plan{Dir: filepath.Join(h.dir, name), Now: time.Now(), Subjects: subjects}); err != nil {
			t.Fatal(err)
		}
	}
	for id := 1; id <= 3; id++ {
		_, port, _ := net.SplitHostPort(h.clients[id-1])
		own := strings.NewReplacer("/etc/bellwether/", h.folder(id)+"/", "=2281", "="+port).Replace(lines)
		h.start(t, id, "tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir="+h.folder(id)+"/data\nsecureClientPortAddress=127.0.0.1\n"+own+members)
	}
	return h
}

func (h *hardenedEnsemble) folder(id int) string { return filepath.Join(h.dir, strconv.Itoa(id)) }

// client returns the options of a client with a certificate of an authority. It trusts the servers.
func (h *hardenedEnsemble) client(authorityDir, name string) *zk.Options {
	pem := filepath.Join(h.dir, authorityDir, name+".pem")
	return &zk.Options{TLSFiles: &zk.TLSFiles{CA: filepath.Join(h.dir, "tls", authority.CertFile), Cert: pem, Key: pem}}
}

// start writes the files of a server and starts it. It ends with the test.
func (h *hardenedEnsemble) start(t *testing.T, id int, config string) {
	t.Helper()
	at := h.folder(id)
	if err := os.MkdirAll(filepath.Join(at, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{authority.CertFile: "ca.pem", strconv.Itoa(id) + ".pem": "server.pem"} {
		text, err := os.ReadFile(filepath.Join(h.dir, "tls", from))
		if err != nil {
			t.Fatal(err)
		}
		fileWith(t, at, to, string(text))
	}
	fileWith(t, at, "session-secret", strings.Repeat("s", 64)+"\n")
	fileWith(t, filepath.Join(at, "data"), "myid", strconv.Itoa(id)+"\n")
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.Command(binary, "serve", "--config", fileWith(t, at, "zoo.cfg", config))
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // the error says that the process was killed
		if t.Failed() {
			t.Logf("server %d:\n%s", id, &log)
		}
	})
}

// refuse checks that an election port ends a connection without TLS, and one with TLS that
// shows no certificate.
func (h *hardenedEnsemble) refuse(t *testing.T, at string) {
	t.Helper()
	plain, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	h.ended(t, plain, at+" without TLS")
	secure, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return // the server refused the connection in the handshake
	}
	defer secure.Close()
	h.ended(t, secure, at+" without a certificate")
}

// ended waits until the server has ended a connection.
func (h *hardenedEnsemble) ended(t *testing.T, c net.Conn, what string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection stays open", what)
	}
}
