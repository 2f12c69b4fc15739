package secure

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ocsp"
)

// crlOf makes a revocation list of an authority.
func crlOf(t testing.TB, by *signed, change func(*x509.RevocationList), revoked ...*signed) []byte {
	t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: noon.Add(-time.Hour), NextUpdate: noon.Add(time.Hour)}
	for _, r := range revoked {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: r.cert.SerialNumber, RevocationTime: noon.Add(-2 * time.Hour)})
	}
	if change != nil {
		change(l)
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, by.cert, by.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// places is a server that publishes revocation lists and answers OCSP requests.
type places struct {
	*httptest.Server
	answers  sync.Map // path to func(request []byte) []byte
	requests atomic.Int64
}

func newPlaces(t testing.TB) *places {
	p := new(places)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		answer, ok := p.answers.Load(r.URL.Path)
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(answer.(func([]byte) []byte)(body))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *places) serve(path string, answer []byte) {
	p.answers.Store(path, func([]byte) []byte { return answer })
}

// checkOf checks a certificate as the server that has the store does.
func checkOf(s *Store, c *signed) error {
	var certs []*x509.Certificate
	for ; c != nil && c.from != nil; c = c.from {
		certs = append(certs, c.cert)
	}
	return s.loaded.Load().verifier.check(context.Background(), tls.ConnectionState{PeerCertificates: certs}, end{address: loopback}, false)
}

// TestRevocationLists shows which certificates pass with ssl.crl.
func TestRevocationLists(t *testing.T) {
	p := newPlaces(t)
	ca, other := authority(t, "ca"), authority(t, "other")
	at := func(urls ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.CRLDistributionPoints = urls
			hosts("127.0.0.1")(c)
		}
	}
	file := filepath.Join(t.TempDir(), "list.crl")
	good, revoked := ca.issue(t, "good", at(p.URL+"/list")), ca.issue(t, "revoked", at(p.URL+"/list"))
	between := ca.issue(t, "between", func(c *x509.Certificate) { c.IsCA = true; c.CRLDistributionPoints = []string{p.URL + "/list"} })
	p.serve("/list", crlOf(t, ca, nil, revoked))
	p.serve("/between", crlOf(t, between, nil))
	p.serve("/old", crlOf(t, ca, func(l *x509.RevocationList) { l.NextUpdate = noon.Add(-time.Hour / 2) }))
	p.serve("/early", crlOf(t, ca, func(l *x509.RevocationList) { l.ThisUpdate = noon.Add(time.Hour / 2) }))
	p.serve("/other", crlOf(t, other, nil))
	forged := authority(t, "ca")
	p.serve("/forged", crlOf(t, forged, nil))
	p.serve("/junk", []byte("junk"))
	extension := func(id asn1.ObjectIdentifier, value any) func(*x509.RevocationList) {
		der, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return func(l *x509.RevocationList) {
			l.ExtraExtensions = append(l.ExtraExtensions, pkix.Extension{Id: id, Critical: true, Value: der})
		}
	}
	p.serve("/authorities", crlOf(t, ca, extension(oidScope, struct {
		Only bool `asn1:"tag:2"`
	}{true})))
	p.serve("/users", crlOf(t, ca, extension(oidScope, struct {
		Only bool `asn1:"tag:1"`
	}{true})))
	p.serve("/delta", crlOf(t, ca, extension(asn1.ObjectIdentifier{2, 5, 29, 27}, 1)))
	if err := os.WriteFile(file, crlOf(t, ca, nil, revoked), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, Servers, good, ca, "crl", "true")
	for _, c := range []struct {
		what string
		cert *signed
		want string
	}{
		{"good", good, ""},
		{"revoked", revoked, `127.0.0.1: the certificate "CN=revoked": "CN=revoked" was revoked at 2026-06-01T10:00:00Z: replace it`},
		{"good below another authority", between.issue(t, "leaf", at(p.URL+"/between")), ""},
		{"no list", ca.issue(t, "none", at()), "the certificate names no revocation list: let its authority publish a valid list or answer at an address that the certificate names"},
		{"missing", ca.issue(t, "x", at(p.URL+"/missing")), "/missing: the server answers 404 Not Found"},
		{"missing, then there", ca.issue(t, "x", at(p.URL+"/missing", p.URL+"/list")), ""},
		{"junk", ca.issue(t, "x", at(p.URL+"/junk")), "not a revocation list"},
		{"old", ca.issue(t, "x", at(p.URL+"/old")), "the list is out of date"},
		{"early", ca.issue(t, "x", at(p.URL+"/early")), "the list is out of date"},
		{"other authority", ca.issue(t, "x", at(p.URL+"/other")), `another authority issued the list: "CN=other"`},
		{"forged", ca.issue(t, "x", at(p.URL+"/forged")), "the signature of the list is wrong"},
		{"of authorities", ca.issue(t, "x", at(p.URL+"/authorities")), "the list does not cover certificates of this kind"},
		{"of users", ca.issue(t, "x", at(p.URL+"/users")), ""},
		{"of changes", ca.issue(t, "x", at(p.URL+"/delta")), "the list has the extension 2.5.29.27, which is not supported"},
		{"file", ca.issue(t, "x", at("file://"+file)), ""},
		{"no file", ca.issue(t, "x", at("file:///dev/zero")), "not a file"},
		{"two places", ca.issue(t, "x", at(p.URL+"/missing", "file:///none.crl")), "404 Not Found; file:///none.crl: stat /none.crl: no such file or directory: let"},
		{"ldap", ca.issue(t, "x", at("ldap://localhost/x")), `lists by "ldap" are not supported: use http, https or file`},
	} {
		wants(t, c.what, checkOf(s, c.cert), c.want)
	}
	before := p.requests.Load()
	wants(t, "again", checkOf(s, good), "")
	wants(t, "missing again", checkOf(s, ca.issue(t, "x", at(p.URL+"/missing"))), "404")
	if n := p.requests.Load() - before; n != 0 {
		t.Errorf("%d requests for what is known", n)
	}

	revokedBetween := ca.issue(t, "bad authority", func(c *x509.Certificate) { c.IsCA = true; c.CRLDistributionPoints = []string{p.URL + "/list2"} })
	p.serve("/list2", crlOf(t, ca, nil, revokedBetween))
	wants(t, "authority revoked", checkOf(s, revokedBetween.issue(t, "leaf", at(p.URL+"/between"))), `whether "CN=leaf"`)
	p.serve("/between2", crlOf(t, revokedBetween, nil))
	wants(t, "authority revoked", checkOf(s, revokedBetween.issue(t, "leaf", at(p.URL+"/between2"))), `"CN=bad authority" was revoked`)
}

// TestListsAfterReload shows that a list is loaded again at once after ReloadNow, as an operator who has revoked
// a certificate expects, and not after Reload, which a timer calls. A list that cannot be loaded stays in use.
func TestListsAfterReload(t *testing.T) {
	p := newPlaces(t)
	ca := authority(t, "ca")
	at := func(c *x509.Certificate) {
		c.CRLDistributionPoints = []string{p.URL + "/list"}
		hosts("127.0.0.1")(c)
	}
	one := ca.issue(t, "one", at)
	p.serve("/list", crlOf(t, ca, nil))
	s := openStore(t, Servers, one, ca, "crl", "true")
	wants(t, "before", checkOf(s, one), "")
	p.serve("/list", crlOf(t, ca, nil, one))
	if _, err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	wants(t, "after Reload", checkOf(s, one), "")
	if _, err := s.ReloadNow(); err != nil {
		t.Fatal(err)
	}
	wants(t, "after ReloadNow", checkOf(s, one), `"CN=one" was revoked`)
	p.answers.Delete("/list")
	if _, err := s.ReloadNow(); err != nil {
		t.Fatal(err)
	}
	wants(t, "after ReloadNow without the list", checkOf(s, one), `"CN=one" was revoked`)
}

// TestLargeListIsRefused shows the limit of a revocation list.
func TestLargeListIsRefused(t *testing.T) {
	p := newPlaces(t)
	p.serve("/", make([]byte, crlMax+1))
	_, err := newRevocation(atNoon).fetchList(t.Context(), p.URL+"/")
	wants(t, "large list", err, "more than 16777216 bytes")
}

// TestOCSP shows which certificates pass with ssl.ocsp.
func TestOCSP(t *testing.T) {
	p := newPlaces(t)
	ca := authority(t, "ca")
	delegate := ca.issue(t, "delegate", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning} })
	stranger := ca.issue(t, "stranger", nil)
	answer := func(status int, by *signed, change func(*ocsp.Response)) func([]byte) []byte {
		return func(request []byte) []byte {
			q, err := ocsp.ParseRequest(request)
			if err != nil {
				t.Error(err)
				return nil
			}
			r := ocsp.Response{Status: status, SerialNumber: q.SerialNumber, ThisUpdate: noon.Add(-time.Hour), NextUpdate: noon.Add(time.Hour), RevokedAt: noon.Add(-2 * time.Hour), IssuerHash: crypto.SHA1}
			if by != ca {
				r.Certificate = by.cert
			}
			if change != nil {
				change(&r)
			}
			der, err := ocsp.CreateResponse(ca.cert, by.cert, r, by.key)
			if err != nil {
				t.Error(err)
			}
			return der
		}
	}
	p.answers.Store("/good", answer(ocsp.Good, ca, nil))
	p.answers.Store("/delegate", answer(ocsp.Good, delegate, nil))
	p.answers.Store("/stranger", answer(ocsp.Good, stranger, nil))
	p.answers.Store("/revoked", answer(ocsp.Revoked, ca, nil))
	p.answers.Store("/unknown", answer(ocsp.Unknown, ca, nil))
	p.answers.Store("/old", answer(ocsp.Good, ca, func(r *ocsp.Response) { r.NextUpdate = noon.Add(-time.Hour / 2) }))
	p.answers.Store("/forged", answer(ocsp.Good, authority(t, "ca"), nil))
	p.answers.Store("/wrong", func(request []byte) []byte {
		return answer(ocsp.Good, ca, func(r *ocsp.Response) { r.SerialNumber = big.NewInt(999_999) })(request)
	})
	p.serve("/junk", []byte("junk"))
	p.serve("/list", crlOf(t, ca, nil))
	at := func(path string, lists ...string) *signed {
		return ca.issue(t, "leaf", func(c *x509.Certificate) {
			hosts("127.0.0.1")(c)
			if path != "" {
				c.OCSPServer = []string{p.URL + path}
			}
			c.CRLDistributionPoints = lists
		})
	}
	s := openStore(t, Servers, at("/good"), ca, "ocsp", "true")
	for _, c := range []struct {
		what string
		cert *signed
		want string
	}{
		{"good", at("/good"), ""},
		{"good by a delegate", at("/delegate"), ""},
		{"by one who may not answer", at("/stranger"), `the answer is signed by "CN=stranger", which may not sign it`},
		{"revoked", at("/revoked"), `"CN=leaf" was revoked at 2026-06-01T10:00:00Z: replace it`},
		{"revoked, and a list that does not know", at("/revoked", p.URL+"/list"), "was revoked"},
		{"unknown", at("/unknown"), "the responder does not know the certificate"},
		{"unknown, and a list", at("/unknown", p.URL+"/list"), ""},
		{"old", at("/old"), "the answer is out of date"},
		{"forged", at("/forged"), "bad OCSP signature"},
		{"of another certificate", at("/wrong"), "no response matching the supplied certificate"},
		{"junk", at("/junk"), "/junk: "},
		{"missing", at("/missing"), "the server answers 404"},
		{"none", at(""), "the certificate names no OCSP responder"},
		{"none, and a list", at("", p.URL+"/list"), ""},
	} {
		wants(t, c.what, checkOf(s, c.cert), c.want)
	}
}

// TestCacheLoadsOnce shows that callers at the same time share one load, that a value is used until it is
// too old, that a failed load is not repeated at once, and that a usable old value stays after a failure.
func TestCacheLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache[int]{max: 2, age: time.Minute, retry: time.Second, now: time.Now}
		loads, fail := 0, error(nil)
		get := func() (int, error) {
			return c.get(t.Context(), "x", func(int) bool { return true }, func(context.Context) (int, error) {
				time.Sleep(time.Millisecond)
				loads++
				return loads, fail
			})
		}
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				if v, err := get(); v != 1 || err != nil {
					t.Errorf("got %d, %v", v, err)
				}
			})
		}
		wait.Wait()
		for _, step := range []struct {
			pass  time.Duration
			fail  error
			value int
			loads int
		}{
			{time.Second, nil, 1, 1},
			{time.Hour, nil, 2, 2},
			{time.Hour, io.EOF, 2, 3},
			{time.Second / 2, nil, 2, 3},
			{time.Second, nil, 4, 4},
		} {
			time.Sleep(step.pass)
			fail = step.fail
			if v, err := get(); v != step.value || err != nil || loads != step.loads {
				t.Errorf("after %s: got %d, %v with %d loads, want %d with %d", step.pass, v, err, loads, step.value, step.loads)
			}
		}
		fails := 0
		for range 3 {
			_, err := c.get(t.Context(), "y", func(int) bool { return true }, func(context.Context) (int, error) { fails++; return 0, io.EOF })
			if err != io.EOF {
				t.Error(err)
			}
		}
		if fails != 1 {
			t.Errorf("%d loads that fail", fails)
		}
		for _, key := range []string{"a", "b", "c"} {
			_, _ = c.get(t.Context(), key, func(int) bool { return true }, func(context.Context) (int, error) { return 0, nil })
		}
		if len(c.entries) > 2 {
			t.Errorf("%d entries", len(c.entries))
		}
	})
}

// TestSilentPlace shows that an address that does not answer delays one check by the limit, and does not
// delay the next checks.
func TestSilentPlace(t *testing.T) {
	release := make(chan bool)
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	ca := authority(t, "ca")
	leaf := ca.issue(t, "leaf", func(c *x509.Certificate) {
		c.CRLDistributionPoints = []string{silent.URL}
		hosts("127.0.0.1")(c)
	})
	s := openStore(t, Servers, leaf, ca, "crl", "true")
	s.revocation.client.Timeout = 50 * time.Millisecond
	for range 20 {
		wants(t, "silent", checkOf(s, leaf), "could not be found out")
	}
}

// TestWaitingEnds shows that a caller that waits for another caller's load stops waiting when its own
// time is over.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache[int]{max: 1, age: time.Minute, retry: time.Second, now: time.Now}
		good := func(int) bool { return true }
		done := make(chan bool)
		go func() {
			_, _ = c.get(t.Context(), "x", good, func(context.Context) (int, error) {
				time.Sleep(time.Hour)
				return 1, nil
			})
			close(done)
		}()
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := c.get(ctx, "x", good, nil); err != context.DeadlineExceeded {
			t.Error(err)
		}
		<-done
	})
}
