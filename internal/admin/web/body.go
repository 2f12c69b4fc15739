package web

import (
	"context"
	"io"
	"net"
	"net/http"
)

type connKey struct{}

// withConn keeps the connection in the context of its requests, for http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// arriving counts a connection as idle until the body of its request has arrived. A client that announces a body
// and does not send it then cannot keep other clients out: [listener.makeRoom] closes idle connections. arriving
// does not change connections of HTTP/2, which may have other requests in process.
func (p *Port) arriving(r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok || r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody {
		return
	}
	p.listen.changed(c, http.StateIdle)
	r.Body = &body{ReadCloser: r.Body, changed: func(s http.ConnState) { p.listen.changed(c, s) }}
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	changed func(http.ConnState)
}

// Read reads a part of the body. Each part that arrives restarts the time for which the connection counts as idle.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	switch {
	case err == io.EOF:
		b.changed(http.StateActive)
	case n > 0:
		b.changed(http.StateIdle)
	}
	return n, err
}
