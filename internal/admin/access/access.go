package access

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Viewer says who sent a request.
type Viewer struct {
	// Loopback: the request comes from a loopback address, and its Host header is a loopback
	// name or address. The second condition keeps out web pages of other sites whose
	// names resolve to a loopback address.
	Loopback bool
	// TLS: the request came over TLS.
	TLS bool
	// Operator is the name of the operator who is signed in; empty: nobody is.
	Operator string
}

// MayChange reports whether the viewer may change anything.
func (v Viewer) MayChange() bool { return v.Operator != "" && (v.Loopback || v.TLS) }

type viewerKey struct{}

// ViewerOf returns who sent the request to which ctx belongs: its handler must be behind
// [Access.Guard]. Without a guard the zero Viewer is returned, which may not change anything.
func ViewerOf(ctx context.Context) Viewer {
	v, _ := ctx.Value(viewerKey{}).(Viewer)
	return v
}

// WithViewer returns a context that belongs to a request of v, for tests of handlers.
func WithViewer(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// Options are the parameters of an Access.
type Options struct{}

// Access holds who may sign in and who is signed in. Its methods are safe for concurrent use.
type Access struct{ cross *http.CrossOriginProtection }

// New returns an Access.
func New(Options) (*Access, error) {
	return &Access{cross: http.NewCrossOriginProtection()}, nil
}

// Guard returns a handler that passes a request to next if it may see the page and the API.
func (a *Access) Guard(next http.Handler) http.Handler {
	return a.cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := Viewer{Loopback: fromLoopback(r), TLS: r.TLS != nil}
		if !v.Loopback {
			http.Error(w, "the page and the API answer only requests from the machine of the server", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(WithViewer(r.Context(), v)))
	}))
}

// fromLoopback reports whether a request comes from this machine and names it.
func fromLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && isLoopbackName(r.Host)
}

// isLoopbackName reports whether a Host header holds a loopback name or address.
func isLoopbackName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
