package web

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/internal/authority"
)

const token = "0123456789abcdef-alice"

// withTLS returns lines that make the port use the certificates of dir.
func withTLS(dir string, more ...string) []string {
	return append([]string{"ssl.quorum.keyStore.location=" + filepath.Join(dir, "server.pem"),
		"ssl.quorum.trustStore.location=" + filepath.Join(dir, authority.CertFile)}, more...)
}

// inTLS returns the address of the port with https.
func inTLS(p *rig) string { return "https://" + p.Addr().String() + "/" }

func inPlain(p *rig) string { return "http://" + p.Addr().String() + "/" }

// TestForceHTTPS shows that a port with admin.forceHttps answers only over TLS, with the header that tells
// browsers so.
func TestForceHTTPS(t *testing.T) {
	dir := certificates(t)
	p := open(t, load(t, withTLS(dir, "admin.forceHttps=true")...), plugged)
	status, text, h := do(t, clientOf(t, dir, ""), "GET", inTLS(p)+"commands/ruok", "")
	if status != 200 || !strings.Contains(text, `"error" : null`) || h.Get("Strict-Transport-Security") != "max-age=86400; includeSubDomains" {
		t.Errorf("%d %s %v", status, text, h)
	}
	if status, text, _ := get(t, inPlain(p)+"commands/ruok"); status != 400 {
		t.Errorf("in plain text: %d %s", status, text)
	}
	if !strings.HasPrefix(p.URL(), "https://") {
		t.Errorf("URL %s", p.URL())
	}
}

// TestUnifiedPort shows that a port with admin.portUnification answers both HTTP and HTTPS.
func TestUnifiedPort(t *testing.T) {
	dir := certificates(t)
	p := open(t, load(t, withTLS(dir, "admin.portUnification=true")...), plugged)
	if status, text, h := get(t, inPlain(p)+"v1/x"); status != 200 || text != `loopback=true tls=false operator="" change=false` || h.Get("Strict-Transport-Security") != "" {
		t.Errorf("in plain text: %d %s", status, text)
	}
	if status, text, _ := do(t, clientOf(t, dir, ""), "GET", inTLS(p)+"v1/x", ""); status != 200 || text != `loopback=true tls=true operator="" change=false` {
		t.Errorf("over TLS: %d %s", status, text)
	}
}

// TestNeedClientAuth shows that a port with admin.needClientAuth refuses clients without a certificate of the
// authority.
func TestNeedClientAuth(t *testing.T) {
	dir, foreign := certificates(t, "alice"), certificates(t, "mallory")
	p := open(t, load(t, withTLS(dir, "admin.forceHttps=true", "admin.needClientAuth=true")...), nil)
	if status, _, _ := do(t, clientOf(t, dir, "alice"), "GET", inTLS(p)+"livez", ""); status != 200 {
		t.Errorf("with a certificate: %d", status)
	}
	for _, c := range []*http.Client{clientOf(t, dir, ""), clientOf(t, foreign, "mallory")} {
		if r, err := c.Get(inTLS(p) + "livez"); err == nil {
			r.Body.Close()
			t.Errorf("status %d without a good certificate", r.StatusCode)
		}
	}
}

// TestOperatorsCertificate shows that an operator's certificate signs in, that a client with another certificate of
// the authority sees what everybody sees, and that a client needs no certificate.
func TestOperatorsCertificate(t *testing.T) {
	dir := certificates(t, "alice", "bob")
	file := filepath.Join(dir, "operators")
	if err := os.WriteFile(file, []byte("Alice CN=alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, load(t, withTLS(dir, "admin.forceHttps=true", "admin.certificateFile="+file)...), plugged)
	for name, want := range map[string]string{"alice": `operator="Alice" change=true`, "bob": `operator="" change=false`, "": `operator="" change=false`} {
		if status, text, _ := do(t, clientOf(t, dir, name), "GET", inTLS(p)+"v1/x", ""); status != 200 || !strings.HasSuffix(text, want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	foreign := clientOf(t, certificates(t, "alice"), "alice")
	if r, err := foreign.Get(inTLS(p) + "v1/x"); err == nil {
		r.Body.Close()
		t.Errorf("a certificate of another authority: %d", r.StatusCode)
	}
}

// TestPageOfTheSignIn shows that a browser on another machine gets over TLS, before it has signed in, the files that the
// page of the sign-in loads and the choice of the theme, and nothing else of the page.
func TestPageOfTheSignIn(t *testing.T) {
	dir := certificates(t)
	file := filepath.Join(dir, "tokens")
	if err := os.WriteFile(file, []byte("alice "+token), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, load(t, withTLS(dir, "admin.portUnification=true", "admin.tokenFile="+file)...), plugged)
	c := clientOf(t, dir, "")
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	remote := []string{"X-Forwarded-For", "192.0.2.1"}
	for path, want := range map[string]int{"assets/style.css": 200, "theme": 200, "": 303, "tree": 303, "signin": 200} {
		if status, text, _ := do(t, c, "GET", inTLS(p)+path, "", remote...); status != want {
			t.Errorf("/%s: %d %s", path, status, text)
		}
	}
	for _, path := range []string{"", "assets/style.css", "signin"} {
		if status, text, _ := do(t, http.DefaultClient, "GET", inPlain(p)+path, "", remote...); status != 403 || !strings.Contains(text, "https://") {
			t.Errorf("/%s in plain text: %d %s", path, status, text)
		}
	}
	if status, _, _ := do(t, c, "POST", inTLS(p)+"theme", "", append(remote, "Origin", "https://evil.example")...); status != 403 {
		t.Errorf("a form of another site: %d", status)
	}
}

// TestReloadOfThePort shows that SIGHUP's Reload reads tokens and certificates again.
func TestReloadOfThePort(t *testing.T) {
	dir := certificates(t)
	file := filepath.Join(dir, "tokens")
	if err := os.WriteFile(file, []byte("alice "+token), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, load(t, withTLS(dir, "admin.forceHttps=true", "admin.tokenFile="+file)...), plugged)
	serial := func() string {
		c := clientOf(t, dir, "")
		r, err := c.Get(inTLS(p) + "livez")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		return r.TLS.PeerCertificates[0].SerialNumber.String()
	}
	bearer := func(text string) int {
		status, _, _ := do(t, clientOf(t, dir, ""), "GET", inTLS(p)+"v1/x", "", "Authorization", "Bearer "+text)
		return status
	}
	before := serial()
	if bearer(token) != 200 || bearer(token+"2") != 401 {
		t.Error("the tokens at the start")
	}
	if err := os.WriteFile(file, []byte("alice "+token+"2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Init(authority.Plan{Dir: dir, Subjects: []authority.Subject{{File: "server.pem", Name: "server", Hosts: []string{"127.0.0.1"}}}, Now: time.Now().Add(390 * 24 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	p.Reload()
	if bearer(token) != 401 || bearer(token+"2") != 200 {
		t.Error("the tokens after the reload")
	}
	if after := serial(); after == before {
		t.Error("the certificate is the old one")
	}
}

// TestHTTPVersions shows that HTTP/2 is offered only with admin.httpVersion=20.
func TestHTTPVersions(t *testing.T) {
	dir := certificates(t)
	for version, want := range map[string]string{"11": "HTTP/1.1", "20": "HTTP/2.0"} {
		p := open(t, load(t, withTLS(dir, "admin.forceHttps=true", "admin.httpVersion="+version)...), nil)
		c := clientOf(t, dir, "")
		c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
		r, err := c.Get(inTLS(p) + "commands/ruok")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.Proto != want || r.StatusCode != 200 {
			t.Errorf("%s: %s %d", version, r.Proto, r.StatusCode)
		}
		c.CloseIdleConnections()
		p.stop()
	}
}

// TestSilentConnections shows that connections that send nothing do not keep others from a unified port.
func TestSilentConnections(t *testing.T) {
	dir := certificates(t)
	p := open(t, load(t, withTLS(dir, "admin.portUnification=true", "admin.maxConnections=3")...), nil)
	for range 10 {
		dial(t, p)
	}
	if status, _, _ := get(t, inPlain(p)+"livez"); status != 200 {
		t.Errorf("status %d", status)
	}
}
