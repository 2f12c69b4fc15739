package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Probe is an attempt to connect to a port with TLS, to find out what its server accepts. If it fails, it still
// reports what it has seen before.
type Probe struct {
	Address     string           // host:port
	ServerName  string           // the name that the server's certificate must hold; empty: the host of Address
	Roots       *x509.CertPool   // nil: the authorities that the system trusts
	RootsFrom   string           // where Roots comes from, for messages
	Certificate *tls.Certificate // shown if the server asks for one; nil: none
}

// Probe returns an attempt to connect to a port, with the certificates of the store. serverName is the name
// that the server's certificate must hold; empty: the host of the address.
func (s *Store) Probe(address, serverName string) Probe {
	l := s.loaded.Load()
	p := Probe{Address: address, ServerName: serverName, Roots: l.verifier.roots, RootsFrom: l.verifier.trust}
	if len(l.certificates) > 0 {
		p.Certificate = &l.certificates[0]
	}
	return p
}

// Seen holds what a probe has seen.
type Seen struct {
	Version, Suite string              // empty: no handshake took place
	Chain          []*x509.Certificate // what the server has shown
	Asked          bool                // the server has asked for a certificate
	Authorities    []string            // the authorities that it named when it asked
	Shown          bool                // the server has received a certificate
}

// UnreachableError is the error of a server with which no connection could be opened.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// settleTime is how long a probe waits for a refusal after its handshake, before it closes its half of the
// connection. A server that then closes the other half has accepted the certificate.
const settleTime = 300 * time.Millisecond

// Run connects to the port and carries out a handshake, until ctx ends. It sends nothing else. The error is an
// *UnreachableError or a *Refusal.
func (p Probe) Run(ctx context.Context) (Seen, error) {
	var seen Seen
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return seen, &UnreachableError{err}
	}
	defer raw.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := raw.SetDeadline(deadline); err != nil {
			return seen, &UnreachableError{err}
		}
	}
	conn := tls.Client(raw, p.config(&seen))
	if err := conn.HandshakeContext(ctx); err != nil {
		return seen, p.explain(ctx, err, &seen)
	}
	state := conn.ConnectionState()
	seen.Version, seen.Suite = tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)
	seen.Chain = state.PeerCertificates
	if err := p.verify(seen.Chain); err != nil {
		return seen, err
	}
	if err := awaitRefusal(conn); err != nil {
		return seen, p.explain(ctx, err, &seen)
	}
	return seen, nil
}

// config returns a configuration that accepts every certificate, so that the probe can report on it, and that
// notes what the server asks for.
func (p Probe) config(seen *Seen) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: p.name(), InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			seen.Chain = state.PeerCertificates
			return nil
		},
		GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			seen.Asked = true
			for _, name := range r.AcceptableCAs {
				seen.Authorities = append(seen.Authorities, nameText(name))
			}
			if p.Certificate == nil {
				return new(tls.Certificate), nil
			}
			// Unlike a client, a probe also shows a certificate of an authority that the server does not name.
			// The server's answer to it says more than its answer to a missing certificate.
			seen.Shown = true
			return p.Certificate, nil
		},
	}
}

// name returns the name that the certificate must hold.
func (p Probe) name() string {
	if p.ServerName != "" {
		return p.ServerName
	}
	host, _, _ := net.SplitHostPort(p.Address) // if it fails, host is empty, and the address was not dialled
	return host
}

// verify returns a *Refusal if a client would not accept the server's certificate.
func (p Probe) verify(chain []*x509.Certificate) error {
	leaf := chain[0] // a server without a certificate fails the handshake
	between := pool(chain[1:])
	refuse := func(err error, reason kind, why, remedy string) error {
		return &Refusal{Peer: p.Address, Who: NameOf(leaf), Why: why, Remedy: remedy, Err: err, kind: reason}
	}
	now := time.Now()
	_, err := leaf.Verify(x509.VerifyOptions{Roots: p.Roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		reason, why, remedy := explainChain(err, leaf, p.RootsFrom, now)
		return refuse(err, reason, why, remedy)
	}
	if !matches(leaf, p.name()) {
		return refuse(nil, otherNames, fmt.Sprintf("it is not for the name %s, but for %s", p.name(), strings.Join(hostsOf(leaf), ", ")),
			"connect to one of these names, or issue a certificate with the name that clients use")
	}
	return nil
}

// awaitRefusal returns an error if the server refuses the client after the handshake: with TLS 1.3 it examines
// the client's certificate only then.
func awaitRefusal(conn *tls.Conn) error {
	deadline := time.Now().Add(settleTime)
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	if !isTimeout(err) {
		return ended(err)
	}
	if err := conn.SetReadDeadline(deadline.Add(settleTime * 10)); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	if _, err = conn.Read(make([]byte, 1)); isTimeout(err) {
		return nil // the server keeps the connection
	}
	return ended(err)
}

// ended returns nil for an end of the connection that is not a refusal.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// explain returns why the server has refused the connection.
func (p Probe) explain(ctx context.Context, err error, seen *Seen) error {
	r := Explain(err, p.Address)
	var op *net.OpError
	switch refused := errors.As(err, &op) && op.Op == "remote error"; {
	case refused && seen.Asked && !seen.Shown:
		r.Why = "it wants a certificate of the client, and got none"
		r.Remedy = "show a certificate that one of its trusted authorities has issued"
		if len(seen.Authorities) > 0 {
			r.Remedy += ", that is " + strings.Join(seen.Authorities[:min(len(seen.Authorities), namesMax)], " or ")
		}
	case refused && seen.Shown:
		r.Why = fmt.Sprintf("it refused the certificate %q: %s", NameOf(p.Certificate.Leaf), strings.TrimPrefix(op.Err.Error(), "tls: "))
		r.Remedy = p.ownFault(seen)
	case refused:
		r.Remedy = "see its log"
		if old := p.oldVersion(ctx); old != "" {
			r.Why, r.Remedy = "no version of TLS is enabled at both ends: it speaks "+old+" only", "enable TLSv1.2 or TLSv1.3 in enabledProtocols of the server"
		}
	case p.speaksPlain(ctx):
		r.Why, r.Remedy = "it answers without TLS", "connect without TLS, or name the port with TLS, such as secureClientPort"
	}
	return r
}

// ownFault says what may be wrong with the certificate that was shown.
func (p Probe) ownFault(seen *Seen) string {
	leaf, now := p.Certificate.Leaf, time.Now()
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case now.After(leaf.NotAfter):
		return "it expired at " + at(leaf.NotAfter) + ": renew it"
	case now.Before(leaf.NotBefore):
		return "it is not valid before " + at(leaf.NotBefore) + ": compare the clocks"
	case len(seen.Authorities) > 0 && !p.issuedByOne(seen.Authorities):
		return fmt.Sprintf("its issuer is %q, and the server trusts %s: use a certificate of those, or add the issuer to the server's trust store",
			nameText(leaf.RawIssuer), strings.Join(seen.Authorities[:min(len(seen.Authorities), namesMax)], " and "))
	}
	return "the server's log says why: it may be of another authority, revoked, for another use, or without the name of this machine"
}

// issuedByOne reports whether the certificate that was shown, or one of its chain, names one of the
// authorities as its issuer.
func (p Probe) issuedByOne(authorities []string) bool {
	for _, der := range p.Certificate.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return false
		}
		for _, name := range authorities {
			if nameText(c.RawIssuer) == name || NameOf(c) == name {
				return true
			}
		}
	}
	return false
}

// oldVersion returns the version that the server speaks if clients do not speak it any more; "" otherwise.
func (p Probe) oldVersion(ctx context.Context) string {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return ""
	}
	defer raw.Close()
	config := p.config(new(Seen))
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	version := ""
	config.VerifyConnection = func(state tls.ConnectionState) error {
		version = tls.VersionName(state.Version)
		return nil
	}
	_ = tls.Client(raw, config).HandshakeContext(ctx) // only the version counts, not whether the server accepts the client
	return version
}

// Limits of the answer to a word that is sent without TLS.
const (
	plainMax   = 2 * time.Second
	plainBytes = 64
)

// speaksPlain reports whether a client port answers the word srvr without TLS.
func (p Probe) speaksPlain(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), plainMax)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return false
	}
	defer raw.Close()
	if raw.SetDeadline(time.Now().Add(plainMax)) != nil {
		return false
	}
	if _, err := io.WriteString(raw, "srvr"); err != nil {
		return false
	}
	b, _ := io.ReadAll(io.LimitReader(raw, plainBytes)) // an error after the first bytes does not matter
	text := string(b)
	return strings.HasPrefix(text, "Zookeeper version") || strings.HasPrefix(text, "srvr is not") || strings.HasPrefix(text, "This ZooKeeper")
}
