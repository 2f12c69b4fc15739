package page

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/view"
)

// whoOf returns the viewer for whom a page is made.
func whoOf(r *http.Request) view.Who {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return view.Who{Addr: from.Addr(), Super: access.ViewerOf(r.Context()).MayChange()}
}

// overviewContent holds what the first page shows.
type overviewContent struct {
	*view.Ensemble
	Leads bool          // this server leads
	Next  []view.Member // servers to which leadership can be transferred
	Wrong []string      // what an operator should look at
}

func (p *Page) overview(r *http.Request) (any, error) {
	e := p.o.View.Ensemble(r.Context())
	c := overviewContent{Ensemble: e, Leads: !e.Standalone && e.Leader != nil && *e.Leader == e.Self}
	for _, m := range e.Servers {
		name := "Server " + strconv.FormatInt(m.ID, 10)
		if e.Standalone {
			name = "This server"
		}
		switch {
		case m.Error != "":
			c.Wrong = append(c.Wrong, name+" does not answer: "+m.Error+".")
		case !m.Serves():
			c.Wrong = append(c.Wrong, strings.TrimSpace(name+" serves no writes: it is "+m.Mode+". "+sentence(m.Reason)))
		case m.Reason != "":
			c.Wrong = append(c.Wrong, name+" serves only in part: "+sentence(m.Reason))
		}
		if !m.Self && m.Mode == "follower" && m.Role == "participant" {
			c.Next = append(c.Next, m)
		}
	}
	return c, nil
}

// treeContent holds what the tree browser shows.
type treeContent struct {
	*view.Node
	Crumbs   []crumb
	Prefix   string
	Encoding string // in which the data can be edited: text or hex; empty: it cannot
	CRLF     bool   // the data has line ends of Windows, which an edit must keep
}

// The encodings in which data can be edited.
const (
	encodingText = "text"
	encodingHex  = "hex"
)

// encodingOf returns the encoding in which data can be edited; empty: it cannot, because not all of it is shown.
func encodingOf(d view.Data) string {
	switch {
	case d.Shown < d.Bytes:
		return ""
	case d.Hex == "" && keepsLineEnds(d.Text):
		return encodingText
	}
	return encodingHex
}

// keepsLineEnds reports whether a browser keeps the line ends of a text. It sends all of them as one kind, so a text
// with two kinds, or with a CR alone, would change when it is edited.
func keepsLineEnds(text string) bool {
	rest := strings.ReplaceAll(text, "\r\n", "")
	return !strings.Contains(rest, "\r") && (len(rest) == len(text) || !strings.Contains(rest, "\n"))
}

// crumb is one step of a path.
type crumb struct{ Name, Path string }

// crumbs returns the steps from the root to a path.
func crumbs(path string) []crumb {
	list := []crumb{{"/", "/"}}
	for i := 1; i < len(path); i++ {
		end := strings.IndexByte(path[i:], '/')
		if end < 0 {
			end = len(path) - i
		}
		list = append(list, crumb{path[i : i+end], path[:i+end]})
		i += end
	}
	return list
}

func (p *Page) tree(r *http.Request) (any, error) {
	q := r.URL.Query()
	path := pathOf(q)
	n, err := p.o.View.Node(r.Context(), whoOf(r), path, view.Listing{Prefix: q.Get("prefix"), After: q.Get("after")})
	if err != nil {
		return nil, err
	}
	return treeContent{Node: n, Crumbs: crumbs(path), Prefix: q.Get("prefix"), Encoding: encodingOf(n.Data),
		CRLF: strings.Contains(n.Data.Text, "\r\n")}, nil
}

// pathOf returns the path in a query. A slash at its end, and a missing one at its beginning, are
// corrected, because people type paths.
func pathOf(q url.Values) string {
	path := "/" + strings.Trim(q.Get("path"), "/")
	return path
}

// searchContent holds what a search shows.
type searchContent struct {
	*view.Found
	Crumbs []crumb
}

func (p *Page) search(r *http.Request) (any, error) {
	q := r.URL.Query()
	below := pathOf(q)
	f, err := p.o.View.Search(r.Context(), whoOf(r), below, q.Get("text"))
	if err != nil {
		return nil, err
	}
	return searchContent{f, crumbs(below)}, nil
}

// historyContent holds what the history of a znode shows.
type historyContent struct {
	*view.History
	Crumbs []crumb
}

func (p *Page) history(r *http.Request) (any, error) {
	path := pathOf(r.URL.Query())
	h, err := p.o.View.History(r.Context(), whoOf(r), path)
	if err != nil {
		return nil, err
	}
	return historyContent{h, crumbs(path)}, nil
}

// recipesContent holds what the page of recipes shows.
type recipesContent struct {
	*view.Recipes
	Crumbs []crumb
}

func (p *Page) recipes(r *http.Request) (any, error) {
	below := pathOf(r.URL.Query())
	found, err := p.o.View.Recipes(r.Context(), whoOf(r), below)
	if err != nil {
		return nil, err
	}
	return recipesContent{found, crumbs(below)}, nil
}

// sessionsContent holds what the page of sessions shows.
type sessionsContent struct {
	*view.Sessions
	Orders      []string
	Previous    *int
	Sessionless int // connections without a session
}

func (p *Page) sessions(r *http.Request) (any, error) {
	q := r.URL.Query()
	offset, err := strconv.Atoi(q.Get("offset"))
	if err != nil {
		offset = 0
	}
	list, err := p.o.View.Sessions(view.Page{Sort: q.Get("sort"), Offset: offset})
	if err != nil {
		return nil, err
	}
	c := sessionsContent{Sessions: list, Orders: view.Costs}
	if offset > 0 {
		before := max(0, offset-view.ChildrenDefault)
		c.Previous = &before
	}
	for _, conn := range p.o.Server.Connections() {
		if conn.Session == 0 {
			c.Sessionless++
		}
	}
	return c, nil
}

// watchesContent holds what the page of watches shows.
type watchesContent struct {
	*view.Watches
	Herds []view.HotWatch // the paths that have a warning
}

func (p *Page) watches(r *http.Request) (any, error) {
	w := p.o.View.Watches(whoOf(r))
	herds := slices.DeleteFunc(slices.Clone(w.Hot), func(h view.HotWatch) bool { return h.Warning == "" })
	return watchesContent{w, herds}, nil
}
