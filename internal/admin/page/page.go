package page

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/history"
	"bellwether/internal/admin/operate"
	"bellwether/internal/admin/view"
	"bellwether/internal/server"
)

//go:embed templates/*.html
var templates embed.FS

// Options are the parameters of the page. Server, View and Changes are required.
type Options struct {
	Server  *server.Server
	View    *view.View
	Changes *operate.Changes
	History *history.History // nil: the page of the last hour says that there is none
	Version string           // version of the program, for the foot of each page
	Log     *slog.Logger     // nil: nothing is logged
}

// Page is the handler of all pages.
type Page struct {
	o     Options
	mux   *http.ServeMux
	views map[string]*template.Template // by name of the template
}

// New returns the handler of the page. It must be behind access.Access.Guard.
func New(o Options) (*Page, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Page{o: o, mux: http.NewServeMux(), views: map[string]*template.Template{}}
	for _, one := range slices.Concat(sheets, others) {
		t, err := template.New("layout.html").Funcs(funcs).ParseFS(templates, "templates/layout.html", "templates/parts.html", "templates/"+one.template)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", one.template, err)
		}
		p.views[one.template] = t
	}
	for _, one := range slices.Concat(sheets, others) {
		if one.content == nil {
			continue
		}
		p.mux.HandleFunc(one.pattern(), func(w http.ResponseWriter, r *http.Request) { p.show(w, r, one) })
	}
	p.mux.HandleFunc("GET "+assetsPath+"{name}", serveAsset)
	p.mux.HandleFunc("POST /theme", setTheme)
	p.mux.HandleFunc("POST /change/{change}", p.change)
	p.mux.HandleFunc("/", p.unknown)
	return p, nil
}

// unknown answers a request that belongs to no page, or that is sent to a page.
func (p *Page) unknown(w http.ResponseWriter, r *http.Request) {
	for _, one := range slices.Concat(sheets, others) {
		if one.Path == r.URL.Path {
			w.Header().Set("Allow", "GET, HEAD")
			p.fail(w, r, &Problem{Status: http.StatusMethodNotAllowed, What: "This page takes no forms.", Do: "Open it from the menu."})
			return
		}
	}
	p.fail(w, r, &Problem{Status: http.StatusNotFound, What: "There is no such page.", Do: "Choose a page from the menu."})
}

// ServeHTTP answers a request for a page or for a file of a page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w.Header())
	p.mux.ServeHTTP(w, r)
}

// secureHeaders sets headers by which a page loads nothing from other sites, and other sites cannot show
// it in a frame.
func secureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Problem is an error that a page shows: what is wrong and what to do.
type Problem struct {
	Status int
	What   string
	Where  string // what it is about, such as a path; may be empty
	Do     string
}

func (e *Problem) Error() string { return strings.TrimSpace(e.What + " " + e.Do) }

// frame holds what layout.html needs, around the content of a page.
type frame struct {
	Title   string
	At      string // path of the page in the menu
	Here    string // path and query of the request, for links back
	Theme   string // light, dark, or empty for the system's
	Menu    []sheet
	Done    string // what the viewer has just changed; empty: nothing
	Viewer  access.Viewer
	Server  string // the name of this server, such as server 2
	Old     bool   // the server has no leader, so what it knows may be out of date
	Version string
	Content any
}

// show renders a page.
func (p *Page) show(w http.ResponseWriter, r *http.Request, one sheet) {
	content, err := one.content(p, r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.render(w, r, http.StatusOK, one, content)
}

// fail renders an error as a page.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	problem := problemOf(err)
	p.render(w, r, problem.Status, errorSheet, problem)
}

// problemOf returns an error in the form in which a page shows it.
func problemOf(err error) *Problem {
	var problem *Problem
	if errors.As(err, &problem) {
		return problem
	}
	var known *view.Error
	if errors.As(err, &known) {
		status := map[view.Kind]int{view.Wrong: http.StatusBadRequest, view.Missing: http.StatusNotFound, view.Forbidden: http.StatusForbidden,
			view.Conflict: http.StatusConflict, view.Busy: http.StatusServiceUnavailable, view.Failed: http.StatusInternalServerError}[known.Kind]
		return &Problem{Status: status, What: sentence(known.What), Where: known.Where, Do: sentence(known.Do)}
	}
	return &Problem{Status: http.StatusInternalServerError, What: sentence(err.Error()), Do: "Look into the log of the server."}
}

// sentence makes a sentence of a text without a capital and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, one sheet, content any) {
	f := frame{
		Title: one.Title, At: one.menu(), Here: here(r), Theme: themeOf(r), Menu: sheets, Done: doneText(r), Viewer: access.ViewerOf(r.Context()),
		Server: p.serverName(), Old: p.alone(), Version: p.o.Version, Content: content,
	}
	var b bytes.Buffer
	if err := p.views[one.template].Execute(&b, f); err != nil {
		p.o.Log.Error("a page cannot be shown", "page", one.Path, "err", err)
		http.Error(w, "the page cannot be shown: look into the log of the server", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	send(w, r, status, b.Bytes())
}

// alone reports whether the server is a member of an ensemble and follows no leader.
func (p *Page) alone() bool {
	serves, readOnly := p.o.Server.Service()
	return !p.o.Server.Config().Standalone() && (!serves || readOnly)
}

// serverName returns the name of this server as the page shows it.
func (p *Page) serverName() string {
	if c := p.o.Server.Config(); !c.Standalone() {
		return fmt.Sprintf("server %d", c.Ensemble.ID)
	}
	return "standalone server"
}

// here returns the local address of a request for links and forms that lead back to it.
func here(r *http.Request) string {
	if r.Method != http.MethodGet {
		return "/"
	}
	return r.URL.RequestURI()
}

// localPath returns to if it is an address on this server, and "/" otherwise, so that a form cannot lead to
// another site.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") || path.Clean(to) == "." {
		return "/"
	}
	return to
}
