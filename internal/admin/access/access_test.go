package access

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const token = "0123456789abcdef-alice"

// write makes a file that names operators.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operators")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func open(t *testing.T, o Options) *Access {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask sends a request to a handler. change changes the request before; nil: it stays as it is.
func ask(h http.Handler, method, target, from string, change func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = from
	r.Host = "localhost:8080"
	r.TLS = nil
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func secured(r *http.Request) { r.TLS = &tls.ConnectionState{} }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
}

func both(all ...func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		for _, f := range all {
			f(r)
		}
	}
}

// TestGuard shows who sees the page and the API: from this machine everybody, from elsewhere only an operator over
// TLS.
func TestGuard(t *testing.T) {
	a := open(t, Options{TokenFile: write(t, "alice "+token)})
	nobody := open(t, Options{})
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := ViewerOf(r.Context())
		w.Header().Set("Operator", v.Operator)
		if v.MayChange() {
			w.Header().Set("Change", "yes")
		}
	})
	bearer := header("Authorization", "Bearer "+token)
	for _, c := range []struct {
		what, from string
		access     *Access
		api        bool
		change     func(*http.Request)
		status     int
		operator   string
		says       string
	}{
		{"loopback", "127.0.0.1:5", a, false, nil, 200, "", ""},
		{"loopback, IPv6", "[::1]:5", a, false, header("Host", "[::1]:8080"), 200, "", ""},
		{"loopback, IPv4 in IPv6", "[::ffff:127.0.0.1]:5", a, false, header("Host", "127.0.0.1"), 200, "", ""},
		{"loopback with a token", "127.0.0.1:5", a, true, bearer, 200, "alice", ""},
		{"loopback with a wrong token", "127.0.0.1:5", a, true, header("Authorization", "Bearer "+token+"x"), 401, "", "not known"},
		{"loopback without operators", "127.0.0.1:5", nobody, false, nil, 200, "", ""},
		{"the name of another site", "127.0.0.1:5", a, false, header("Host", "evil.example:8080"), 403, "", "localhost"},
		{"a name that begins like an address", "127.0.0.1:5", a, false, header("Host", "127.0.0.1.evil.example"), 403, "", ""},
		{"no name", "127.0.0.1:5", a, false, header("Host", ""), 403, "", ""},
		{"a proxy on this machine", "127.0.0.1:5", a, false, header("X-Forwarded-For", "127.0.0.1"), 403, "", "proxy"},
		{"a proxy that names itself", "127.0.0.1:5", a, false, header("Via", "1.1 x"), 403, "", "proxy"},
		{"elsewhere", "192.0.2.7:5", a, false, nil, 403, "", "admin.forceHttps"},
		{"elsewhere with a token in plain text", "192.0.2.7:5", a, true, bearer, 403, "", "HTTPS"},
		{"elsewhere over TLS, page", "192.0.2.7:5", a, false, secured, 303, "", ""},
		{"elsewhere over TLS, API", "192.0.2.7:5", a, true, secured, 401, "", "Bearer"},
		{"elsewhere over TLS with a token", "192.0.2.7:5", a, true, both(secured, bearer), 200, "alice", ""},
		{"elsewhere over TLS without operators", "192.0.2.7:5", nobody, false, secured, 403, "", "admin.tokenFile"},
		{"no address", "", a, false, nil, 403, "", ""},
	} {
		w := ask(c.access.Guard(seen, c.api), "GET", "/x?a=b", c.from, c.change)
		if w.Code != c.status || w.Header().Get("Operator") != c.operator || !strings.Contains(w.Body.String(), c.says) || (w.Header().Get("Change") == "yes") != (c.operator != "") {
			t.Errorf("%s: %d %q %q", c.what, w.Code, w.Header().Get("Operator"), w.Body)
		}
		if c.status == 303 && w.Header().Get("Location") != "/signin?next=%2Fx%3Fa%3Db" {
			t.Errorf("%s: to %s", c.what, w.Header().Get("Location"))
		}
	}
}

// TestCrossSiteRequestsAreRefused shows that a web page of another site cannot change anything, even if an operator
// is signed in.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	a := open(t, Options{TokenFile: write(t, "alice "+token)})
	reached := false
	h := a.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }), true)
	for _, change := range []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-site"), header("Origin", "https://evil.example"), header("Origin", "null")} {
		if w := ask(h, "POST", "/v1/x", "127.0.0.1:5", change); w.Code != 403 || reached {
			t.Errorf("POST: %d, reached %v", w.Code, reached)
		}
		for _, path := range []string{"/signin", "/signout"} {
			if w := ask(map[string]http.Handler{"/signin": a.SignIn(nil), "/signout": a.SignOut()}[path], "POST", path, "127.0.0.1:5", change); w.Code != 403 {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
	}
	if ask(h, "POST", "/v1/x", "127.0.0.1:5", header("Sec-Fetch-Site", "same-origin")); !reached {
		t.Error("the page's own request is refused")
	}
}

// signIn posts a token and returns the answer.
func signIn(a *Access, text, next string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/signin", strings.NewReader(url.Values{"token": {text}, "next": {next}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr, r.Host, r.TLS = "127.0.0.1:5", "localhost", nil
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	a.SignIn(nil).ServeHTTP(w, r)
	return w
}

// operator returns who is signed in by the cookie of an answer.
func operator(a *Access, w *httptest.ResponseRecorder) (name string) {
	ask(a.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { name = ViewerOf(r.Context()).Operator }), false), "GET", "/", "127.0.0.1:5", func(r *http.Request) {
		for _, c := range w.Result().Cookies() {
			r.AddCookie(c)
		}
	})
	return name
}

// TestSignIn shows that a sign-in sets a cookie, that a session ends by sign-out and after 12 hours, and that an
// unknown token is refused.
func TestSignIn(t *testing.T) {
	failed := 0
	a := open(t, Options{TokenFile: write(t, "# operators\n\nalice "+token+"\nbob\t"+token+"2\n"), Failed: func(netip.Addr) { failed++ }})
	now := time.Now()
	a.now = func() time.Time { return now }
	w := signIn(a, token, "/sessions?x=1", nil)
	cookies := w.Result().Cookies()
	if w.Code != 303 || w.Header().Get("Location") != "/sessions?x=1" || len(cookies) != 1 {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.MaxAge != 12*3600 || len(c.Value) < 40 {
		t.Errorf("cookie %+v", c)
	}
	if name := operator(a, w); name != "alice" {
		t.Errorf("signed in as %q", name)
	}
	if c := signIn(a, token, "", secured).Result().Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("over TLS: %v", c)
	}
	if w := signIn(a, "wrong", "/", nil); w.Code != 401 || len(w.Result().Cookies()) != 0 || !strings.Contains(w.Body.String(), "The token is not known.") || failed != 1 {
		t.Errorf("wrong token: %d %s", w.Code, w.Body)
	}
	if out := ask(a.SignOut(), "POST", "/signout", "127.0.0.1:5", func(r *http.Request) { r.AddCookie(cookies[0]) }); out.Code != 303 || out.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("sign-out: %d %v", out.Code, out.Header())
	}
	if name := operator(a, w); name != "" {
		t.Errorf("signed in as %q after the sign-out", name)
	}
	w = signIn(a, token+"2", "/", nil)
	if now = now.Add(sessionTime - time.Second); operator(a, w) != "bob" {
		t.Error("the session ends too early")
	}
	if now = now.Add(2 * time.Second); operator(a, w) != "" {
		t.Error("the session does not end")
	}
}

// TestSignInFromElsewhereNeedsTLS shows that a token is not accepted in plain text from another machine, nor from
// a page with the name of another site.
func TestSignInFromElsewhereNeedsTLS(t *testing.T) {
	a := open(t, Options{TokenFile: write(t, "alice "+token)})
	elsewhere := func(r *http.Request) { r.RemoteAddr = "192.0.2.7:5" }
	for _, change := range []func(*http.Request){elsewhere, header("Host", "evil.example")} {
		if w := signIn(a, token, "/", change); w.Code != 403 || len(w.Result().Cookies()) > 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := signIn(a, token, "/", both(elsewhere, secured)); w.Code != 303 {
		t.Errorf("over TLS: %d %s", w.Code, w.Body)
	}
	if w := signIn(open(t, Options{}), token, "/", nil); w.Code != 403 || !strings.Contains(w.Body.String(), "admin.tokenFile") {
		t.Errorf("without operators: %d %s", w.Code, w.Body)
	}
}

// TestNextStaysHere shows that a sign-in leads to no other site.
func TestNextStaysHere(t *testing.T) {
	for next, want := range map[string]string{
		"/a?b=c#d": "/a?b=c#d", "": "/", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/", "/\t/evil.example": "/", "javascript:alert(1)": "/", "a": "/", "/%2f/x": "/%2f/x",
	} {
		if got := local(next); got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}

// TestSessionsAreBounded shows that the oldest session ends when there are too many.
func TestSessionsAreBounded(t *testing.T) {
	s := sessions{all: map[tokenSum]session{}}
	now := time.Now()
	first := s.begin("alice", tokenSum{}, now)
	var last string
	for i := range sessionsMax {
		last = s.begin("bob", tokenSum{}, now.Add(time.Duration(i+1)*time.Second))
	}
	if _, ok := s.find(first, now); ok || len(s.all) != sessionsMax {
		t.Errorf("%d sessions, the first is there: %v", len(s.all), ok)
	}
	if _, ok := s.find(last, now); !ok {
		t.Error("the last session is not there")
	}
}

// TestReload shows that a token that is taken away signs its operator out, and that a bad file changes nothing.
func TestReload(t *testing.T) {
	file := write(t, "alice "+token+"\nbob "+token+"2")
	a := open(t, Options{TokenFile: file})
	alice, bob := signIn(a, token, "/", nil), signIn(a, token+"2", "/", nil)
	if err := os.WriteFile(file, []byte("alice short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err == nil || operator(a, alice) != "alice" {
		t.Errorf("a bad file: %v, %q", err, operator(a, alice))
	}
	if err := os.WriteFile(file, []byte("alice "+token+"3\nbob "+token+"2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err != nil || operator(a, alice) != "" || operator(a, bob) != "bob" {
		t.Errorf("%v, %q, %q", err, operator(a, alice), operator(a, bob))
	}
	if w := signIn(a, token, "/", nil); w.Code != 401 {
		t.Errorf("the old token: %d", w.Code)
	}
}

// TestStill shows that Still is false for the request of an operator who was signed out meanwhile, and only for it.
func TestStill(t *testing.T) {
	file := write(t, "alice "+token)
	a := open(t, Options{TokenFile: file})
	contexts := map[string]context.Context{}
	for _, name := range []string{"alice", "nobody"} {
		change := map[string]func(*http.Request){"alice": both(secured, header("Authorization", "Bearer "+token))}[name]
		ask(a.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { contexts[name] = r.Context() }), true), "GET", "/v1/events", "127.0.0.1:5", change)
		if contexts[name] == nil || !Still(contexts[name]) {
			t.Errorf("%s: %v", name, contexts[name])
		}
	}
	if err := os.WriteFile(file, []byte("bob "+token+"2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err != nil || Still(contexts["alice"]) || !Still(contexts["nobody"]) {
		t.Errorf("%v, alice %v, nobody %v", err, Still(contexts["alice"]), Still(contexts["nobody"]))
	}
}

// TestBadFiles shows the errors of files of operators. None repeats a token.
func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "has no line of the form NAME TOKEN",
		"alice":                                  "line 1 of",
		"alice tooshort":                         "at least 16 are needed",
		"al/ice 0123456789abcdef":                "a name has 1 to 64 letters",
		"alice 0123456789abcdef x":               "more than a name and a token",
		"a 0123456789abcdef\nb 0123456789abcdef": "has the token of another line",
		"alice " + strings.Repeat("x", 1025):     "more than 1024 characters",
		"a 0123456789abcdef\nb " + strings.Repeat("x", 70_000): "line 2 of",
	} {
		_, err := New(Options{TokenFile: write(t, text)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789abcdef") || !strings.HasPrefix(err.Error(), "admin.tokenFile: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := New(Options{TokenFile: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a missing file is accepted")
	}
	if _, err := New(Options{CertificateFile: write(t, "alice hello")}); err == nil || !strings.Contains(err.Error(), "CN=alice") {
		t.Errorf("subject: %v", err)
	}
}

// TestLoginsWait shows that a login waits as long as the server says, and ends with its request.
func TestLoginsWait(t *testing.T) {
	a := open(t, Options{TokenFile: write(t, "alice "+token), Delay: func(netip.Addr) time.Duration { return time.Hour }})
	w := signIn(a, token, "/", func(r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Millisecond)
		t.Cleanup(cancel)
		*r = *r.WithContext(ctx)
	})
	if w.Code != 401 {
		t.Errorf("status %d", w.Code)
	}
}
