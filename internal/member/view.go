package member

import (
	"fmt"
	"strings"

	"bellwether/internal/ensemble"
)

// Seen is what is known of one server.
type Seen struct {
	Address    string // where clients reach it; empty: not known
	Error      string // why it does not answer; empty: it answers
	HasID      bool
	ID         ensemble.ServerID // the id that the server says it has, if HasID
	Role       string            // leader, follower, observer or standalone; empty: it does not serve
	Version    string
	Zxid       string
	Empty      bool                 // it serves without any history, although the leader has one
	Behind     int64                // how many transactions it is behind the leader; -1: not known
	Differs    string               // how its tree differs from that of other servers, as it says; empty: it does not say so
	ClosedPort string               // why its election port is not open, as it says; empty: it does not say so
	Members    *ensemble.Membership // the members as this server knows them; nil: not known

	assumed bool // an earlier step of the plan makes sure that it has caught up
}

// View is what is known of the servers.
type View struct {
	Servers   map[ensemble.ServerID]Seen
	BehindMax int64 // a server that is behind by more has not caught up
}

// serves reports whether a server answers and is a member or a learner of an ensemble.
func (s *Seen) serves() bool {
	return s.Error == "" && (s.Role == "leader" || s.Role == "follower" || s.Role == "observer")
}

// Counts reports whether a server has what is committed, so that it can be counted for a quorum.
func (v *View) Counts(id ensemble.ServerID) bool {
	s, known := v.Servers[id]
	return known && s.serves() && s.hasID(id) && (s.Role == "leader" || v.caughtUp(&s))
}

// caughtUp reports whether a server that serves is not far behind.
func (v *View) caughtUp(s *Seen) bool {
	return !s.Empty && s.Behind >= 0 && s.Behind <= v.BehindMax
}

// hasID reports whether a server has the id id, as far as is known.
func (s *Seen) hasID(id ensemble.ServerID) bool { return !s.HasID || s.ID == id }

// with returns a view in which a server has caught up.
func (v View) with(id ensemble.ServerID) View {
	next := View{Servers: make(map[ensemble.ServerID]Seen, len(v.Servers)+1), BehindMax: v.BehindMax}
	for other, s := range v.Servers {
		next.Servers[other] = s
	}
	s := next.Servers[id]
	s.Error, s.Role, s.Empty, s.Behind, s.HasID, s.assumed = "", "observer", false, 0, false, true
	next.Servers[id] = s
	return next
}

// Problem is something that makes a change unsafe.
type Problem struct {
	What string `json:"what"` // what was found, and which rule it breaks
	Do   string `json:"do"`   // what would make the change safe
}

// String returns both parts in one line.
func (p Problem) String() string { return p.What + ": " + p.Do }

// Newcomer returns what prevents a server from becoming an observer. It need not have any history.
func (v *View) Newcomer(s ensemble.Server) []Problem {
	seen := v.Servers[s.ID]
	switch {
	case seen.assumed:
		return nil
	case seen.Error != "":
		return []Problem{{fmt.Sprintf("server %d does not answer at %s: %s", s.ID, seen.Address, seen.Error),
			newcomerStart}}
	case seen.Role == "standalone":
		return []Problem{{fmt.Sprintf("server %d at %s runs standalone with a history of its own, which it would lose", s.ID, seen.Address), "start it with the lines of the present members and its own, and an empty data directory"}}
	case !seen.hasID(s.ID):
		return []Problem{{fmt.Sprintf("the server at %s has the id %d, and not %d: two servers with one id vote as one", seen.Address, seen.ID, s.ID), "correct the line, or, if that server should have the id of the line, its myid"}}
	case seen.Version == "" && seen.Role == "":
		return []Problem{{fmt.Sprintf("server %d does not serve: it follows no leader", s.ID), newcomerStart}}
	case seen.Differs != "":
		return []Problem{{fmt.Sprintf("server %d says that %s, as after a start with the data of another ensemble", s.ID, seen.Differs), "stop it, and start it with the lines of the present members and its own, and with data directories that are empty except for myid"}}
	}
	if why := versionProblem(seen.Version); why != "" {
		return []Problem{{fmt.Sprintf("server %d has the version %q, %s", s.ID, seen.Version, why), "run Bellwether or ZooKeeper 3.5 to 3.9 on it"}}
	}
	return nil
}

const newcomerStart = "start it with a zoo.cfg that has the lines of the present members and its own, and no data of another ensemble; its log says why it does not join"

// versionProblem returns why a server of this version may not join; empty: it may.
func versionProblem(version string) string {
	var major, minor int
	switch n, _ := fmt.Sscanf(strings.TrimSpace(version), "%d.%d", &major, &minor); {
	case n < 2:
		return "which is not known"
	case major != 3 || minor > 9:
		return "and this program knows those of 3.5 to 3.9"
	case minor < 5:
		return "and changes of members exist since 3.5"
	}
	return ""
}

// Differing returns a problem for each member whose tree differs: a newcomer could get that tree.
func (v *View) Differing(now *ensemble.Membership) (all []Problem) {
	for _, line := range now.Servers() {
		if seen := v.Servers[line.ID]; seen.Differs != "" {
			all = append(all, Problem{fmt.Sprintf("server %d says that %s, and a newcomer could get the wrong tree", line.ID, seen.Differs),
				"find out which tree is right (docs/operate.md), and empty the data directories of the server with the wrong one; member remove and demote work meanwhile"})
		}
	}
	return all
}

// Leaderless returns a problem if servers follow a leader, and none that answers leads.
func (v *View) Leaderless(now *ensemble.Membership) []Problem {
	follows := false
	var silent []ensemble.ServerID
	for _, line := range now.Servers() {
		seen, known := v.Servers[line.ID]
		switch {
		case !known || seen.Error != "":
			silent = append(silent, line.ID)
		case seen.Role == "leader":
			return nil
		case seen.Role == "follower":
			follows = true
		}
	}
	if !follows || len(silent) == 0 {
		return nil
	}
	return []Problem{{fmt.Sprintf("none of the servers that answer leads, and %s does not answer, so it is not known how far the others are behind", idText(silent)),
		"give the address at which that server answers, with --address ID=HOST:PORT, or wait until another server leads"}}
}

// voter returns what prevents a server from getting a vote.
func (v *View) voter(s ensemble.Server) []Problem {
	if all := v.Newcomer(s); len(all) > 0 {
		return all
	}
	seen := v.Servers[s.ID]
	wait := "let it follow as an observer until it has caught up (bellwether member add does that), then give it a vote"
	switch {
	case !seen.serves():
		return []Problem{{fmt.Sprintf("server %d does not follow the leader, so it is not known what it has on its disk", s.ID), wait}}
	case seen.ClosedPort != "":
		return []Problem{{fmt.Sprintf("server %d says: %s; the other servers could not reach it in an election", s.ID, seen.ClosedPort), "remove the server and add it with the right line, or free the port"}}
	case seen.Empty:
		return []Problem{{fmt.Sprintf("server %d has an empty disk: with a vote it could complete a quorum that does not have what is committed", s.ID), wait}}
	case seen.Behind < 0:
		return []Problem{{fmt.Sprintf("it is not known how far server %d is behind the leader", s.ID), wait}}
	case !v.caughtUp(&seen):
		return []Problem{{fmt.Sprintf("server %d is %d transactions behind the leader, more than %d", s.ID, seen.Behind, v.BehindMax), wait}}
	}
	return nil
}
