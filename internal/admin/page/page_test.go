package page

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/history"
	"bellwether/internal/admin/operate"
	"bellwether/internal/admin/view"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a standalone server until the test ends.
func serve(t *testing.T) *server.Server {
	t.Helper()
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return s
}

// pageOf returns the page of a server.
func pageOf(t *testing.T, s *server.Server) *Page {
	t.Helper()
	p, err := New(Options{Server: s, View: view.New(s, "1"), Changes: operate.New(s), History: history.New(s), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask sends a request of a viewer to the page.
func ask(p *Page, v access.Viewer, method, target, form string, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), v)))
	return w.Result()
}

// looker is a viewer on the machine of the server who is not signed in.
var looker = access.Viewer{Loopback: true}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What the content security policy forbids: scripts and styles within a page.
var (
	quoted = regexp.MustCompile(`"[^"]*"`)
	inline = regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|<[a-z][^>]*\s(?:on[a-z]+|style)=`)
	active = regexp.MustCompile(`(?i)(?:href|src|action)="\s*(?:javascript|data|vbscript):`)
)

// forbidden returns the first part of a page that is forbidden.
func forbidden(body string) string {
	return inline.FindString(quoted.ReplaceAllString(body, `""`)) + active.FindString(body)
}

// outside matches what would be loaded from another place.
var outside = regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`)

// TestPagesAreComplete shows that each page of the menu is answered, marks itself in the menu,
// has no inline script or style, and loads nothing from elsewhere.
func TestPagesAreComplete(t *testing.T) {
	p := pageOf(t, serve(t))
	for _, one := range sheets {
		r := ask(p, looker, "GET", one.Path, "")
		body := bodyOf(t, r)
		if r.StatusCode != 200 || !strings.Contains(body, `<a href="`+one.Path+`" aria-current="page">`+one.Title+`</a>`) {
			t.Errorf("%s: %s\n%s", one.Path, r.Status, body)
		}
		if strings.Count(body, "<h1") != 1 || !strings.HasSuffix(body, "</html>\n") {
			t.Errorf("%s is not one whole page with one heading:\n%s", one.Path, body)
		}
		if at := forbidden(body) + outside.FindString(body); at != "" {
			t.Errorf("%s contains %q", one.Path, at)
		}
		if got := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self';") {
			t.Errorf("%s: Content-Security-Policy %q", one.Path, got)
		}
	}
}

// TestUnknownPages shows that an address without a page answers 404, even if its path is written to reach a file, and that
// a page takes no forms.
func TestUnknownPages(t *testing.T) {
	p := pageOf(t, serve(t))
	for _, path := range []string{"/nothing", "/assets/", "/assets/nothing.js", "/assets/..%2fpage.go", "/assets/%2e%2e/layout.html", "/templates/layout.html", "/%00", "/.git/config"} {
		if r := ask(p, looker, "GET", path, ""); r.StatusCode != 404 {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	for _, path := range []string{"/", "/tree", "/tree/search"} {
		if r := ask(p, looker, "POST", path, ""); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("a form to %s: %s", path, r.Status)
		}
	}
}

// TestAssetsAreKept shows that browsers may keep a file that a page names with its version, and must ask again for
// a file that is requested without a version.
func TestAssetsAreKept(t *testing.T) {
	p := pageOf(t, serve(t))
	for name, a := range assets {
		r := ask(p, looker, "GET", assetURL(name), "")
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != a.kind || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s %v", name, r.Status, r.Header)
		}
		if r := ask(p, looker, "GET", assetsPath+name, ""); r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s without a version: %v", name, r.Header)
		}
	}
}

// TestAnswersAreCompressed shows that pages and files are compressed for browsers that accept gzip, and only for them,
// and that both forms are the same.
func TestAnswersAreCompressed(t *testing.T) {
	p := pageOf(t, serve(t))
	for _, target := range []string{"/tree", "/nothing", assetURL("style.css"), assetURL("live.js"), assetURL("bell.svg")} {
		plain := bodyOf(t, ask(p, looker, "GET", target, ""))
		for accepts, want := range map[string]bool{"": false, "br, gzip": true, "gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "identity": false, "GZIP": true} {
			r := httptest.NewRequest("GET", target, nil)
			r.Header.Set("Accept-Encoding", accepts)
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), looker)))
			got, size := w.Body.String(), w.Body.Len()
			if encoded := w.Header().Get("Content-Encoding") == "gzip"; encoded != (want && len(plain) >= compressMin) || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q: %v", target, accepts, w.Header())
			} else if encoded {
				z, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(z)
				if got = string(b); err != nil || size > len(plain)/2 {
					t.Errorf("%s: %v", target, err)
				}
			}
			if got != plain {
				t.Errorf("%s for %q differs:\n%s", target, accepts, got)
			}
		}
	}
}

// TestThemeIsKept shows that the theme is kept in a cookie, and that the form leads only to pages of this server.
func TestThemeIsKept(t *testing.T) {
	p := pageOf(t, serve(t))
	for _, c := range []struct{ theme, back, want, to string }{
		{"dark", "/tree?path=%2Fa", "dark", "/tree?path=%2Fa"},
		{"light", "//evil.example/", "light", "/"},
		{"", "https://evil.example/", "", "/"},
		{"purple", "/\\evil.example", "", "/"},
	} {
		r := ask(p, looker, "POST", "/theme", url.Values{"theme": {c.theme}, "back": {c.back}}.Encode())
		set := r.Cookies()
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != c.to || len(set) != 1 || set[0].Value != c.want {
			t.Fatalf("%+v: %s %v", c, r.Status, r.Header)
		}
		body := bodyOf(t, ask(p, looker, "GET", "/", "", set[0]))
		if has := strings.Contains(body, `<html lang="en" data-theme="`+c.want+`">`); has != (c.want != "") {
			t.Errorf("%+v: the page begins with %s", c, body[:80])
		}
	}
}

// TestVisible shows that no character of a text from a client stays invisible on the page.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain/ü/日本":             "plain/ü/日本",
		"a\x00b\nc\x7f":          `a\x00b\nc\x7f`,
		"\u202egnp.exe":          `\u202egnp.exe`,
		"a\u200bb\u00a0c\ufeff":  `a\u200bb\u00a0c\ufeff`,
		"\xff\xfe":               `\xff\xfe`,
		"<script>":               "<script>", // html/template escapes it
		strings.Repeat("é", 200): strings.Repeat("é", 150) + "… (400 B in all)",
	} {
		if got := visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestLines shows that data which is text keeps its line ends and tabs, and nothing else that is invisible.
func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n\tc":                 "a\tb\n\tc",
		`C:\temp`:                   `C:\temp`,
		"a\rb\x00":                  `a\rb\x00`,
		strings.Repeat("é", 400):    strings.Repeat("é", 400),
		strings.Repeat("\x80", 700): strings.Repeat(`\x80`, 700),
	} {
		if got := lines(text); got != want {
			t.Errorf("lines(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestFigures shows how the page prints numbers, sizes and durations.
func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		count(7): "7", count(1234): "1234", count(12345): "12\u202f345", count(-1234567): "−1\u202f234\u202f567",
		byteCount(1023): "1023 B", byteCount(1024): "1.0 KiB", byteCount(1<<20 - 1): "1.0 MiB", byteCount(5 << 40): "5.0 TiB",
		plural(1, "znode"): "1\u00a0znode", plural(2, "znode"): "2\u00a0znodes",
		duration(59e9): "59 s", duration(61e9): "1 min 1 s", duration(3661e9): "1 h 1 min", duration(90000e9): "1 d 1 h", duration(-1): "0 s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
