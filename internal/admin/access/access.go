package access

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"bellwether/internal/secure"
)

// Viewer says who sent a request.
type Viewer struct {
	// Loopback: the request comes from a loopback address, its Host header is a loopback name
	// or address, and no proxy has passed it on. The second condition keeps out web pages of
	// other sites whose names resolve to a loopback address.
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

type stillKey struct{}

// Still reports whether [Access.Guard] would still pass on the request to which ctx belongs. A handler
// whose answer lasts, such as an event stream, must call it regularly, because the operator may have
// been signed out meanwhile.
func Still(ctx context.Context) bool {
	still, ok := ctx.Value(stillKey{}).(func() bool)
	return !ok || still()
}

// Options are the parameters of an Access.
type Options struct {
	Log *slog.Logger // nil: nothing is logged
	// TokenFile and CertificateFile name the operators; empty: there is no such file.
	TokenFile, CertificateFile string
	TLS                        bool // the port accepts TLS
	// Delay returns how long the next login from an address must wait, and Failed records a login
	// that failed. nil: logins do not wait.
	Delay  func(netip.Addr) time.Duration
	Failed func(netip.Addr)
}

// Access holds who may sign in and who is signed in. Its methods are safe for concurrent use.
type Access struct {
	opt       Options
	cross     *http.CrossOriginProtection
	operators atomic.Pointer[operators]
	sessions  sessions
	now       func() time.Time
}

// New reads the files of operators.
func New(o Options) (*Access, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Delay == nil {
		o.Delay = func(netip.Addr) time.Duration { return 0 }
	}
	if o.Failed == nil {
		o.Failed = func(netip.Addr) {}
	}
	a := &Access{opt: o, cross: http.NewCrossOriginProtection(), sessions: sessions{all: map[tokenSum]session{}}, now: time.Now}
	all, err := readOperators(o.TokenFile, o.CertificateFile)
	if err != nil {
		return nil, err
	}
	a.operators.Store(all)
	return a, nil
}

// Reload reads the files of operators again. An operator whose token is gone is signed out.
// With an error nothing changes.
func (a *Access) Reload() error {
	all, err := readOperators(a.opt.TokenFile, a.opt.CertificateFile)
	if err != nil {
		return err
	}
	a.operators.Store(all)
	a.sessions.keep(all)
	return nil
}

// Certificates reports whether operators can sign in by a client certificate.
func (a *Access) Certificates() bool { return a.opt.CertificateFile != "" }

// Guard returns a handler that passes a request to next if its sender may see the page and the API.
// With api, the requests are those of programs: they are refused with status 401, while a browser is
// sent to the sign-in.
func (a *Access) Guard(next http.Handler, api bool) http.Handler {
	return a.cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, known := a.viewer(r)
		switch {
		case !known:
			http.Error(w, "the token is not known, or is no longer valid: use one of admin.tokenFile", http.StatusUnauthorized)
		case v.Loopback, v.TLS && v.Operator != "":
			still := func() bool { now, known := a.viewer(r); return known && now == v }
			next.ServeHTTP(w, r.WithContext(context.WithValue(WithViewer(r.Context(), v), stillKey{}, still)))
		case !v.TLS:
			http.Error(w, a.whyRefused(r), http.StatusForbidden)
		case a.operators.Load().none():
			http.Error(w, "the page and the API answer other machines only after sign-in, and nobody can sign in: set admin.tokenFile or admin.certificateFile", http.StatusForbidden)
		case api:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "sign in first: send the header Authorization: Bearer TOKEN, or show an operator's certificate", http.StatusUnauthorized)
		default:
			toSignIn(w, r)
		}
	}))
}

// Open returns a handler that passes on the requests of everybody who may sign in: those from this machine, and those
// over TLS. It is for what the page of the sign-in needs. The handler sees a zero [Viewer].
func (a *Access) Open(next http.Handler) http.Handler {
	return a.cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && !fromLoopback(r) {
			http.Error(w, a.whyRefused(r), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// whyRefused returns the answer to a request without TLS that is not from this machine: why it is
// refused, and what to do: use https, or which keys of the configuration to set.
func (a *Access) whyRefused(r *http.Request) string {
	switch {
	case a.opt.TLS:
		return "the page and the API answer other machines only over HTTPS and after sign-in: use an address that begins with https://"
	case remote(r).IsLoopback():
		return "the page and the API answer requests from this machine only under a name such as localhost or 127.0.0.1, and not through a proxy"
	}
	return "the page and the API answer other machines only over HTTPS and after sign-in: set admin.portUnification or admin.forceHttps, and admin.tokenFile or admin.certificateFile"
}

// viewer returns who sent a request. known is false if it shows a token that no operator has.
func (a *Access) viewer(r *http.Request) (v Viewer, known bool) {
	v = Viewer{Loopback: fromLoopback(r), TLS: r.TLS != nil}
	if !v.Loopback && !v.TLS {
		return v, true // its token, certificate or cookie counts only over TLS
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		v.Operator, _, known = a.login(r, token)
		return v, known
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		v.Operator = a.operators.Load().subjects[secure.NameOf(r.TLS.PeerCertificates[0])]
	}
	if c, err := r.Cookie(cookieName(r)); err == nil && v.Operator == "" {
		if k, ok := a.sessions.find(c.Value, a.now()); ok {
			v.Operator = k.name
		}
	}
	return v, true
}

// login returns the operator with a token. It waits if logins from the address have failed.
func (a *Access) login(r *http.Request, token string) (name string, sum tokenSum, ok bool) {
	from := remote(r)
	if wait := a.opt.Delay(from); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return "", sum, false
		}
	}
	name, sum, ok = a.operators.Load().byToken(token)
	if !ok {
		a.opt.Failed(from)
	}
	return name, sum, ok
}

// remote returns the address from which a request came.
func remote(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// fromLoopback reports whether a request comes from this machine and its Host header names this
// machine. A request that a proxy has passed on comes from somewhere else.
func fromLoopback(r *http.Request) bool {
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(header)) > 0 {
			return false
		}
	}
	return remote(r).IsLoopback() && IsLoopbackHost(r.Host)
}

// MisnamesLoopback reports whether a request comes from a loopback address, but its Host header names
// another host. A web page of another site causes such a request if the name of the site resolves to
// this machine.
func MisnamesLoopback(r *http.Request) bool {
	return remote(r).IsLoopback() && !IsLoopbackHost(r.Host)
}

// IsLoopbackHost reports whether a Host header holds a loopback name or address.
func IsLoopbackHost(host string) bool {
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

// cookieName returns the name of the cookie of a session on the port of a request.
func cookieName(r *http.Request) string {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return cookieStem + at.AddrPort().String()[strings.LastIndexByte(at.AddrPort().String(), ':')+1:]
	}
	return cookieStem + "0"
}
