package page

import (
	"net/http"
	"strings"
)

// sheet is one page.
type sheet struct {
	Path     string // without a host; it is also the link in the menu
	Title    string
	template string // file below templates
	// content reads what the template shows. An error that is a *Problem or a *view.Error says
	// what to do. nil: the page is shown by other handlers.
	content func(p *Page, r *http.Request) (any, error)
}

// sheets are the pages of the menu, in its order.
var sheets = []sheet{
	{"/", "Overview", "overview.html", (*Page).overview},
	{"/elections", "Elections", "elections.html", (*Page).elections},
	{"/tree", "Tree", "tree.html", (*Page).tree},
	{"/recipes", "Recipes", "recipes.html", (*Page).recipes},
	{"/sessions", "Sessions", "sessions.html", (*Page).sessions},
	{"/watches", "Watches", "watches.html", (*Page).watches},
	{"/history", "The last hour", "hour.html", (*Page).lastHour},
}

// others are the pages that are not in the menu.
var others = []sheet{
	errorSheet,
	signInSheet,
	confirmSheet,
	{"/tree/search", "Search", "search.html", (*Page).search},
	{"/tree/history", "History of a znode", "history.html", (*Page).history},
}

// The pages that handlers show in place of the one that was asked for.
var (
	errorSheet   = sheet{Title: "Error", template: "error.html"}
	signInSheet  = sheet{Title: "Sign in", template: "signin.html"}
	confirmSheet = sheet{Title: "Confirm", template: "confirm.html"}
)

// pattern returns the pattern of a page for http.ServeMux.
func (s sheet) pattern() string {
	if s.Path == "/" {
		return "GET /{$}"
	}
	return "GET " + s.Path
}

// menu returns the path of the page in the menu to which a page belongs.
func (s sheet) menu() string {
	if rest, ok := strings.CutPrefix(s.Path, "/tree/"); ok && rest != "" {
		return "/tree"
	}
	return s.Path
}
