package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// checkMax bounds how long the check of one certificate waits for name servers, revocation
// lists and OCSP responders.
const checkMax = 15 * time.Second

// verifier checks the certificates of the other ends of connections. It does not change.
type verifier struct {
	roots      *x509.CertPool
	trust      string // the key of zoo.cfg that names the trusted certificates
	settings   Settings
	lookup     resolver
	revocation *revocation
	now        func() time.Time
}

// check returns a *Refusal if it does not accept the certificate that the other end has shown. server is
// true if this end has dialled the other one. When ctx ends, nothing is looked up any more.
func (v *verifier) check(ctx context.Context, state tls.ConnectionState, e end, server bool) error {
	certs := state.PeerCertificates
	if len(certs) == 0 {
		// crypto/tls has refused the connection already if a certificate is required.
		return nil
	}
	leaf := certs[0]
	if len(certs) > chainMax {
		return refusal(e, leaf, nil, longChain, fmt.Sprintf("it came with %d certificates; %d are allowed", len(certs), chainMax), "send only its issuers along")
	}
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	now := v.now()
	var chains [][]*x509.Certificate
	for _, usage := range v.usages(server) {
		var err error
		chains, err = leaf.Verify(x509.VerifyOptions{Roots: v.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			reason, why, remedy := explainChain(err, leaf, v.trust, now)
			return refusal(e, leaf, err, reason, why, remedy)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkMax)
	defer cancel()
	if err := v.checkNames(ctx, leaf, e, server); err != nil {
		return err
	}
	if v.settings.CRL || v.settings.OCSP {
		if err := v.revocation.check(ctx, chains, v.settings.OCSP); err != nil {
			reason, remedy := notChecked, "let its authority publish a valid list or answer at an address that the certificate names"
			if isRevoked(err) {
				reason, remedy = wasRevoked, "replace it"
			}
			return refusal(e, leaf, err, reason, err.Error(), remedy)
		}
	}
	return nil
}

// checkNames returns a *Refusal if the settings ask for the names in the certificate to be checked, and they are not
// those of the other end.
func (v *verifier) checkNames(ctx context.Context, leaf *x509.Certificate, e end, server bool) error {
	key, verify := "clientHostnameVerification", v.settings.VerifyClientNames
	if server {
		key, verify = "hostnameVerification", v.settings.VerifyServerNames
	}
	if !verify || v.settings.shared(leaf) {
		return nil
	}
	var lookup resolver
	if v.settings.ReverseLookup {
		lookup = v.lookup
	}
	err := checkName(ctx, leaf, e, lookup)
	if err == nil {
		return nil
	}
	return refusal(e, leaf, err, otherNames, err.Error(), fmt.Sprintf("issue it for the right names, or set %s%s=false", v.settings.Family, key))
}

// refusal returns the *Refusal of the certificate leaf of the other end.
func refusal(e end, leaf *x509.Certificate, err error, reason kind, why, remedy string) error {
	return &Refusal{Peer: e.addressText(), Who: NameOf(leaf), Why: why, Remedy: remedy, Err: err, kind: reason}
}

// usages returns the uses that a certificate must allow; one without the extension allows
// all. A server that dials another one must show a certificate of a server: otherwise a
// client's certificate of the same authority could join the ensemble.
func (v *verifier) usages(server bool) []x509.ExtKeyUsage {
	switch {
	case server:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case v.settings.Family == Servers && !v.settings.AcceptsClients:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
}

// CheckNames returns a *Refusal if a certificate is for none of the hosts, which are names or addresses.
func CheckNames(c *x509.Certificate, hosts ...string) error {
	if isForOne(c, hosts) {
		return nil
	}
	return &Refusal{
		Who:    NameOf(c),
		Why:    fmt.Sprintf("its names (%v) are none of %v", hostsOf(c), hosts),
		Remedy: "issue it for the address in the server line",
		kind:   otherNames,
	}
}

func isForOne(c *x509.Certificate, hosts []string) bool {
	return slices.ContainsFunc(hosts, func(host string) bool { return matches(c, host) })
}

// shared reports whether a certificate has the name that is good for every server.
func (s *Settings) shared(c *x509.Certificate) bool {
	return s.SharedName != "" && matches(c, s.SharedName)
}

// CheckMember returns a *Refusal if a certificate does not belong to the member of the ensemble that a peer claims
// to be. It must be for one of the hosts, which are those of the member's server line, or for an address of one of
// them, unless the settings say that names are not compared, or the certificate has the shared name.
func (s *Store) CheckMember(ctx context.Context, c *x509.Certificate, hosts ...string) error {
	if !s.settings.VerifyServerNames || s.settings.shared(c) {
		return nil
	}
	return checkMember(ctx, c, hosts, net.DefaultResolver)
}

func checkMember(ctx context.Context, c *x509.Certificate, hosts []string, lookup resolver) error {
	err := CheckNames(c, hosts...)
	if err == nil {
		return nil
	}
	for _, host := range hosts {
		addresses, _ := lookup.LookupHost(ctx, host) // an error means that there is nothing to compare
		if host != "localhost" {
			addresses = slices.DeleteFunc(addresses, isLoopback)
		}
		if isForOne(c, addresses) {
			return nil
		}
	}
	return err
}

// isLoopback reports whether an address is one of the machine itself. The certificates of all members may hold
// such an address, so a name that resolves to it proves nothing.
func isLoopback(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.Unmap().IsLoopback()
}

var _ resolver = (*net.Resolver)(nil)
