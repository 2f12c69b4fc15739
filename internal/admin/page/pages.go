package page

import "net/http"

// sheet is one page of the menu.
type sheet struct {
	Path     string // without a host; it is also the link in the menu
	Title    string
	template string // file below templates
	// content reads what the template shows. An error that is a *Problem says what to do.
	content func(p *Page, r *http.Request) (any, error)
}

// sheets are all pages, in the order of the menu.
var sheets = []sheet{
	{"/", "Overview", "overview.html", (*Page).overview},
}

// errorSheet shows a Problem.
var errorSheet = sheet{Title: "Error", template: "error.html"}

func menu() []sheet { return sheets }

// pattern returns the pattern of a page for http.ServeMux.
func (s sheet) pattern() string {
	if s.Path == "/" {
		return "GET /{$}"
	}
	return "GET " + s.Path
}

// overview reads what the first page shows.
func (p *Page) overview(*http.Request) (any, error) { return p.o.Server.Status(), nil }
