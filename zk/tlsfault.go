package zk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// tlsError says why there is no connection with TLS, and what to do.
type tlsError struct {
	why string
	err error
}

func (e *tlsError) Error() string { return "TLS: " + e.why }
func (e *tlsError) Unwrap() error { return e.err }

// errSpeaksTLS says that a server answered a connection without TLS with a message of TLS.
var errSpeaksTLS = errors.New("the port is for TLS: connect with TLS, or name the server's port without TLS")

const plainPort = "this may be a port without TLS: name the server's port with TLS (secureClientPort), or connect without TLS"

const needsCertificate = "; it may need a certificate of this client, signed by an authority that it trusts; see the server's log"

// explainTLS returns the error of a handshake in words that say what to do. shown is the
// subject of the certificate that the client showed; empty: none.
func explainTLS(err error, shown string) error {
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &record):
		return &tlsError{"the server does not answer with TLS; " + plainPort, err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.ECONNRESET):
		return &tlsError{"the server closed the connection during the handshake; " + plainPort, err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &tlsError{"the server did not finish the handshake in time; " + plainPort, err}
	}
	if refused := explainAlert(err, shown); refused != nil {
		return refused
	}
	return &tlsError{err.Error() + certificateRemedy(err), err}
}

// certificateRemedy returns what to do about a certificate that the client does not accept.
func certificateRemedy(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return ": add the authority of the server's certificate to those that this client trusts"
	case errors.As(err, &name):
		return ": connect by a name that the server's certificate holds, or set the name to verify (ServerName)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ": renew the server's certificate, or correct the clock"
	}
	return ""
}

// explainAlert returns nil unless the server refused the connection with an alert of TLS.
// With TLS 1.3 the alert about a client's certificate comes only when the client reads.
// shown is the subject of the certificate that the client showed; empty: none.
func explainAlert(err error, shown string) error {
	var op *net.OpError
	var alert tls.AlertError
	text := ""
	switch {
	case errors.As(err, &alert):
		text = alert.Error()
	case errors.As(err, &op) && op.Op == "remote error":
		text = op.Err.Error()
	default:
		return nil
	}
	text = strings.TrimPrefix(text, "tls: ")
	remedy := "; see the server's log"
	switch text {
	case "bad certificate", "certificate unknown", "unknown certificate", "unknown certificate authority", "unsupported certificate":
		if shown != "" {
			return &tlsError{fmt.Sprintf("the server refused the certificate %q of this client: %s%s", shown, text, remedy), err}
		}
		remedy = needsCertificate
	case "certificate required", "handshake failure":
		remedy = needsCertificate
	case "expired certificate":
		remedy = "; renew the certificate of this client, or correct the clock"
	case "protocol version not supported":
		remedy = "; let both ends support a common version of TLS"
	}
	return &tlsError{"the server refused the connection: " + text + remedy, err}
}

// secureConn is a connection with TLS. Its reads explain why the server refuses the client.
type secureConn struct {
	*tls.Conn
	shown string // the subject of the certificate that the client showed; empty: none
}

func (c *secureConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		return n, nil
	}
	if refused := explainAlert(err, c.shown); refused != nil {
		err = refused
	}
	return n, err
}

// secureClient returns the client's end of a connection with TLS, which notes the certificate that it shows.
func secureClient(conn net.Conn, config *tls.Config) *secureConn {
	c := &secureConn{}
	config = config.Clone()
	choose := config.GetClientCertificate
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := new(tls.Certificate), error(nil)
		if choose != nil {
			cert, err = choose(request)
		} else {
			for i := range config.Certificates {
				if request.SupportsCertificate(&config.Certificates[i]) == nil {
					cert = &config.Certificates[i]
					break
				}
			}
		}
		if err == nil && len(cert.Certificate) > 0 {
			if leaf, e := x509.ParseCertificate(cert.Certificate[0]); e == nil {
				c.shown = leaf.Subject.String()
			}
		}
		return cert, err
	}
	c.Conn = tls.Client(conn, config)
	return c
}
