package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"bellwether/internal/secure"
)

// admit carries out the handshake of TLS with a client. It returns the subject of the client's certificate, empty if it
// has shown none.
func (r *Relay) admit(ctx context.Context, client net.Conn) (conn net.Conn, subject string, err error) {
	if r.clients == nil {
		return client, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	with := tls.Server(client, r.clients)
	if err := with.HandshakeContext(ctx); err != nil {
		return nil, "", secure.Explain(err, client.RemoteAddr().String())
	}
	if certs := with.ConnectionState().PeerCertificates; len(certs) > 0 {
		subject = secure.NameOf(certs[0])
	}
	return with, subject, nil
}

// subjectOf returns the subject of the certificate that a store shows, empty if it has none.
func subjectOf(s *secure.Store) string {
	for _, c := range s.Certificates() {
		if c.Ours {
			return c.Subject
		}
	}
	return ""
}

// errCertificate says that a client cannot be connected as the one that it is.
var errCertificate = errors.New("no certificate for the client")

// storeFor returns the store with the certificate of a subject; empty: one without a certificate. Without stores there is no
// TLS. Nobody ever acts with the certificate of somebody else.
func storeFor(stores []*secure.Store, subject string) (*secure.Store, error) {
	for _, s := range stores {
		if subjectOf(s) == subject {
			return s, nil
		}
	}
	if len(stores) == 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: give the connection settings with a certificate of the subject %q", errCertificate, cmp.Or(subject, "none"))
}
