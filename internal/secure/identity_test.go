package secure

import (
	"crypto/x509"
	"net/url"
	"testing"
)

// TestIdentity shows the id of a client in the scheme x509.
func TestIdentity(t *testing.T) {
	cert := authority(t, "ca").issue(t, "client, 1", func(c *x509.Certificate) {
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "prod", Path: "/app/orders"}, {Scheme: "urn", Opaque: "x:y"}}
		c.EmailAddresses = []string{"me@example.com"}
		hosts("a.example.com", "b.example.com", "10.0.0.1")(c)
	}).cert
	const subject = `CN=client\, 1`
	for _, c := range []struct {
		what  string
		keys  []string
		want  string
		wrong string
	}{
		{"by default", nil, subject, ""},
		{"subject", []string{"Type", "SDN"}, subject, ""},
		{"URI", []string{"Type", "san", "SanMatchType", "6", "SanMatchRegex", "^spiffe://"}, "spiffe://prod/app/orders", ""},
		{"part of a URI", []string{"Type", "SAN", "SanMatchType", "6", "SanMatchRegex", "^spiffe://", "SanExtractRegex", "^spiffe://([^/]+)/app/(.+)$", "SanExtractMatcherGroupIndex", "2"}, "orders", ""},
		{"e-mail", []string{"Type", "SAN", "SanMatchType", "1"}, "me@example.com", ""},
		{"address", []string{"Type", "SAN", "SanMatchType", "7"}, "10.0.0.1", ""},
		{"two match", []string{"Type", "SAN", "SanMatchType", "2"}, subject, "2 alternative names of kind 2 match .* instead of exactly one: the subject is used as the id"},
		{"none matches", []string{"Type", "SAN", "SanMatchType", "2", "SanMatchRegex", "^c"}, subject, "0 alternative names of kind 2 match ^c instead of exactly one"},
		{"nothing to extract", []string{"Type", "SAN", "SanMatchType", "1", "SanExtractRegex", "^x"}, subject, `the alternative name "me@example.com" does not match ^x`},
	} {
		values := map[string]Value{}
		for i := 0; i < len(c.keys); i += 2 {
			values["ssl.x509.clientCertId"+c.keys[i]] = Value{Text: c.keys[i+1]}
		}
		s, err := Parse(Clients, values)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		got, err := s.Identity.Of(cert)
		wants(t, c.what, err, c.wrong)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
