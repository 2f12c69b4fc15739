package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"bellwether/internal/survey"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Recipes shows the elections, locks, queues and other recipes in a part of the tree.
type Recipes struct {
	Below     string     `json:"below"`
	Recipes   []Recipe   `json:"recipes"`
	Orphans   []Orphan   `json:"orphans"`
	Deadlocks []Deadlock `json:"deadlocks"`
	Visited   int        `json:"visited"`  // znodes that were read
	Complete  bool       `json:"complete"` // neither a limit nor an access-control list has hidden anything
}

// Recipe is one recipe in use.
type Recipe struct {
	Path    string        `json:"path"`
	Kind    string        `json:"kind"`
	Items   int           `json:"items,omitempty"`
	Leases  int           `json:"leases,omitempty"`
	Clients []Participant `json:"clients"` // in the order in which they get their turns
}

// Participant is a client that takes part in a recipe.
type Participant struct {
	State   string    `json:"state"`        // leads, holds, waits, works, is next, is in or coordinates
	ID      string    `json:"id,omitempty"` // the data of the bid, if it is text
	Bid     string    `json:"bid"`          // path of its znode
	Naming  string    `json:"naming"`       // the naming of the bids
	Token   string    `json:"token"`        // czxid of the bid, which fences off earlier holders
	Since   time.Time `json:"since"`
	Session string    `json:"session,omitempty"`
	Address string    `json:"address,omitempty"` // if it is connected to this server
	Behind  []string  `json:"behind,omitempty"`  // bids for which it waits
	AnyOf   bool      `json:"any_of,omitempty"`  // the client waits until one of these bids is gone, not all of them
}

// Orphan is a znode that will not disappear by itself, or that no client seems to own.
type Orphan struct {
	Path  string `json:"path"`
	Why   string `json:"why"`
	Token string `json:"token"` // its czxid
	Bid   bool   `json:"bid"`   // the znode is a bid, which can be kicked; otherwise it can be deleted
}

// Deadlock is a cycle of sessions that wait for each other.
type Deadlock struct {
	Circle []Link `json:"circle"`
}

// Link is one session of a deadlock. It holds the bid Holds, and waits with the bid Waits for the next session.
type Link struct {
	Session string `json:"session"`
	Holds   string `json:"holds"`
	Waits   string `json:"waits"`
}

// Limits of a survey.
const (
	surveyMax   = 20_000 // znodes that are read
	surveyDepth = 8      // levels
	surveyTime  = 2 * time.Second
	idMax       = 4 << 10 // bytes of the data of a bid
)

// Recipes finds the recipes at a path and below it.
func (v *View) Recipes(ctx context.Context, who Who, below string) (*Recipes, error) {
	if err := checkPath(below); err != nil {
		return nil, err
	}
	leave, err := v.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s := surveyor{v: v, ctx: ctx, t: v.srv.Tree(), r: who.reader(), end: time.Now().Add(surveyTime)}
	var beside []string
	if below != "/" {
		beside = s.names(parentOf(below))
	}
	if code := s.visit(below, beside, surveyDepth); code != wire.OK {
		return nil, treeError(code, below)
	}
	for _, suffix := range survey.Suffixes {
		if slices.Contains(beside, below[strings.LastIndexByte(below, '/')+1:]+suffix) {
			s.visit(below+suffix, beside, 0)
		}
	}
	return s.report(below), nil
}

// surveyor walks the tree and finds recipes.
type surveyor struct {
	v     *View
	ctx   context.Context
	t     *tree.Tree
	r     *reader
	end   time.Time
	read  int
	short bool // something was not read
	found []survey.Recipe
}

// over reports whether a limit is reached.
func (s *surveyor) over() bool {
	return s.read >= surveyMax || s.read%stopEvery == 0 && (time.Now().After(s.end) || s.ctx.Err() != nil)
}

// names lists the children of a znode, sorted. If there are more than the limit allows, the list is empty.
func (s *surveyor) names(path string) []string {
	names, _ := s.list(path)
	return names
}

func (s *surveyor) list(path string) ([]string, wire.Code) {
	var list tree.Listing
	code, ready := s.t.ChildrenReady(s.r, path, false, &list)
	if !ready {
		kept := s.t.EncodeNames(path)
		code = s.t.Children(s.r, path, false, &list)
		clear(kept)
	}
	if code != wire.OK {
		s.short = s.short || errors.Is(code, wire.ErrNoAuth)
		return nil, code
	}
	if int(list.Stat.NumChildren) > surveyMax-s.read {
		s.short = true
		return nil, wire.OK
	}
	names := list.All()
	slices.Sort(names)
	return names, wire.OK
}

// visit examines one znode and then those below it.
func (s *surveyor) visit(path string, beside []string, depth int) wire.Code {
	names, code := s.list(path)
	if code != wire.OK {
		return code
	}
	p := survey.Parent{Path: path, Beside: beside, Names: names}
	for _, name := range p.Reads() {
		if s.over() {
			s.short = true
			break
		}
		s.read++
		if c, ok := s.child(path, name); ok {
			p.Children = append(p.Children, c)
		}
	}
	if p.Counts() {
		p.Data = s.data(path)
	}
	if recipe, ok := survey.Recognise(p); ok {
		s.found = append(s.found, recipe)
	}
	for _, c := range p.Children {
		below := join(path, c.Name)
		switch {
		case c.Stat.NumChildren == 0 || below == "/zookeeper":
		case depth == 0 || s.over():
			s.short = true
		default:
			s.visit(below, names, depth-1)
		}
	}
	return wire.OK
}

// child reads a znode's stat, and its data if the data may be the id of a client.
func (s *surveyor) child(parent, name string) (survey.Child, bool) {
	path := join(parent, name)
	var st wire.StatResponse
	if code := s.t.Exists(s.r, path, false, &st); code != wire.OK {
		s.short = s.short || errors.Is(code, wire.ErrNoAuth)
		return survey.Child{}, false
	}
	c := survey.Child{Name: name, Stat: st.Stat}
	if n := st.Stat.DataLength; n > 0 && n <= idMax && (st.Stat.EphemeralOwner != 0 || name == "LEADER") {
		c.Data = s.data(path)
	}
	return c, true
}

func (s *surveyor) data(path string) []byte {
	var data wire.DataResponse
	s.t.GetData(s.r, path, false, &data) // without data the id stays unknown
	return data.Data
}

// report returns what was found.
func (s *surveyor) report(below string) *Recipes {
	known := map[wire.SessionID]bool{}
	s.t.Sessions(func(id wire.SessionID, _ int32) { known[id] = true })
	out := &Recipes{Below: below, Recipes: []Recipe{}, Orphans: []Orphan{}, Deadlocks: []Deadlock{}, Visited: s.read, Complete: !s.short}
	addresses := s.v.addresses()
	recipes := survey.Assemble(s.found)
	for _, r := range recipes {
		if len(r.Participants)+r.Items > 0 {
			out.Recipes = append(out.Recipes, recipeOf(r, addresses))
		}
		for _, o := range slices.Concat(r.Orphans, r.Missing(known)) {
			out.Orphans = append(out.Orphans, Orphan{Path: o.Path, Why: o.Why, Token: o.Token.String(), Bid: !o.Plain})
		}
	}
	for _, d := range survey.Deadlocks(recipes) {
		var circle []Link
		for _, l := range d {
			circle = append(circle, Link{Session: l.Session.String(), Holds: l.Holds.Path, Waits: l.Wait.Path})
		}
		out.Deadlocks = append(out.Deadlocks, Deadlock{circle})
	}
	return out
}

func recipeOf(r survey.Recipe, addresses map[wire.SessionID]string) Recipe {
	o := Recipe{Path: r.Path, Kind: string(r.Kind), Items: r.Items, Leases: r.Leases, Clients: []Participant{}}
	for _, p := range r.Participants {
		c := Participant{State: p.Role, ID: p.ID, Bid: p.Path, Naming: p.Naming.String(), Token: p.Token.String(), Since: at(p.Since),
			Address: addresses[p.Session], Behind: p.Behind, AnyOf: p.AnyOf}
		if p.Session != 0 {
			c.Session = p.Session.String()
		}
		o.Clients = append(o.Clients, c)
	}
	return o
}
