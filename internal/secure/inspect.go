package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// NamesOf returns the names and addresses for which a certificate is valid.
func NamesOf(c *x509.Certificate) []string { return hostsOf(c) }

// IssuerOf returns the subject of the authority that has issued a certificate.
func IssuerOf(c *x509.Certificate) string { return nameText(c.RawIssuer) }

// Names returns the names and addresses for which the certificate is valid.
func (c Certificate) Names() []string { return NamesOf(c.cert) }

// Issuer returns the subject of the authority that has issued the certificate.
func (c Certificate) Issuer() string { return IssuerOf(c.cert) }

// shown returns the certificate that this end shows to others, and its chain; nil: there is none.
func (l *loaded) shown() []*x509.Certificate {
	if len(l.certificates) == 0 {
		return nil
	}
	first := l.certificates[0]
	i := slices.IndexFunc(l.all, func(c Certificate) bool { return c.cert == first.Leaf })
	var chain []*x509.Certificate
	for _, c := range l.all[i : i+len(first.Certificate)] { // note has added them one after the other
		chain = append(chain, c.cert)
	}
	return chain
}

// Expires returns when the first of these certificates expires: the one that this end shows to others, those of
// its chain, and the authority that has issued the chain, if the trust store holds it. If this end shows no
// certificate, the time is zero.
func (s *Store) Expires() time.Time {
	l := s.loaded.Load()
	chain := l.shown()
	if chain == nil {
		return time.Time{}
	}
	first := chain[0].NotAfter
	for _, c := range chain[1:] {
		first = earlier(first, c.NotAfter)
	}
	if end := l.authorityEnds(chain[len(chain)-1]); !end.IsZero() {
		first = earlier(first, end)
	}
	return first
}

// authorityEnds returns when the trusted issuer of a certificate expires. If there are several, because the
// authority has renewed its own certificate, the latest counts. It is zero if there is none.
func (l *loaded) authorityEnds(c *x509.Certificate) time.Time {
	var end time.Time
	for _, t := range l.all {
		if !t.Ours && t.NotAfter.After(end) && slices.Equal(t.cert.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(t.cert) == nil {
			end = t.NotAfter
		}
	}
	return end
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// CheckOwn returns a *Refusal if another server with the same settings would refuse this one. The names in the
// certificate are not compared; see CheckOwnNames.
func (s *Store) CheckOwn(ctx context.Context) error {
	l := s.loaded.Load()
	state := tls.ConnectionState{PeerCertificates: l.shown()}
	v := *l.verifier
	v.settings.VerifyServerNames, v.settings.VerifyClientNames = false, false
	for _, server := range []bool{true, false} {
		if !server && v.settings.ClientAuth == None {
			continue // no server asks for the certificate of a client
		}
		if err := v.check(ctx, state, end{}, server); err != nil {
			return err
		}
	}
	return nil
}

// CheckOwnNames returns a *Refusal if the certificate that this end shows is for none of the hosts.
func (s *Store) CheckOwnNames(hosts ...string) error {
	if chain := s.loaded.Load().shown(); chain != nil {
		return CheckNames(chain[0], hosts...)
	}
	return nil
}

// CheckOwnMember returns a *Refusal if CheckMember on other members would refuse the certificate that this end
// shows as that of the member with these hosts.
func (s *Store) CheckOwnMember(ctx context.Context, hosts ...string) error {
	if chain := s.loaded.Load().shown(); chain != nil {
		return s.CheckMember(ctx, chain[0], hosts...)
	}
	return nil
}

// List is a revocation list that one of the certificates names.
type List struct {
	Place      string
	Issuer     string
	NextUpdate time.Time // from this time on the list does not count; zero: it has no end
	Err        error     // why the list cannot be used; nil if it can
}

// Lists reads the revocation lists that the certificates in the files name.
func (s *Store) Lists(ctx context.Context) []List {
	var found []List
	for _, c := range s.loaded.Load().all {
		places := c.cert.CRLDistributionPoints
		for _, place := range places[:min(len(places), urlsMax)] {
			if slices.ContainsFunc(found, func(l List) bool { return l.Place == place }) {
				continue
			}
			l := List{Place: place}
			body, err := s.revocation.fetchList(ctx, place)
			if err == nil {
				var list *crl
				if list, err = parseCRL(body); err == nil {
					l.Issuer, l.NextUpdate = nameText(list.list.RawIssuer), list.list.NextUpdate
				}
			}
			l.Err = err
			found = append(found, l)
		}
	}
	return found
}

// Versions returns the versions of TLS that the settings allow, by their names in Java.
func (s Settings) Versions() []string {
	var names []string
	for name, v := range protocols {
		if v >= s.MinVersion && v <= s.MaxVersion {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Suites returns the cipher suites that the settings allow.
func (s Settings) Suites() []string {
	var names []string
	for _, c := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		inVersion := slices.ContainsFunc(c.SupportedVersions, func(v uint16) bool { return v >= s.MinVersion && v <= s.MaxVersion })
		chosen := slices.Contains(s.CipherSuites, c.ID) || s.CipherSuites == nil && !c.Insecure || slices.Equal(c.SupportedVersions, []uint16{tls.VersionTLS13})
		if inVersion && chosen {
			names = append(names, c.Name)
		}
	}
	return names
}
