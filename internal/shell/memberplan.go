package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/internal/member"
	"bellwether/zk"
)

const memberPlanLong = `Print the steps that lead from the present members to the wanted ones, and change nothing.

The wanted members are those of --file or --members, or the present ones with the changes of --add, --remove, --promote
and --demote. Each step changes at most one voter, and for each step the command prints

  overlap     the proof that each quorum of the list before shares a server with each quorum of the list after
  survives    how many of the servers that are up may fail during the step, and after it
  needs       which servers must be up
  run         a command that carries out the step

A new voter is an observer first, and gets its vote when it has caught up. If a change could lose data or the quorum, the
command names the rule that it breaks, and what would make it safe.

Exit status: 0 all steps are safe, 1 the change is refused, 2 usage, 4 no connection.`

// wanted holds the flags that describe the wanted members.
type wanted struct {
	file, members                string
	add, remove, promote, demote []string
}

func newMemberPlan(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		var w wanted
		c := &cobra.Command{
			Use:     "plan",
			Short:   "print the safe order of steps to the wanted members, and change nothing",
			Long:    memberPlanLong,
			Example: "  bellwether member plan --add 'server.4=zk4:2888:3888;2181' --remove 2\n  bellwether member plan --file wanted.cfg -o json",
			Args:    argCount(0, 0),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return m.run(cmd, func(ctx context.Context, zc *zk.Client) error { return m.plan(ctx, zc, &w) })
			},
		}
		f := c.Flags()
		f.StringVar(&w.file, "file", "", "`FILE` with the lines of the wanted members, groups and weights")
		f.StringVar(&w.members, "members", "", "these lines with commas between them")
		f.StringArrayVar(&w.add, "add", nil, "the line server.ID=HOST:PORT:PORT[:ROLE];PORT of a new member; may be repeated")
		f.StringArrayVar(&w.remove, "remove", nil, "`ID[,ID...]` of members that leave; may be repeated")
		f.StringArrayVar(&w.promote, "promote", nil, "`ID[,ID...]` of observers that get a vote; may be repeated")
		f.StringArrayVar(&w.demote, "demote", nil, "`ID[,ID...]` of voters that become observers; may be repeated")
		c.MarkFlagsMutuallyExclusive("file", "members")
		c.MarkFlagsOneRequired("file", "members", "add", "remove", "promote", "demote")
		for _, some := range []string{"add", "remove", "promote", "demote"} {
			c.MarkFlagsMutuallyExclusive(some, "file")
			c.MarkFlagsMutuallyExclusive(some, "members")
		}
		return c
	})
}

// from returns the wanted members.
func (w *wanted) from(now *ensemble.Membership) (*ensemble.Membership, error) {
	switch {
	case w.members != "":
		return parseWanted("--members", strings.ReplaceAll(w.members, ",", "\n"))
	case w.file != "":
		text, err := os.ReadFile(w.file)
		if err != nil {
			return nil, usagef("--file: %w", err)
		}
		return parseWanted("--file "+w.file, ensemble.Latin1(text))
	}
	d := now.Definition()
	for _, text := range w.add {
		s, err := parseMember(text)
		if err != nil {
			return nil, usagef("--add: %w", err)
		}
		if present, ok := now.Server(s.ID); ok {
			return nil, twoWithOneID(present, s)
		}
		d.Servers = append(d.Servers, s)
	}
	for _, change := range []struct {
		flag string
		ids  []string
		do   func(d *ensemble.Definition, i int)
	}{{"--remove", w.remove, removeAt}, {"--promote", w.promote, promoteAt}, {"--demote", w.demote, demoteAt}} {
		for _, id := range slices.Concat(splitAll(change.ids)...) {
			if err := edit(now, &d, change.flag, id, change.do); err != nil {
				return nil, err
			}
		}
	}
	goal, err := ensemble.New(d)
	if err != nil && now.Hierarchical() {
		err = fmt.Errorf("%w: give the whole list with its groups, with --file or --members", err)
	}
	return goal, err
}

// splitAll splits each text at its commas.
func splitAll(texts []string) (all [][]string) {
	for _, text := range texts {
		all = append(all, strings.Split(text, ","))
	}
	return all
}

// edit changes the member with an id in d, which was made from the present members.
func edit(now *ensemble.Membership, d *ensemble.Definition, flag, text string, do func(d *ensemble.Definition, i int)) error {
	id, err := parseMemberID(text)
	if err != nil {
		return usagef("%s: %w", flag, err)
	}
	i := slices.IndexFunc(d.Servers, func(s ensemble.Server) bool { return s.ID == id })
	if i < 0 {
		return notMember(id, now)
	}
	do(d, i)
	return nil
}

func removeAt(d *ensemble.Definition, i int) {
	leaveGroups(d, d.Servers[i].ID)
	d.Servers = slices.Delete(d.Servers, i, i+1)
}

func promoteAt(d *ensemble.Definition, i int) { d.Servers[i].Role = ensemble.Participant }

func demoteAt(d *ensemble.Definition, i int) {
	leaveGroups(d, d.Servers[i].ID)
	d.Servers[i].Role = ensemble.Observer
}

// leaveGroups takes a server out of its group.
func leaveGroups(d *ensemble.Definition, id ensemble.ServerID) {
	delete(d.Weights, id)
	for g, ids := range d.Groups {
		d.Groups[g] = slices.DeleteFunc(ids, func(other ensemble.ServerID) bool { return other == id })
		if len(d.Groups[g]) == 0 {
			delete(d.Groups, g)
		}
	}
}

func parseWanted(from, text string) (*ensemble.Membership, error) {
	m, err := ensemble.Parse(text)
	if err != nil {
		return nil, usagef("%s: %w", from, err)
	}
	if len(m.Servers()) == 0 {
		return nil, usagef("%s: there is no line server.ID=", from)
	}
	return ensemble.Parse(m.FileText(false)) // with each address written as servers write it
}

// parseMember parses the line of a member.
func parseMember(text string) (ensemble.Server, error) {
	key, value, ok := strings.Cut(text, "=")
	id, err := parseMemberID(strings.TrimPrefix(strings.TrimSpace(key), "server."))
	if !ok || err != nil {
		return ensemble.Server{}, fmt.Errorf("%q: want server.ID=HOST:PORT:PORT[:ROLE];PORT", text)
	}
	s, err := ensemble.ParseServer(id, strings.TrimSpace(value))
	if err != nil {
		return s, err
	}
	_, value, _ = strings.Cut(s.Line(), "=") // with each address written as servers write it
	return ensemble.ParseServer(id, value)
}

// notMember is the error for a server that the list does not contain.
func notMember(id ensemble.ServerID, now *ensemble.Membership) error {
	var ids []ensemble.ServerID
	for _, s := range now.Servers() {
		ids = append(ids, s.ID)
	}
	return fmt.Errorf("server %d is not a member; the members are %s", id, strings.Trim(fmt.Sprint(ids), "[]"))
}

func parseMemberID(text string) (ensemble.ServerID, error) {
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%q is not a server id: want a number of 0 or more", text)
	}
	return ensemble.ServerID(id), nil
}

func twoWithOneID(present, s ensemble.Server) error {
	return fmt.Errorf("server %d is a member already, as %s: two servers with one id vote as one; choose another id, or give all lines, with this one changed, to member plan --members", s.ID, present.Line())
}

// planJSON is the output of plan.
type planJSON struct {
	Version string `json:"version"` // of the present members
	Safe    bool   `json:"safe"`
	*member.Plan
	Problems []member.Problem `json:"problems,omitempty"` // those of the plan and of all steps
}

func (m *members) plan(ctx context.Context, zc *zk.Client, w *wanted) error {
	now, err := readMembers(ctx, zc)
	if err != nil {
		return err
	}
	goal, err := w.from(now)
	if err != nil {
		return err
	}
	v, err := m.look(ctx, now, newcomers(now, goal))
	if err != nil {
		return err
	}
	p := member.New(now, goal, v)
	if m.json() {
		err = printJSON(m.out, planJSON{hexVersion(now), p.Safe(), p, p.AllProblems()})
	} else {
		err = printPlan(m.out, now, v, p)
	}
	if err == nil && !p.Safe() {
		return &StatusError{Status: ExitFailed}
	}
	return err
}

// newcomers returns the wanted servers that are no members.
func newcomers(now, goal *ensemble.Membership) (all []ensemble.Server) {
	for _, s := range goal.Servers() {
		if _, present := now.Server(s.ID); !present {
			all = append(all, s)
		}
	}
	return all
}

func printPlan(w io.Writer, now *ensemble.Membership, v member.View, p *member.Plan) error {
	fmt.Fprintf(w, "present: voters %s of %s, members version %s; %s\n", voterText(now), Count(len(now.Servers()), "server"), hexVersion(now), survivesText(member.Tolerates(now, v.Counts)))
	for i := range p.Steps {
		printStep(w, i+1, &p.Steps[i], v.BehindMax)
	}
	switch {
	case !p.Safe():
		return printProblems(w, "refused", p.AllProblems())
	case len(p.Steps) == 0:
		_, err := fmt.Fprintln(w, "the present members are the wanted ones: there is nothing to do")
		return err
	}
	_, err := fmt.Fprintf(w, "safe: %s\n", Count(len(p.Steps), "step"))
	return err
}

func printStep(w io.Writer, n int, s *member.Step, behind int64) {
	fmt.Fprintf(w, "step %d: %s\n", n, s.Text)
	if s.Kind == member.CatchUp {
		fmt.Fprintf(w, "    run:      bellwether member list    until BEHIND of server %d is at most %d\n", s.Server, behind)
		return
	}
	fmt.Fprintf(w, "    voters:   %s, then %s\n", voterText(s.Old), voterText(s.New))
	if s.Overlap.Holds {
		fmt.Fprintf(w, "    overlap:  %s\n", s.Overlap.Text)
	}
	fmt.Fprintf(w, "    survives: %s; after the step %s\n    needs:    %s\n    run:      %s\n", survivesText(s.Survives), survivesText(s.SurvivesAfter), s.MustBeUp, commandOf(s))
}

func voterText(m *ensemble.Membership) string {
	if len(m.Voters()) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprint(m.Voters()), "[]")
}

// commandOf returns a command that carries out a step.
func commandOf(s *member.Step) string {
	line, _ := s.New.Server(s.Server)
	switch {
	case s.Kind == member.Remove:
		return fmt.Sprintf("bellwether member remove %d", s.Server)
	case s.Kind == member.Promote && !s.New.Hierarchical(), s.Kind == member.Demote && sameAddresses(s):
		return fmt.Sprintf("bellwether member %s %d", s.Kind, s.Server)
	case s.Kind == member.Promote:
		d := s.New.Definition()
		for g, ids := range d.Groups {
			if slices.Contains(ids, s.Server) {
				return fmt.Sprintf("bellwether member promote %d --group %d --weight %d", s.Server, g, d.Weights[s.Server])
			}
		}
	case s.Kind == member.Admit && !s.New.Hierarchical():
		return fmt.Sprintf("bellwether member add '%s'", line.Line())
	case s.Kind == member.Join:
		return fmt.Sprintf("bellwether member add --observer '%s'", line.Line())
	case !s.Old.Hierarchical() && !s.New.Hierarchical():
		return fmt.Sprintf("bellwether reconfig --add '%s'", line.Line())
	}
	return fmt.Sprintf("bellwether reconfig --members '%s'", strings.ReplaceAll(s.New.FileText(false), "\n", ","))
}

func sameAddresses(s *member.Step) bool {
	before, _ := s.Old.Server(s.Server)
	after, _ := s.New.Server(s.Server)
	return slices.Equal(before.Addresses, after.Addresses) && before.Client == after.Client
}
