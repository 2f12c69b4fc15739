package member

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
)

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Join    Kind = "add"     // a new server becomes an observer
	Admit   Kind = "admit"   // a server that follows without being a member gets a vote
	CatchUp Kind = "wait"    // nothing changes; a server gets the leader's history
	Promote Kind = "promote" // an observer gets a vote
	Demote  Kind = "demote"  // a voter becomes an observer
	Move    Kind = "move"    // a server gets another address, and keeps its vote or not
	Reweigh Kind = "reweigh" // a server gets another group or weight
	Regroup Kind = "regroup" // all voters get groups, or lose them
	Remove  Kind = "remove"  // a server is no member any more
)

// Step is one change of the membership, which is one reconfiguration, or a wait.
type Step struct {
	Kind   Kind              `json:"kind"`
	Server ensemble.ServerID `json:"server"` // not set for Regroup
	Text   string            `json:"text"`
	// Old and New are the memberships before and after.
	Old *ensemble.Membership `json:"-"`
	New *ensemble.Membership `json:"-"`

	OldVoters []ensemble.ServerID `json:"voters_before"`
	NewVoters []ensemble.ServerID `json:"voters_after"`
	Overlap   Overlap             `json:"overlap"`
	// Survives is how many of the servers that are up may fail before the step is committed, whichever
	// they are, and SurvivesAfter how many after it; -1: there is no quorum. If more fail, the change
	// waits until enough are back; nothing is lost.
	Survives      int    `json:"survives"`
	SurvivesAfter int    `json:"survives_after"`
	MustBeUp      string `json:"must_be_up"`
	// Problems is empty if the step is safe.
	Problems []Problem `json:"problems,omitempty"`
}

// check judges the change from one membership to another one.
func check(kind Kind, id ensemble.ServerID, old, next *ensemble.Membership, v View) Step {
	during := v.Counts
	if kind == Promote { // an observer does not acknowledge the change that gives it a vote
		during = func(other ensemble.ServerID) bool { return other != id && v.Counts(other) }
	}
	s := Step{
		Kind: kind, Server: id, Old: old, New: next, OldVoters: old.Voters(), NewVoters: next.Voters(),
		Overlap: OverlapOf(old, next), SurvivesAfter: Tolerates(next, v.Counts),
	}
	s.Survives = min(Tolerates(old, during), Tolerates(next, during))
	s.Text, s.MustBeUp = s.describe(), s.mustBeUp(during)
	if v.Servers[id].Role == "leader" && (kind == Remove || kind == Demote) {
		s.Text += ", which leads and first transfers leadership"
	}
	if len(s.NewVoters) == 1 && len(s.OldVoters) > 1 {
		s.Text += "; a single voter needs standaloneEnabled=false on all servers"
	}
	s.Problems = s.problems(&v)
	return s
}

// wait returns the step that waits until a server has caught up.
func wait(id ensemble.ServerID, m *ensemble.Membership, v View) Step {
	s := check(CatchUp, id, m, m, v)
	s.Problems = nil
	return s
}

func (s *Step) describe() string {
	line, _ := s.New.Server(s.Server)
	switch s.Kind {
	case Join, Admit:
		return fmt.Sprintf("add %s", line.Line())
	case CatchUp:
		return fmt.Sprintf("wait until server %d has caught up with the leader", s.Server)
	case Promote:
		return fmt.Sprintf("promote server %d to a participant", s.Server)
	case Demote:
		if before, _ := s.Old.Server(s.Server); addresses(before) != addresses(line) {
			return fmt.Sprintf("demote server %d to an observer with its new line %s; then stop it at its former address and start it at the new one", s.Server, line.Line())
		}
		return fmt.Sprintf("demote server %d to an observer", s.Server)
	case Move:
		return fmt.Sprintf("change the line to %s", line.Line())
	case Reweigh:
		return fmt.Sprintf("give server %d the weight %d in group %d", s.Server, s.New.Weight(s.Server), groupOf(s.New.Definition(), s.Server))
	case Regroup:
		if s.New.Hierarchical() {
			return "decide quorums by groups and weights"
		}
		return "decide quorums by a majority of the voters"
	}
	return fmt.Sprintf("remove server %d", s.Server)
}

// mustBeUp says which servers the step needs.
func (s *Step) mustBeUp(up func(ensemble.ServerID) bool) string {
	text := needs(s.Old)
	if !sameQuorums(s.Old, s.New) {
		text += ", and " + needs(s.New)
	}
	if s.Survives != 0 {
		return text
	}
	var critical []ensemble.ServerID
	for _, id := range union(s.OldVoters, s.NewVoters) {
		without := func(other ensemble.ServerID) bool { return other != id && up(other) }
		if up(id) && !(s.Old.HasQuorum(without) && s.New.HasQuorum(without)) {
			critical = append(critical, id)
		}
	}
	return text + fmt.Sprintf("; none of %s may fail", idText(critical))
}

// needs says which servers are a quorum.
func needs(m *ensemble.Membership) string {
	voters := m.Voters()
	if m.Hierarchical() {
		d := m.Definition()
		var groups []string
		for _, g := range groupIDs(d) {
			groups = append(groups, fmt.Sprintf("(%s)", idText(d.Groups[g])))
		}
		return "more than half of the weight in more than half of the groups " + strings.Join(groups, " ")
	}
	if n := len(voters)/2 + 1; n < len(voters) {
		return fmt.Sprintf("any %d of %s", n, idText(voters))
	}
	return "all of " + idText(voters)
}

// problems returns what makes the step unsafe.
func (s *Step) problems(v *View) []Problem {
	all := append(s.withoutClientPort(), s.newVoters(v)...)
	if !s.Overlap.Holds {
		all = append(all, Problem{"the quorums do not overlap: " + s.Overlap.Text, "change one voter at a time; bellwether member plan prints the order"})
	}
	for _, n := range s.New.Servers() {
		_, was := s.Old.Server(n.ID)
		if !was && n.Role == ensemble.Observer {
			all = append(append(all, v.Newcomer(n)...), v.Differing(s.Old)...)
		}
	}
	if Tolerates(s.Old, v.Counts) < 0 {
		return append(all, noQuorum(s.Old, v, "the present members have no quorum, so nothing can be changed"))
	}
	switch {
	case len(all) > 0:
	case s.SurvivesAfter < 0:
		all = append(all, noQuorum(s.New, v, "the new members would have no quorum"))
	case s.Kind == Promote && !acknowledged(s.New, s.Server, v):
		all = append(all, Problem{fmt.Sprintf("an observer acknowledges nothing, and without server %d the voters that are up are no quorum of %s", s.Server, idText(s.NewVoters)),
			fmt.Sprintf("bellwether member add with the line of server %d: it takes the server out of the list, so that it follows without a vote and acknowledges, and then gives it a vote", s.Server)})
	}
	return all
}

// acknowledged reports whether a change to next can be committed without an acknowledgement of a server. An observer
// that gets a vote by it acknowledges only later changes. A server that is not in the list at all follows without a
// vote, and acknowledges every change.
func acknowledged(next *ensemble.Membership, without ensemble.ServerID, v *View) bool {
	return next.HasQuorum(func(id ensemble.ServerID) bool { return id != without && v.Counts(id) })
}

// withoutClientPort refuses a line without a client port that the step adds or changes.
func (s *Step) withoutClientPort() []Problem {
	line, listed := s.New.Server(s.Server)
	if before, _ := s.Old.Server(s.Server); !listed || line.Line() == before.Line() {
		return nil
	}
	return WithoutClientPort(s.Old, line)
}

// WithoutClientPort refuses a line without a client port: a reconfiguration that adds or changes a line needs one. Only
// one that gives the whole list does not, as it must if there are groups.
func WithoutClientPort(now *ensemble.Membership, line ensemble.Server) []Problem {
	if !line.Client.IsZero() || now.Hierarchical() {
		return nil
	}
	return []Problem{{fmt.Sprintf("the line of server %d has no client port, which a changed line needs", line.ID), "end the line with ;PORT or ;HOST:PORT: bellwether reconfig --add 'LINE;PORT' does it for a member"}}
}

// newVoters judges the servers that get a vote.
func (s *Step) newVoters(v *View) (all []Problem) {
	var joining []ensemble.ServerID
	for _, id := range s.NewVoters {
		if !s.Old.IsVoter(id) {
			line, _ := s.New.Server(id)
			joining = append(joining, id)
			all = append(all, v.voter(line)...)
		}
	}
	if len(joining) > 0 {
		all = append(all, v.Differing(s.Old)...)
	}
	if len(joining) > 1 {
		all = append(all, Problem{fmt.Sprintf("servers %s would get a vote at once", idText(joining)), "give a vote to one server at a time; bellwether member plan prints the order"})
	}
	return all
}

// noQuorum explains why voters that count are no quorum.
func noQuorum(m *ensemble.Membership, v *View, what string) Problem {
	var silent, late []ensemble.ServerID
	for _, id := range m.Voters() {
		seen, known := v.Servers[id]
		switch {
		case v.Counts(id):
		case known && seen.serves():
			late = append(late, id)
		default:
			silent = append(silent, id)
		}
	}
	var why, do []string
	if len(silent) > 0 {
		why, do = append(why, idText(silent)+" not serving"), append(do, "start "+idText(silent))
	}
	if len(late) > 0 {
		why, do = append(why, fmt.Sprintf("%s behind by more than %d transactions, or by an unknown number", idText(late), v.BehindMax)), append(do, "wait until "+idText(late)+" caught up")
	}
	return Problem{fmt.Sprintf("%s (voters %s; %s)", what, idText(m.Voters()), strings.Join(why, "; ")), strings.Join(do, ", ")}
}

// groupOf returns the group of a server, or -1.
func groupOf(d ensemble.Definition, id ensemble.ServerID) ensemble.GroupID {
	for g, members := range d.Groups {
		if slices.Contains(members, id) {
			return g
		}
	}
	return -1
}

func groupIDs(d ensemble.Definition) []ensemble.GroupID {
	var all []ensemble.GroupID
	for g := range d.Groups {
		all = append(all, g)
	}
	slices.Sort(all)
	return all
}
