package page

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bellwether/internal/admin/theatre"
	"bellwether/internal/ensemble"
)

// electionsContent is what the page of elections shows.
type electionsContent struct {
	Standalone bool
	Missing    []string // servers whose records could not be read, and why
	Left       string   // id of the first election that is shown
	Shown      []play
	List       []recorded // newest first
}

// Address returns the address of the page with the elections that it shows now. The page without their ids shows the
// last one, which is soon another.
func (c *electionsContent) Address() string {
	q := url.Values{}
	for _, one := range c.Shown {
		q.Set(one.Name, one.ShownID)
	}
	return "/elections?" + q.Encode()
}

// play is an election that is shown.
type play struct {
	theatre.Drawing
	*theatre.Election
	Name    string // begins the ids of its elements, so that two elections can be on one page
	ShownID string // names the election in links of this server
	Omitted string // says which votes are not drawn
}

// SVG returns the drawing for the template. Package theatre has escaped what servers say.
func (p play) SVG() template.HTML { return template.HTML(p.Drawing.SVG) } //nolint:gosec // see above

// recorded is a row of the list of elections.
type recorded struct {
	ID, Line, Servers string
	Began             time.Time
	Chosen            bool
}

// elections shows up to two elections, those that the request names or the last one, and
// the list of all.
func (p *Page) elections(r *http.Request) (any, error) {
	all := p.o.View.Elections(r.Context())
	c := &electionsContent{Standalone: p.o.Server.Config().Standalone(), Missing: all.Missing}
	chosen, self := map[string]bool{}, p.o.Server.Config().Ensemble.ID
	for _, side := range []string{"left", "right"} {
		id := r.URL.Query().Get(side)
		e := theatre.Find(all.List, id)
		switch {
		case e == nil && id != "":
			return nil, &Problem{Status: http.StatusNotFound, What: fmt.Sprintf("No server has a record of the election %s.", visible(id)),
				Do: "Servers keep their last elections in memory until they end. Choose one from the list on the page Elections."}
		case e == nil && side == "left" && len(all.List) > 0:
			e = lastOf(all.List)
		case e == nil:
			continue
		}
		if !chosen[e.ID()] {
			c.Shown = append(c.Shown, playOf(e, side, self))
			chosen[e.ID()] = true
		}
	}
	if len(c.Shown) > 0 {
		c.Left = c.Shown[0].ShownID
	}
	for i := range all.List {
		e := &all.List[len(all.List)-1-i]
		c.List = append(c.List, recorded{ID: e.IDFrom(self), Line: e.Line(), Servers: serverList(e.Servers()), Began: e.Began(), Chosen: chosen[e.ID()]})
	}
	return c, nil
}

// lastOf returns the last election in which more happened than that one server joined a
// leader. If there is none, it returns the last election.
func lastOf(all []theatre.Election) *theatre.Election {
	for i := range all {
		if e := &all[len(all)-1-i]; !e.Joined() {
			return e
		}
	}
	return &all[len(all)-1]
}

func playOf(e *theatre.Election, name string, self ensemble.ServerID) play {
	p := play{Drawing: e.Draw(name, false), Election: e, Name: name, ShownID: e.IDFrom(self)}
	var omitted []string
	if n := p.LeftOut; n > 0 {
		omitted = append(omitted, plural(int64(n), "vote")+" left out, because the drawing has room for no more.")
	}
	if n := p.Unrecorded; n > 0 {
		omitted = append(omitted, plural(int64(n), "vote")+" not recorded, because there were so many.")
	}
	p.Omitted = strings.Join(omitted, " ")
	return p
}

func serverList(ids []ensemble.ServerID) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprint(id))
	}
	if len(out) == 1 {
		return "server " + out[0]
	}
	return "servers " + strings.Join(out, ", ")
}
