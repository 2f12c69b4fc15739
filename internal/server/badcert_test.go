package server

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/secure"
	"bellwether/wire"
)

// badPeer connects without a certificate that the servers of a test accept.
type badPeer struct {
	what   string
	tls    *tls.Config // nil: it sends plain text
	said   string      // what the log must say about it
	remedy string
}

// shows returns the configuration of a client that shows a certificate even if its authority is not one
// that the server has announced.
func (c *certs) shows(file string) *tls.Config {
	c.t.Helper()
	conf := c.client(file)
	pair := conf.Certificates[0]
	return &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
}

// revocable is an authority whose certificates name a revocation list.
type revocable struct {
	*certs
	url     string   // of the revocation list
	revoked *big.Int // the serial number in the list
}

// newRevocable makes an authority and serves its revocation list.
func newRevocable(t *testing.T) *revocable {
	k := &revocable{certs: newCerts(t), revoked: big.NewInt(7)}
	ca := k.authority()
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: k.revoked, RevocationTime: time.Now()}}}, ca.Leaf, ca.PrivateKey.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(list) }))
	t.Cleanup(at.Close)
	k.url = at.URL + "/list"
	return k
}

// issue is certs.issue for a certificate that names the revocation list.
func (k *revocable) issue(file string, changes ...func(*x509.Certificate)) {
	k.t.Helper()
	k.certs.issue(file, func(c *x509.Certificate) {
		c.CRLDistributionPoints = []string{k.url}
		for _, change := range changes {
			change(c)
		}
	})
}

// badPeers returns all kinds of bad peers.
func (k *revocable) badPeers() []badPeer {
	foreign := newCerts(k.t)
	foreign.issue("foreign.pem", func(*x509.Certificate) {})
	k.issueBy(nil, "self.pem", func(*x509.Certificate) {})
	k.issue("expired.pem", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	k.issue("early.pem", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	k.issue("revoked.pem", func(c *x509.Certificate) { c.SerialNumber = k.revoked })
	k.issue("other.pem", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} })
	k.issue("old.pem")
	old := k.shows("old.pem")
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	return []badPeer{
		{"a foreign authority", foreign.shows("foreign.pem"), `the certificate "CN=foreign.pem": its issuer "`, "add the certificate of"},
		{"signed by itself", k.shows("self.pem"), `the certificate "CN=self.pem": it is signed by itself and not trusted: `, "add it to"},
		{"expired", k.shows("expired.pem"), `the certificate "CN=expired.pem": it expired at `, "renew it"},
		{"not valid yet", k.shows("early.pem"), `the certificate "CN=early.pem": it is not valid before `, "compare the clocks"},
		{"revoked", k.shows("revoked.pem"), `the certificate "CN=revoked.pem": `, "replace it"},
		{"other names", k.shows("other.pem"), `the certificate "CN=other.pem": its names (other.example) are not those of the other end (127.0.0.1`, "clientHostnameVerification=false"},
		{"TLS 1.1", old, "no version of TLS is enabled at both ends: ", "enable the same version in enabledProtocols"},
		{"plain text", nil, "it does not speak TLS: ", "let it use TLS"},
	}
}

// refusedAt connects to an address as a bad peer does, sends a message, and fails the test unless the server
// ends the connection without an answer.
func (p badPeer) refusedAt(t *testing.T, address string, message []byte) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(eventTimeout))
	if p.tls != nil {
		nc = tls.Client(nc, p.tls)
	}
	_, err = nc.Write(message)
	answer, ended := io.ReadAll(nc)
	if len(answer) > 0 || os.IsTimeout(err) || os.IsTimeout(ended) {
		t.Errorf("%s: the answer is %x, %v, %v", p.what, answer, err, ended)
	}
}

// TestBadCertificates shows for each port with TLS of running servers, for clients and between servers, that
// a peer with a bad certificate is refused, that the log says once what was refused, whose certificate it was,
// from which address, and what to do, and that clients and the ensemble notice nothing.
func TestBadCertificates(t *testing.T) {
	k := newRevocable(t)
	k.issue("server.pem")
	k.issue("good.pem")
	g := newTestEnsemble(t, 3, 0, false)
	var log logBook
	g.book = &log
	g.change = func(c *config.Config) {
		c.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients, "crl=true", "clientHostnameVerification=true"),
			Quorum: true, Servers: k.settings(secure.Servers, "crl=true")}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	leader := g.settled()
	good := leader.dialTLS(leader.SecureAddr(), k.client("good.pem"))
	if good == nil {
		t.Fatal("a good client is refused")
	}
	good.create("/before", "")
	epoch := leader.Tree().LastZxid().Epoch()
	self, _ := g.members.Server(leader.id)
	ports := map[string]string{
		"a client was refused: ":                        leader.SecureAddr().String(),
		"a connection to the election port was refused": self.Addresses[0].Election(),
		"a connection to the quorum port was refused":   self.Addresses[0].Quorum(),
	}
	hello := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)})
	for what, address := range ports {
		before := len(refusals(&log, what))
		for i, p := range k.badPeers() {
			for range 2 {
				p.refusedAt(t, address, hello)
			}
			eventually(t, fmt.Sprint(what, p.what, " is logged"), func() bool { return len(refusals(&log, what)) > before+i })
			line := refusals(&log, what)[before+i]
			for _, want := range []string{p.said, p.remedy, "=127.0.0.1:"} {
				if !strings.Contains(line, want) {
					t.Errorf("%s%s: no %q in %s", what, p.what, want, line)
				}
			}
			good.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}, nil)
		}
	}
	good.create("/after", "")
	if now := g.settled(); now != leader || now.Tree().LastZxid().Epoch() != epoch {
		t.Errorf("server %d leads epoch %d, before server %d led epoch %d", now.id, now.Tree().LastZxid().Epoch(), leader.id, epoch)
	}
	for _, m := range g.servers {
		g.stopped(m)
	}
	for what := range ports {
		if lines := refusals(&log, what); len(lines) != 8 {
			t.Errorf("%d lines: %s", len(lines), strings.Join(lines, ""))
		}
	}
}

// refusals returns the lines of a log that say that something was refused, without summaries of repetitions.
func refusals(log *logBook, what string) []string {
	lines := slices.Collect(strings.Lines(strings.ReplaceAll(log.String(), `\"`, `"`)))
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, what) || strings.Contains(line, "repeated: ") })
}
