package web

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"bellwether/internal/admin/access"
)

// routes returns the handler of all requests.
func (p *Port) routes() http.Handler {
	mux := http.NewServeMux()
	plug := func(pattern string, h http.Handler) {
		if h != nil {
			mux.Handle(pattern, h)
		}
	}
	plug("/livez", http.HandlerFunc(p.livez))
	plug("/readyz", http.HandlerFunc(p.readyz))
	plug("/metrics", p.loaded(p.opt.Metrics))
	plug("/v1/", p.guarded(p.opt.API, true))
	plug("/signin", p.access.SignIn(p.opt.SignIn))
	plug("/signout", p.access.SignOut())
	plug("/", p.guarded(p.opt.Page, false))
	if p.opt.Page != nil {
		mux.Handle("/assets/", p.access.Open(p.opt.Page))
		mux.Handle("/theme", p.access.Open(p.opt.Page))
	}
	commands := p.opt.Admin.Commands(p.opt.Server, p.cfg.CommandURL, p.cfg.IdleTimeout)
	return p.recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.head(w, r)
		p.arriving(r)
		if rest, ok := strings.CutPrefix(r.URL.Path, p.cfg.CommandURL); ok && (rest == "" || rest[0] == '/') {
			if p.mayCommand(w, r) {
				commands.ServeHTTP(w, r)
			}
			return
		}
		if p.acceptable(w, r) {
			r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
			mux.ServeHTTP(w, r)
		}
	}))
}

// guarded returns a handler that passes on only the requests that package access allows, and
// answers them with 503 until the data is loaded.
func (p *Port) guarded(h http.Handler, api bool) http.Handler {
	if h == nil {
		return nil
	}
	return p.access.Guard(p.loaded(h), api)
}

// loaded returns a handler that answers with 503 until the data is loaded, and passes requests
// to h afterwards.
func (p *Port) loaded(h http.Handler) http.Handler {
	if h == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.opt.Server.Loaded() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the server is loading its data", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

const (
	// bodyMax is the largest body of a request in bytes, except for restore. The data of a znode
	// can have 1 MiB, and JSON or a form can make it six times as long. The API and
	// the page have smaller limits, with errors that name them.
	bodyMax = 8 << 20
	// replyTime is how long a client may take to read an answer if no idle timeout is
	// configured. A handler that sends for longer, such as an event stream, sets the write
	// deadline itself before each write, with http.ResponseController.
	replyTime = time.Minute
)

// head sets the deadlines of a request, and the headers that every answer has.
func (p *Port) head(w http.ResponseWriter, r *http.Request) {
	end := time.Now().Add(cmp.Or(max(p.cfg.IdleTimeout, 0), replyTime))
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(end) // the connection has ended if this fails
	_ = control.SetWriteDeadline(end)
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=86400; includeSubDomains")
	}
}

// acceptable reports whether handlers may see a request. If not, it has answered the request.
func (p *Port) acceptable(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method == http.MethodTrace:
		w.WriteHeader(http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, fmt.Sprintf("the method %.20q is not allowed: use a method that the header Allow names", r.Method), http.StatusMethodNotAllowed)
	case !plainPath(r.URL.Path):
		http.Error(w, "the path of the URL may not contain //, . or .. as a part, a backslash or a control character", http.StatusBadRequest)
	default:
		return true
	}
	return false
}

// plainPath reports whether a path can be read in one way only: it has no empty, "." or ".." part,
// no backslash and no control character.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}

// mayCommand reports whether a request may use a command. It refuses a request that may come from a
// web page of another site. If the name of that site resolves to a loopback address, the browser
// takes this server for the site.
func (p *Port) mayCommand(w http.ResponseWriter, r *http.Request) bool {
	_, authenticates := r.Header["Authorization"]
	if !access.MisnamesLoopback(r) || !p.loopback && !authenticates {
		return true
	}
	http.Error(w, "a request from this machine must name the host localhost or a loopback address, such as 127.0.0.1", http.StatusForbidden)
	return false
}

// recovered answers a request with 500 if its handler panics, and logs that.
func (p *Port) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			why := recover()
			if why == nil {
				return
			}
			if why == http.ErrAbortHandler {
				panic(why)
			}
			p.opt.Log.Error("a request to the admin server failed", "path", r.URL.Path, "err", why, "stack", string(debug.Stack()))
			http.Error(w, "internal error", http.StatusInternalServerError)
		}()
		next.ServeHTTP(w, r)
	})
}
