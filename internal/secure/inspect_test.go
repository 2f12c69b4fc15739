package secure

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"path/filepath"
	"testing"
	"time"
)

// TestExpires shows that the earliest end counts: of the certificate, of its chain, and of the authority. A
// certificate that has issued none of them does not count.
func TestExpires(t *testing.T) {
	days := func(n int) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = noon.AddDate(0, 0, n) }
	}
	ca := authority(t, "ca")
	between := func(n int) *signed {
		return ca.issue(t, "between", func(c *x509.Certificate) { c.IsCA = true; days(n)(c) })
	}
	short := (*signed)(nil).issue(t, "short", func(c *x509.Certificate) { c.IsCA = true; days(7)(c) })
	unrelated := authority(t, "unrelated")
	for _, c := range []struct {
		what           string
		shown, trusted *signed
		want           time.Time
	}{
		{"the certificate", ca.issue(t, "a", days(3)), ca, noon.AddDate(0, 0, 3)},
		{"its chain", between(5).issue(t, "a", days(9)), ca, noon.AddDate(0, 0, 5)},
		{"the authority", short.issue(t, "a", days(9)), short, noon.AddDate(0, 0, 7)},
		{"an unrelated authority", ca.issue(t, "a", days(300)), unrelated, noon.AddDate(0, 0, 300)},
		{"no certificate", nil, ca, time.Time{}},
	} {
		if got := openStore(t, Servers, c.shown, c.trusted).Expires(); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// TestCheckOwn shows what is found wrong with the certificate of this end itself.
func TestCheckOwn(t *testing.T) {
	ca := authority(t, "ca")
	good := ca.issue(t, "good", hosts("zk1.example"))
	expired := ca.issue(t, "expired", func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Hour) })
	client := ca.issue(t, "client", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] })
	wants(t, "good", openStore(t, Servers, good, ca).CheckOwn(t.Context()), "")
	wants(t, "none", openStore(t, Servers, nil, ca).CheckOwn(t.Context()), "")
	wants(t, "expired", openStore(t, Servers, expired, ca).CheckOwn(t.Context()), `"CN=expired": it expired at `)
	wants(t, "a client's", openStore(t, Servers, client, ca).CheckOwn(t.Context()), "its extended key usage does not allow this use")
	web := ca.issue(t, "web", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	wants(t, "only for servers", openStore(t, Servers, web, ca).CheckOwn(t.Context()), "its extended key usage does not allow this use")
	wants(t, "not asked for", openStore(t, Servers, web, ca, "clientAuth", "none").CheckOwn(t.Context()), "")
	wants(t, "another authority", openStore(t, Servers, good, authority(t, "other")).CheckOwn(t.Context()), `its issuer "CN=ca" is not trusted`)
	wants(t, "its name", openStore(t, Servers, good, ca).CheckOwnNames("10.0.0.1", "zk1.example"), "")
	wants(t, "another name", openStore(t, Servers, good, ca).CheckOwnNames("zk2.example"), `"CN=good": its names ([zk1.example]) are none of [zk2.example]`)
}

// TestLists shows when the revocation lists end that certificates name, and which cannot be read.
func TestLists(t *testing.T) {
	ca := authority(t, "ca")
	file := filepath.Join(t.TempDir(), "ca.crl")
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: noon, NextUpdate: noon.AddDate(0, 0, 2)}, ca.cert, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, der)
	shown := ca.issue(t, "a", func(c *x509.Certificate) {
		c.CRLDistributionPoints = []string{"file://" + file, "file:///nonexistent"}
	})
	lists := openStore(t, Servers, shown, ca).Lists(context.Background())
	if len(lists) != 2 || lists[0].Err != nil || lists[0].Issuer != "CN=ca" || !lists[0].NextUpdate.Equal(noon.AddDate(0, 0, 2)) || lists[1].Err == nil {
		t.Errorf("%+v", lists)
	}
}
