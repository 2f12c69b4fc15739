package member

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
)

// Plan is the way from one membership to another one.
type Plan struct {
	Steps []Step `json:"steps"`
	// Problems belong to no single step.
	Problems []Problem `json:"problems,omitempty"`
}

// Safe reports whether neither the plan nor a step of it has a problem.
func (p *Plan) Safe() bool { return len(p.AllProblems()) == 0 }

// AllProblems returns the problems of the plan and of its steps, each once.
func (p *Plan) AllProblems() []Problem {
	all := slices.Clone(p.Problems)
	for _, s := range p.Steps {
		for _, problem := range s.Problems {
			if !slices.Contains(all, problem) {
				all = append(all, problem)
			}
		}
	}
	return all
}

// New plans the change from now to wanted. If there is a problem, the steps are those after it has
// been solved; if no order of steps is safe, there are none.
func New(now, wanted *ensemble.Membership, v View) *Plan {
	p, usable := begin(now, wanted, v)
	if !usable {
		return p
	}
	s := &search{wanted: wanted, view: v, visited: map[string]bool{}}
	s.assumed = assumed(v, now, wanted)
	if !s.from(now) {
		p.Problems = append(p.Problems, Problem{"no order of single steps leads to the wanted members: " + cmp.Or(s.obstacle, "each step leads back to members that were there before"), "choose other members, or go by way of further ones, for which a plan can be made"})
		return p
	}
	p.Steps = s.judged()
	return p
}

// Single judges the change from now to wanted in one step, which gives a server that is behind no time
// to catch up.
func Single(kind Kind, id ensemble.ServerID, now, wanted *ensemble.Membership, v View) *Plan {
	p, usable := begin(now, wanted, v)
	if usable {
		p.Steps = []Step{check(kind, id, now, wanted, v)}
	}
	return p
}

// begin returns a plan without steps, and whether the wanted members can be used at all.
func begin(now, wanted *ensemble.Membership, v View) (p *Plan, usable bool) {
	p = &Plan{Steps: []Step{}, Problems: append(v.disagreements(now), v.Leaderless(now)...)}
	if len(now.Servers()) == 0 {
		p.Problems = append(p.Problems, standalone)
		return p, false
	}
	if len(wanted.Voters()) == 0 {
		p.Problems = append(p.Problems, Problem{"the wanted members have 0 voters, so there would be no quorum and no leader", "keep at least one participant"})
		return p, false
	}
	text := whole(wanted)
	if _, err := now.Apply(ensemble.Change{Whole: &text, VotersMin: 1}, now.Version()); err != nil {
		p.Problems = append(p.Problems, Problem{"the wanted members cannot be used: " + err.Error(), "correct their lines"})
		return p, false
	}
	return p, true
}

var standalone = Problem{"the server runs standalone, so it has no list of members", "docs/operate.md, From one server to three, says how an ensemble begins; with standaloneEnabled=false a single server can be one"}

// disagreements returns a problem for each server that has another list of members, or another id than
// its line says.
func (v *View) disagreements(now *ensemble.Membership) (all []Problem) {
	for _, line := range now.Servers() {
		seen, known := v.Servers[line.ID]
		switch {
		case !known || seen.Error != "":
		case !seen.hasID(line.ID):
			all = append(all, Problem{fmt.Sprintf("the server at %s has the id %d, and the line of server %d names it", seen.Address, seen.ID, line.ID), "correct myid of that server, or the address in the line"})
		case seen.Members != nil && seen.Members.Version() > now.Version():
			all = append(all, Problem{fmt.Sprintf("the members were changed meanwhile: server %d has version %x of them, and this change is based on version %x", line.ID, seen.Members.Version(), now.Version()),
				"see member list, and run the command again"})
		case seen.Members != nil && !seen.Members.SameMembers(now):
			all = append(all, Problem{fmt.Sprintf("server %d has another list of members (version %x, voters %s) than the one that is changed (version %x, voters %s)",
				line.ID, seen.Members.Version(), idText(seen.Members.Voters()), now.Version(), idText(now.Voters())),
				"wait until a change that is in progress is known to all, or restart that server with the list of the others"})
		}
	}
	return all
}

// whole returns the text of a reconfiguration that gives the whole list.
func whole(m *ensemble.Membership) string {
	return strings.ReplaceAll(m.FileText(false), "\n", ",")
}

// assumed returns a view in which the new voters have caught up, for choosing the order of steps.
func assumed(v View, now, wanted *ensemble.Membership) View {
	for _, id := range wanted.Voters() {
		if !now.IsVoter(id) && !v.Counts(id) {
			v = v.with(id)
		}
	}
	return v
}

// statesMax limits the search.
const statesMax = 2000

// search looks for an order of edits whose quorums overlap. With majorities the first edits that it
// tries lead to the end. With groups and weights, or addresses that change hands, it may have to go back.
type search struct {
	wanted   *ensemble.Membership
	view     View // what is known now
	assumed  View // the same when all new voters have caught up
	way      []edit
	visited  map[string]bool
	obstacle string // why an edit was impossible, at the deepest place
	deepest  int
}

// edit is one possible step.
type edit struct {
	kind      Kind
	id        ensemble.ServerID
	old, next *ensemble.Membership
}

// from searches for the rest of the way. It reports whether there is one.
func (s *search) from(m *ensemble.Membership) bool {
	if m.SameMembers(s.wanted) {
		return true
	}
	if key := whole(m); s.visited[key] || len(s.visited) >= statesMax {
		return false
	} else {
		s.visited[key] = true
	}
	for _, e := range s.candidates(m) {
		s.way = append(s.way, e)
		if s.from(e.next) {
			return true
		}
		s.way = s.way[:len(s.way)-1]
	}
	return false
}

// candidates returns the safe edits, the best first: the one after which most servers may fail; then
// in the order of rank; and a leader goes last.
func (s *search) candidates(m *ensemble.Membership) []edit {
	type scored struct {
		edit
		survives, rank int
	}
	var all []scored
	for _, d := range s.differences(m) {
		next, err := s.edited(m, d.kind, d.id)
		if err == nil {
			if o := OverlapOf(m, next); !o.Holds {
				err = fmt.Errorf("%s", o.Text)
			}
		}
		if err != nil {
			if len(s.way) >= s.deepest {
				s.obstacle, s.deepest = fmt.Sprintf("%s server %d: %v", d.kind, d.id, err), len(s.way)+1
			}
			continue
		}
		c := scored{edit: edit{d.kind, d.id, m, next}, rank: slices.Index(ranks, d.kind)}
		if !next.Hierarchical() {
			c.survives = Tolerates(next, s.assumed.Counts)
		}
		if s.view.Servers[d.id].Role == "leader" {
			c.rank += len(ranks)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.survives, a.survives), cmp.Compare(a.rank, b.rank))
	})
	edits := make([]edit, len(all))
	for i, c := range all {
		edits[i] = c.edit
	}
	return edits
}

// ranks is the order of edits that leave the same tolerance. A newcomer gets its vote before the next
// newcomer joins.
var ranks = []Kind{Promote, Admit, Join, Move, Reweigh, Regroup, Demote, Remove}

// difference is an edit that brings a server nearer to the wanted membership.
type difference struct {
	kind Kind
	id   ensemble.ServerID
}

// differences returns the edits that a membership still needs.
func (s *search) differences(m *ensemble.Membership) (all []difference) {
	var ids []ensemble.ServerID
	for _, line := range slices.Concat(m.Servers(), s.wanted.Servers()) {
		ids = append(ids, line.ID)
	}
	for _, id := range union(ids, nil) {
		if kind := s.difference(m, id); kind != "" {
			all = append(all, difference{kind, id})
		}
	}
	if m.Hierarchical() != s.wanted.Hierarchical() {
		all = append(all, difference{kind: Regroup})
	}
	return all
}

// difference returns the edit that one server needs next.
func (s *search) difference(m *ensemble.Membership, id ensemble.ServerID) Kind {
	is, here := m.Server(id)
	want, stays := s.wanted.Server(id)
	votes, shall := is.Role == ensemble.Participant, want.Role == ensemble.Participant
	moves := addresses(is) != addresses(want)
	switch {
	case !here && shall && !s.canPromote(m, id):
		return Admit
	case !here:
		return Join
	case !stays:
		return Remove
	case votes && (!shall || moves): // at another address it may have another disk
		return Demote
	case moves || is.Client != want.Client:
		return Move
	case shall && !votes && !s.canPromote(m, id):
		return Remove // and then Admit
	case shall && !votes:
		return Promote
	case m.Hierarchical() && s.wanted.Hierarchical() && !samePlace(m.Definition(), s.wanted.Definition(), id):
		return Reweigh
	}
	return ""
}

// canPromote reports whether a server can get its vote as an observer: the others must be able to commit that.
func (s *search) canPromote(m *ensemble.Membership, id ensemble.ServerID) bool {
	next, err := s.edited(m, Promote, id)
	return err != nil || acknowledged(next, id, &s.assumed)
}

func samePlace(a, b ensemble.Definition, id ensemble.ServerID) bool {
	wa, ina := a.Weights[id]
	wb, inb := b.Weights[id]
	return groupOf(a, id) == groupOf(b, id) && wa == wb && ina == inb
}

// addresses returns the addresses of a server for other servers, as text.
func addresses(s ensemble.Server) string { return fmt.Sprint(s.Addresses) }

// edited returns the membership after an edit.
func (s *search) edited(m *ensemble.Membership, kind Kind, id ensemble.ServerID) (*ensemble.Membership, error) {
	d, goal := m.Definition(), s.wanted.Definition()
	was, _ := m.Server(id)
	line, _ := s.wanted.Server(id)
	switch kind {
	case Join, Demote:
		line.Role = ensemble.Observer
	case Move:
		line.Role = was.Role
	case Regroup:
		return regrouped(m, goal)
	}
	d.Servers = slices.DeleteFunc(d.Servers, func(o ensemble.Server) bool { return o.ID == id })
	if kind != Remove {
		d.Servers = append(d.Servers, line)
	}
	if m.Hierarchical() {
		if err := place(&d, goal, id, line.Role, kind != Remove); err != nil {
			return nil, err
		}
	}
	return built(m, d)
}

// regrouped returns the membership with the groups of the goal, or without groups.
func regrouped(m *ensemble.Membership, goal ensemble.Definition) (*ensemble.Membership, error) {
	d := m.Definition()
	d.Groups, d.Weights = nil, nil
	if len(goal.Groups) == 0 {
		return built(m, d)
	}
	d.Groups, d.Weights = map[ensemble.GroupID][]ensemble.ServerID{}, map[ensemble.ServerID]int64{}
	for _, line := range m.Servers() {
		if err := place(&d, goal, line.ID, line.Role, true); err != nil {
			return nil, err
		}
	}
	return built(m, d)
}

// place puts a server into the group that it has in the goal. A server that observes is in a group
// only if its weight is 0.
func place(d *ensemble.Definition, goal ensemble.Definition, id ensemble.ServerID, role ensemble.Role, member bool) error {
	delete(d.Weights, id)
	for g, members := range d.Groups {
		if i := slices.Index(members, id); i >= 0 {
			d.Groups[g] = slices.Delete(members, i, i+1)
		}
		if len(d.Groups[g]) == 0 {
			delete(d.Groups, g)
		}
	}
	weight, weighs := goal.Weights[id]
	g := groupOf(goal, id)
	if !member || role == ensemble.Observer && weight > 0 {
		return nil
	}
	if role == ensemble.Participant && g < 0 {
		return fmt.Errorf("the wanted members give server %d no group, and the present ones have groups", id)
	}
	if weighs {
		d.Weights[id] = weight
	}
	if g >= 0 {
		d.Groups[g] = append(d.Groups[g], id)
	}
	return nil
}

// built makes a membership and checks it as a server would.
func built(m *ensemble.Membership, d ensemble.Definition) (*ensemble.Membership, error) {
	next, err := ensemble.New(d)
	if err != nil {
		return nil, err
	}
	text := whole(next)
	return m.Apply(ensemble.Change{Whole: &text, VotersMin: 1}, m.Version())
}

// judged returns the steps of the way. Before a server gets a vote, there is a step that waits for it.
func (s *search) judged() []Step {
	var steps []Step
	v := s.view
	for _, e := range s.way {
		if e.kind == Promote || e.kind == Admit {
			line, _ := e.next.Server(e.id)
			w := wait(e.id, e.old, v)
			w.Problems = v.Newcomer(line)
			steps = append(steps, w)
			v = v.with(e.id)
		}
		steps = append(steps, check(e.kind, e.id, e.old, e.next, v))
	}
	return steps
}
