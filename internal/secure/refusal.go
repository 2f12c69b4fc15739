package secure

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// Refusal says why a connection was refused, either by this end or by the other one.
type Refusal struct {
	Peer   string // address of the other end; empty if it is not known
	Who    string // the subject of its certificate; empty if it showed none
	Why    string
	Remedy string
	Err    error // the cause, if there is one
	kind   kind
}

// kind is the reason of a Refusal in fixed words, without anything that the other end chooses.
type kind string

// The kinds of refusals.
const (
	otherFault        kind = "the TLS handshake failed"
	noTLS             kind = "it does not speak TLS"
	onlyHTTP          kind = "it speaks HTTP without TLS"
	noVersion         kind = "no version of TLS is enabled at both ends"
	noSuite           kind = "no cipher suite is enabled at both ends that fits the certificate"
	noCertificate     kind = "it showed no certificate"
	refusedConnection kind = "it refused the connection"
	closedEarly       kind = "it closed the connection during the handshake"
	tooSlow           kind = "it did not finish the handshake in time"
	notYetValid       kind = "its certificate is not valid yet"
	hasExpired        kind = "its certificate has expired"
	forOtherUse       kind = "its certificate is not for this use"
	noAuthority       kind = "an issuer of its certificate is no authority"
	signedByItself    kind = "its certificate is signed by itself"
	notTrusted        kind = "the issuer of its certificate is not trusted"
	otherNames        kind = "its certificate has other names"
	longChain         kind = "it sent too many certificates"
	wasRevoked        kind = "its certificate is revoked"
	notChecked        kind = "it is unknown whether its certificate is revoked"
)

// Kind returns the reason in fixed words, so that a log can count repetitions of each reason.
func (r *Refusal) Kind() string { return string(cmp.Or(r.kind, otherFault)) }

func (r *Refusal) Error() string {
	var text strings.Builder
	if r.Peer != "" {
		text.WriteString(r.Peer + ": ")
	}
	if r.Who != "" {
		fmt.Fprintf(&text, "the certificate %q: ", r.Who)
	}
	text.WriteString(r.Why)
	if r.Remedy != "" {
		text.WriteString(": " + r.Remedy)
	}
	return text.String()
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Explain returns the reason for a failed handshake with the peer at an address, in words that tell an
// operator what to do.
func Explain(err error, peer string) *Refusal {
	if r := new(Refusal); errors.As(err, &r) {
		if r.Peer == "" {
			with := *r
			with.Peer = peer
			return &with
		}
		return r
	}
	r := &Refusal{Peer: peer, Why: err.Error(), Err: err}
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &record):
		r.kind, r.Remedy = noTLS, "let it use TLS, or the port without TLS"
		if record.RecordHeader[0] == 'H' || strings.HasPrefix(string(record.RecordHeader[:]), "GET") {
			r.kind = onlyHTTP
		}
		r.Why = string(r.kind)
	case errors.As(err, &alert):
		r.kind = refusedConnection
		r.Why, r.Remedy = explainAlert(alert)
	case errors.As(err, &op) && op.Op == "remote error":
		r.kind = refusedConnection
		r.Why = "it refused the connection: " + op.Err.Error()
		r.Why, r.Remedy = explainText(strings.TrimPrefix(op.Err.Error(), "tls: "), r.Why)
	case strings.Contains(err.Error(), "client didn't provide a certificate"):
		r.kind, r.Why, r.Remedy = noCertificate, string(noCertificate), "give it one that this server trusts; only ssl.clientAuth=want would let clients connect without one"
	case strings.Contains(err.Error(), "unsupported versions"), strings.Contains(err.Error(), "unsupported protocol version"):
		r.kind, r.Why, r.Remedy = noVersion, string(noVersion)+": "+err.Error(), "enable the same version in enabledProtocols"
	case strings.Contains(err.Error(), "no cipher suite supported"):
		r.kind, r.Why, r.Remedy = noSuite, string(noSuite), "enable the same suites in ciphersuites, or TLSv1.3"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
		r.kind, r.Why, r.Remedy = closedEarly, string(closedEarly), "see its log; it may not speak TLS on this port"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		r.kind, r.Why, r.Remedy = tooSlow, string(tooSlow), "see whether it speaks TLS on this port"
	}
	return r
}

// explainAlert explains an alert from the other end.
func explainAlert(a tls.AlertError) (why, remedy string) {
	text := strings.TrimPrefix(a.Error(), "tls: ")
	return explainText(text, "it refused the connection: "+text)
}

func explainText(text, why string) (string, string) {
	switch text {
	case "bad certificate", "unknown certificate", "certificate unknown", "unknown certificate authority", "unsupported certificate":
		return why, "its log says what is wrong with our certificate; its trust store may lack our authority"
	case "expired certificate":
		return why, "renew our certificate, and compare the clocks"
	case "revoked certificate":
		return why, "our certificate is revoked: replace it"
	case "certificate required":
		return why, "it needs a certificate of ours: set keyStore.location"
	case "protocol version not supported":
		return why, "enable the same version of TLS in enabledProtocols"
	case "handshake failure", "insufficient security level":
		return why, "enable the same versions and cipher suites at both ends, or show a certificate"
	}
	return why, "see its log"
}

// explainChain explains why no chain leads from a certificate to a trusted one.
func explainChain(err error, leaf *x509.Certificate, trust string, now time.Time) (reason kind, why, remedy string) {
	add := fmt.Sprintf("add the certificate of %q to %s, if it is to be trusted", nameText(leaf.RawIssuer), trust)
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		which := "it"
		if !invalid.Cert.Equal(leaf) {
			which = fmt.Sprintf("its issuer %q", NameOf(invalid.Cert))
		}
		if now.Before(invalid.Cert.NotBefore) {
			return notYetValid, fmt.Sprintf("%s is not valid before %s", which, invalid.Cert.NotBefore.UTC().Format(time.RFC3339)), "compare the clocks"
		}
		return hasExpired, fmt.Sprintf("%s expired at %s", which, invalid.Cert.NotAfter.UTC().Format(time.RFC3339)), "renew it"
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return forOtherUse, "its extended key usage does not allow this use", "issue it for both serverAuth and clientAuth"
	case errors.As(err, &invalid) && invalid.Reason == x509.NotAuthorizedToSign:
		return noAuthority, "one of its issuers is not an authority", "let an authority issue it"
	case errors.As(err, &unknown) && string(leaf.RawIssuer) == string(leaf.RawSubject):
		return signedByItself, "it is signed by itself and not trusted", fmt.Sprintf("add it to %s, if it is to be trusted", trust)
	case errors.As(err, &unknown):
		return notTrusted, fmt.Sprintf("its issuer %q is not trusted", nameText(leaf.RawIssuer)), add + ", and let the peer send all certificates in between"
	}
	return notTrusted, err.Error(), add
}
