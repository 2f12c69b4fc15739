package member

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/ensemble"
)

// healthy returns a view in which all servers of both lists answer and have caught up, and the first
// voter leads. Servers that are no members have an empty disk.
func healthy(now, wanted *ensemble.Membership) View {
	v := View{Servers: map[ensemble.ServerID]Seen{}, BehindMax: 100}
	for _, m := range []*ensemble.Membership{wanted, now} {
		for _, s := range m.Servers() {
			v.Servers[s.ID] = Seen{Address: s.Client.String(), HasID: true, ID: s.ID, Role: "follower", Version: "3.8.0", Empty: m == wanted, Members: now}
		}
	}
	if voters := now.Voters(); len(voters) > 0 {
		s := v.Servers[voters[0]]
		s.Role = "leader"
		v.Servers[voters[0]] = s
	}
	return v
}

// follow checks what every plan promises, and returns where it ends: steps are connected, their quorums
// overlap, and a server gets its vote only after a step that waits until it has caught up.
func follow(now *ensemble.Membership, p *Plan, n int) (*ensemble.Membership, error) {
	at := now
	waited := map[ensemble.ServerID]bool{}
	for i, s := range p.Steps {
		if !s.Old.SameMembers(at) {
			return nil, fmt.Errorf("step %d does not begin where the one before ends", i+1)
		}
		if disjoint(s.Old, s.New, n) || !s.Overlap.Holds {
			return nil, fmt.Errorf("step %d: quorums without a common server", i+1)
		}
		if s.Kind == CatchUp {
			waited[s.Server] = true
		}
		for _, id := range s.NewVoters {
			if !s.Old.IsVoter(id) && !waited[id] {
				return nil, fmt.Errorf("step %d: server %d votes before it has caught up", i+1, id)
			}
		}
		if changed := changes(s.OldVoters, s.NewVoters); changed > 1 {
			return nil, fmt.Errorf("step %d changes %d voters", i+1, changed)
		}
		at = s.New
	}
	return at, nil
}

// TestPlansOfSmallEnsembles plans the way from each list of up to four servers, with all roles, to each other one. Each
// plan is safe.
func TestPlansOfSmallEnsembles(t *testing.T) {
	const n = 4
	var lists []*ensemble.Membership
	for code := range 81 {
		text := ""
		for range n {
			text += string("-op"[code%3])
			code /= 3
		}
		if strings.Contains(text, "p") {
			lists = append(lists, roles(t, text))
		}
	}
	for _, now := range lists {
		for _, wanted := range lists {
			p := New(now, wanted, healthy(now, wanted))
			end, err := follow(now, p, n)
			switch {
			case !p.Safe():
				t.Errorf("%v\n%v\n%v", now, wanted, p.AllProblems())
			case err != nil:
				t.Errorf("%v\n%v\n%v", now, wanted, err)
			case !end.SameMembers(wanted):
				t.Errorf("the end is %v, want %v", end, wanted)
			}
		}
	}
}

// TestRandomPlans plans the way between random lists of up to seven servers with groups and weights. A plan is
// safe and leads to the wanted list, or it says that there is none. Without groups there always is one.
func TestRandomPlans(t *testing.T) {
	planned, none := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		now, wanted := drawMembership(t, "now", 7), drawMembership(t, "wanted", 7)
		p := New(now, wanted, healthy(now, wanted))
		if !p.Safe() {
			none++
			why := p.Problems
			if len(why) != 1 || !strings.Contains(why[0].What, "no order of single steps") || !now.Hierarchical() && !wanted.Hierarchical() {
				t.Fatalf("%v\n\n%v\n\n%v", now, wanted, p.AllProblems())
			}
			return
		}
		planned++
		end, err := follow(now, p, 7)
		if err != nil || !end.SameMembers(wanted) {
			t.Fatalf("%v\n\n%v\n\n%v: %v", now, wanted, end, err)
		}
	})
	t.Logf("%d planned, %d without a plan", planned, none)
	if planned < none {
		t.Error("most changes have no plan")
	}
}

// TestOrder shows the order of the steps for some changes, and how many failures each survives.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		now, wanted string
		down        ensemble.ServerID
		want        string
	}{
		{"p", "ppp", 0, "wait 2 (0), admit 2 (0), add 3 (0), wait 3 (0), promote 3 (0)"},
		{"ppp", "ppppp", 0, "add 4 (1), wait 4 (1), promote 4 (0), add 5 (1), wait 5 (1), promote 5 (1)"},
		{"ppp", "---ppp", 0, "add 4 (1), wait 4 (1), promote 4 (0), add 5 (1), wait 5 (1), promote 5 (1), add 6 (2), wait 6 (2), promote 6 (1), remove 2 (2), remove 3 (1), remove 1 (1)"},
		{"ppppp", "ppp", 0, "remove 4 (1), remove 5 (1)"},
		{"ppp", "pp-p", 3, "wait 4 (0), admit 4 (0), remove 3 (0)"},
		{"po", "pp", 0, "remove 2 (0), wait 2 (0), admit 2 (0)"},
		{"ppppp", "ppp", 5, "remove 5 (1), remove 4 (1)"},
		{"ppo", "ppp", 0, "wait 3 (0), promote 3 (0)"},
		{"ppp", "ppo", 0, "demote 3 (0)"},
		{"ppp", "ppp", 0, ""},
	} {
		now, wanted := roles(t, c.now), roles(t, c.wanted)
		v := healthy(now, wanted)
		if s, ok := v.Servers[c.down]; ok {
			s.Error = "connection refused"
			v.Servers[c.down] = s
		}
		p := New(now, wanted, v)
		var steps []string
		for _, s := range p.Steps {
			steps = append(steps, fmt.Sprintf("%s %d (%d)", s.Kind, s.Server, s.Survives))
		}
		if got := strings.Join(steps, ", "); got != c.want || !p.Safe() {
			t.Errorf("%s to %s:\n%s\nwant\n%s\n%v", c.now, c.wanted, got, c.want, p.AllProblems())
		}
	}
}

// TestRefused breaks one rule at a time. The plan names the rule and says what would make the change safe.
func TestRefused(t *testing.T) {
	now := roles(t, "ppp")
	four := now.FileText(false) + "\n" + line(4, 'p')
	swapped := strings.NewReplacer("h1:", "h2:", "h2:", "h1:").Replace(now.FileText(false))
	change := func(id ensemble.ServerID, f func(s *Seen)) func(v *View) {
		return func(v *View) {
			s := v.Servers[id]
			f(&s)
			v.Servers[id] = s
		}
	}
	silent := func(s *Seen) { s.Error = "connection refused" }
	late := func(s *Seen) { s.Behind = 101 }
	both := func(a, b func(v *View)) func(v *View) { return func(v *View) { a(v); b(v) } }
	for name, c := range map[string]struct {
		wanted string
		change func(v *View)
		want   string
	}{
		"newcomer is silent":          {four, change(4, silent), "server 4 does not answer at 0.0.0.0:3: connection refused: start it"},
		"newcomer does not serve":     {four, change(4, func(s *Seen) { s.Role, s.Version = "", "" }), "server 4 does not serve: it follows no leader"},
		"newcomer of no version":      {four, change(4, func(s *Seen) { s.Version = "unknown" }), `server 4 has the version "unknown", which is not known`},
		"newcomer of a new version":   {four, change(4, func(s *Seen) { s.Version = "4.0.0" }), `"4.0.0", and this program knows those of 3.5 to 3.9`},
		"newcomer of an old version":  {four, change(4, func(s *Seen) { s.Version = "3.4.14" }), `"3.4.14", and changes of members exist since 3.5`},
		"newcomer with another id":    {four, change(4, func(s *Seen) { s.ID = 2 }), "has the id 2, and not 4: two servers with one id vote as one"},
		"newcomer standalone":         {four, change(4, func(s *Seen) { s.Role = "standalone" }), "runs standalone with a history of its own"},
		"newcomer of another one":     {four, change(4, func(s *Seen) { s.Differs = "its tree differs" }), "server 4 says that its tree differs, as after a start with the data of another ensemble: stop it, and start it with the lines"},
		"newcomer with a closed port": {four, change(4, func(s *Seen) { s.ClosedPort, s.Empty = "election port h4:2 cannot be opened", false }), "server 4 says: election port h4:2 cannot be opened"},
		"member with a wrong tree":    {four, change(2, func(s *Seen) { s.Differs = "its tree differs" }), "server 2 says that its tree differs, and a newcomer could get the wrong tree"},
		"leader is silent":            {four, change(1, silent), "none of the servers that answer leads, and 1 does not answer"},
		"newer list":                  {four, change(2, func(s *Seen) { s.Members = roles(t, "pp").WithVersion(now.Version() + 1) }), "the members were changed meanwhile: server 2 has version"},
		"newcomer without a port":     {now.FileText(false) + "\nserver.4=h4:1:2", nil, "the line of server 4 has no client port"},
		"observer without a port":     {strings.ReplaceAll(now.FileText(false), "h3:1:2:participant;0.0.0.0:3", "h3:1:2:observer"), nil, "the line of server 3 has no client port"},
		"duplicate port":              {now.FileText(false) + "\nserver.4=h3:2:5;3", nil, "server 3 and server 4 have the same address h3:2"},
		"port for two things":         {now.FileText(false) + "\nserver.4=h4:1:2;2", nil, "server 4 uses port 2 both for clients and for servers"},
		"0 voters":                    {"server.1=h1:1:2:observer;3", nil, "0 voters"},
		"no members":                  {"", nil, "0 voters"},
		"another list":                {four, change(2, func(s *Seen) { s.Members = roles(t, "pp") }), "server 2 has another list of members"},
		"member with another id":      {four, change(2, func(s *Seen) { s.ID = 3 }), "has the id 3, and the line of server 2 names it"},
		"voter is behind":             {"server.1=h1:1:2;3\nserver.3=h3:1:2;3", change(3, late), "the new members would have no quorum (voters 1 3; 3 behind by more than 100 transactions"},
		"voter is silent":             {"server.1=h1:1:2;3\nserver.3=h3:1:2;3", change(3, silent), "the new members would have no quorum (voters 1 3; 3 not serving): start 3"},
		"no quorum now":               {four, both(change(2, silent), change(3, late)), "the present members have no quorum, so nothing can be changed (voters 1 2 3; 2 not serving; 3 behind"},
		"addresses change hands":      {swapped, nil, "no order of single steps"},
		"a weight too far":            {now.FileText(false) + "\ngroup.1=1:2:3\nweight.1=5", nil, "2 3 can be a quorum of the old list, and 1 one of the new list"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := parse(t, c.wanted)
			v := healthy(now, wanted)
			if c.change != nil {
				c.change(&v)
			}
			p := New(now, wanted, v)
			all := fmt.Sprint(p.AllProblems())
			if p.Safe() || !strings.Contains(all, c.want) {
				t.Errorf("problems %s\nwant %s", all, c.want)
			}
			for _, problem := range p.AllProblems() {
				if problem.Do == "" {
					t.Errorf("%s: nothing is said to be done", problem.What)
				}
			}
		})
	}
	if p := New(parse(t, ""), now, View{}); p.Safe() || !strings.Contains(p.Problems[0].What, "runs standalone") {
		t.Errorf("standalone: %v", p.Problems)
	}
}

// TestWrongTreeMayLeave shows that a server whose tree differs can be removed.
func TestWrongTreeMayLeave(t *testing.T) {
	now, wanted := roles(t, "ppp"), roles(t, "pp")
	v := healthy(now, wanted)
	s := v.Servers[3]
	s.Differs = "its tree differs"
	v.Servers[3] = s
	if p := New(now, wanted, v); !p.Safe() || len(p.Steps) != 1 {
		t.Errorf("%v", p.AllProblems())
	}
}

// TestSingleRefuses judges single changes that could lose data.
func TestSingleRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		old, next string
		change    func(s *Seen) // of the last server
		want      string
	}{
		"an empty disk completes a quorum": {"p", "pp", func(s *Seen) { s.Empty = true }, "server 2 has an empty disk: with a vote it could complete a quorum that does not have what is committed"},
		"several joiners":                  {"ppp", "ppppp", func(s *Seen) { s.Empty = false }, "servers 4 5 would get a vote at once"},
		"quorums do not overlap":           {"ppp", "ppppp", nil, "2+3 is not more than 5 voters in both lists"},
		"a new voter is behind":            {"ppo", "ppp", func(s *Seen) { s.Behind = 2000 }, "server 3 is 2000 transactions behind the leader, more than 100"},
		"a new voter by unknown":           {"ppo", "ppp", func(s *Seen) { s.Behind = -1 }, "it is not known how far server 3 is behind"},
		"an observer must acknowledge":     {"po", "pp", func(*Seen) {}, "an observer acknowledges nothing, and without server 2 the voters that are up are no quorum of 1 2"},
		"a new voter that looks":           {"ppo", "ppp", func(s *Seen) { s.Role = "" }, "server 3 does not follow the leader"},
	} {
		old, next := roles(t, c.old), roles(t, c.next)
		v := healthy(old, next)
		if last := ensemble.ServerID(len(c.next)); c.change != nil {
			s := v.Servers[last]
			c.change(&s)
			v.Servers[last] = s
		}
		p := Single(Promote, ensemble.ServerID(len(c.next)), old, next, v)
		if all := fmt.Sprint(p.AllProblems()); !strings.Contains(all, c.want) {
			t.Errorf("%s: %s\nwant %s", name, all, c.want)
		}
	}
	for _, c := range [][2]string{{"ppo", "ppp"}, {"ppp", "pp"}, {"ppp", "pppo"}, {"p", "po"}} {
		if p := Single("", 3, roles(t, c[0]), roles(t, c[1]), healthy(roles(t, c[0]), roles(t, c[1]))); !p.Safe() {
			t.Errorf("%s to %s: %v", c[0], c[1], p.AllProblems())
		}
	}
}

// TestMove shows that a voter gets another address by way of an observer, because it may have another disk there,
// and another client port at once. The only voter of an ensemble cannot move.
func TestMove(t *testing.T) {
	for _, c := range []struct{ now, from, to, want string }{
		{"ppp", "h3:1:2", "h9:1:2", "[demote wait promote]"},
		{"ppp", "h3:1:2:participant;0.0.0.0:3", "h3:1:2:participant;0.0.0.0:4", "[move]"},
		{"ppo", "h3:1:2", "h9:1:2", "[move]"},
		{"p--", "h1:1:2", "h9:1:2", "[]"},
	} {
		now := roles(t, c.now)
		wanted := parse(t, strings.ReplaceAll(now.FileText(false), c.from, c.to))
		p := New(now, wanted, healthy(now, wanted))
		kinds := []Kind{}
		for _, s := range p.Steps {
			kinds = append(kinds, s.Kind)
		}
		if fmt.Sprint(kinds) != c.want || p.Safe() != (c.want != "[]") {
			t.Errorf("%s to %s: %v, %v", c.from, c.to, kinds, p.AllProblems())
		}
	}
}

// TestStepText shows what a step says of itself, and its form for programs.
func TestStepText(t *testing.T) {
	now, wanted := roles(t, "ppp"), roles(t, "pppp")
	p := New(now, wanted, healthy(now, wanted))
	s := p.Steps[2]
	if s.Text != "promote server 4 to a participant" || s.MustBeUp != "any 2 of 1 2 3, and any 3 of 1 2 3 4; none of 1 2 3 may fail" {
		t.Errorf("%+v", s)
	}
	b, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(b), `"kind":"promote","server":4,`) || strings.Contains(string(b), "Old") {
		t.Errorf("%s, %v", b, err)
	}
	two, one := roles(t, "pp"), roles(t, "p")
	if text := New(two, one, healthy(two, one)).Steps[0].Text; text != "remove server 2; a single voter needs standaloneEnabled=false on all servers" {
		t.Error(text)
	}
	v := healthy(now, roles(t, "pp"))
	late := v.Servers[2]
	late.Error = "gone"
	v.Servers[2] = late
	if s := Single(Remove, 2, now, roles(t, "p-p"), v).Steps[0]; s.MustBeUp != "any 2 of 1 2 3, and all of 1 3; none of 1 3 may fail" || s.Survives != 0 {
		t.Errorf("%q, survives %d", s.MustBeUp, s.Survives)
	}
}
