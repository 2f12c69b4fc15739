package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
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
	refuse := func(err error, reason kind, why, remedy string) error {
		return &Refusal{Peer: e.addressText(), Who: NameOf(leaf), Why: why, Remedy: remedy, Err: err, kind: reason}
	}
	if len(certs) > chainMax {
		return refuse(nil, longChain, fmt.Sprintf("it came with %d certificates; %d are allowed", len(certs), chainMax), "send only its issuers along")
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
			return refuse(err, reason, why, remedy)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkMax)
	defer cancel()
	if server && v.settings.VerifyServerNames || !server && v.settings.VerifyClientNames {
		var lookup resolver
		if v.settings.ReverseLookup {
			lookup = v.lookup
		}
		if err := checkName(ctx, leaf, e, lookup); err != nil {
			key := "hostnameVerification"
			if !server {
				key = "clientHostnameVerification"
			}
			return refuse(err, otherNames, err.Error(), fmt.Sprintf("issue it for the right names, or set %s%s=false", v.settings.Family, key))
		}
	}
	if v.settings.CRL || v.settings.OCSP {
		if err := v.revocation.check(ctx, chains, v.settings.OCSP); err != nil {
			reason, remedy := notChecked, "let its authority publish a valid list or answer at an address that the certificate names"
			if isRevoked(err) {
				reason, remedy = wasRevoked, "replace it"
			}
			return refuse(err, reason, err.Error(), remedy)
		}
	}
	return nil
}

// usages returns the uses that a certificate must allow; one without the extension allows
// all. A server that dials another one must show a certificate of a server: otherwise a
// client's certificate of the same authority could join the ensemble.
func (v *verifier) usages(server bool) []x509.ExtKeyUsage {
	switch {
	case server:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case v.settings.Family == Servers:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
}

// CheckNames returns a *Refusal if a certificate is for none of the hosts. The hosts are the names or
// addresses of the member of the ensemble that a peer claims to be.
func CheckNames(c *x509.Certificate, hosts ...string) error {
	for _, host := range hosts {
		if matches(c, host) {
			return nil
		}
	}
	return &Refusal{
		Who:    NameOf(c),
		Why:    fmt.Sprintf("its names (%v) are none of %v", hostsOf(c), hosts),
		Remedy: "issue it for the address in the server line",
		kind:   otherNames,
	}
}

var _ resolver = (*net.Resolver)(nil)
