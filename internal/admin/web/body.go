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

// arriving lets a connection count as one without a request until the body of its request has arrived, so that a
// client that announces a body and does not send it keeps nobody out. A connection of HTTP/2, which may have other
// requests in process, is left as it is.
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

// Read reads a part of the body. While parts arrive, the connection is not the one that has been idle for longest.
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
