package ensemble

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// GroupID is the number of a group of servers in a hierarchical quorum.
type GroupID int64

// serversMax is how many servers an ensemble may have; the documented ids end at 255.
const serversMax = 255

// weightMax is the largest weight of a server, so that sums cannot overflow.
const weightMax = 1 << 31

// Membership lists the servers of an ensemble, at one version. It is immutable.
type Membership struct {
	servers []Server // by id
	voters  []ServerID
	groups  []group // by id; empty for majority quorums
	weights map[ServerID]int64
	version int64
}

// group is one group of a hierarchical quorum.
type group struct {
	id      GroupID
	members []ServerID // by id
	total   int64      // weight of its members together
}

// Definition is the input of New.
type Definition struct {
	Servers []Server
	// Groups makes the quorums hierarchical if it is not empty. Then each participant
	// must be in exactly one group.
	Groups map[GroupID][]ServerID
	// Weights are the weights of members of groups; a participant without a weight has 1.
	Weights map[ServerID]int64
	// Version is the zxid that committed this membership, 0 for a first one.
	Version int64
}

// New checks a definition and returns its Membership. The Membership shares the addresses of
// the servers with the definition, and nothing else.
func New(d Definition) (*Membership, error) {
	m := &Membership{servers: slices.Clone(d.Servers), version: d.Version}
	if len(m.servers) > serversMax {
		return nil, fmt.Errorf("%d servers; an ensemble has at most %d", len(m.servers), serversMax)
	}
	if d.Version < 0 {
		return nil, fmt.Errorf("version %d is negative", d.Version)
	}
	slices.SortFunc(m.servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	for i, s := range m.servers {
		if s.ID < 0 {
			return nil, fmt.Errorf("server id %d is negative", s.ID)
		}
		if i > 0 && m.servers[i-1].ID == s.ID {
			return nil, fmt.Errorf("server %d is defined twice", s.ID)
		}
		if len(s.Addresses) == 0 {
			return nil, fmt.Errorf("server %d has no address", s.ID)
		}
		if s.Role == Participant {
			m.voters = append(m.voters, s.ID)
		}
	}
	if len(d.Groups) == 0 {
		if len(d.Weights) > 0 {
			return nil, errors.New("weights are given but no groups; put each participant into a group.N line")
		}
		return m, nil
	}
	if err := m.weigh(d.Weights); err != nil {
		return nil, err
	}
	return m, m.form(d.Groups)
}

// weigh fills in the weights: those given, and 1 for each other participant.
func (m *Membership) weigh(given map[ServerID]int64) error {
	m.weights = make(map[ServerID]int64, len(m.servers))
	for id, w := range given {
		if w < 0 || w > weightMax {
			return fmt.Errorf("weight %d of server %d is not from 0 to %d", w, id, int64(weightMax))
		}
		if _, ok := m.Server(id); !ok {
			return fmt.Errorf("weight given for server %d, which has no server line", id)
		}
		m.weights[id] = w
	}
	for _, id := range m.voters {
		if _, ok := m.weights[id]; !ok {
			m.weights[id] = 1
		}
	}
	return nil
}

// form builds the groups.
func (m *Membership) form(groups map[GroupID][]ServerID) error {
	seen := make(map[ServerID]GroupID, len(m.servers))
	weighty := false
	for id, members := range groups {
		g := group{id: id, members: slices.Sorted(slices.Values(members))}
		for _, sid := range g.members {
			if err := m.mayJoin(sid, id); err != nil {
				return err
			}
			if other, ok := seen[sid]; ok {
				return fmt.Errorf("server %d is in group %d and in group %d", sid, min(id, other), max(id, other))
			}
			seen[sid] = id
			g.total += m.weights[sid]
		}
		weighty = weighty || g.total > 0
		m.groups = append(m.groups, g)
	}
	slices.SortFunc(m.groups, func(a, b group) int { return cmp.Compare(a.id, b.id) })
	for _, sid := range m.voters {
		if _, ok := seen[sid]; !ok {
			return fmt.Errorf("server %d is in no group; with groups each participant must be in one", sid)
		}
	}
	if !weighty {
		return errors.New("no group has a weight above 0, so there could be no quorum")
	}
	return nil
}

// mayJoin checks one member of a group. An observer may be in a group only with weight 0,
// which has no effect. With more it would make every quorum harder to reach, because it
// never votes.
func (m *Membership) mayJoin(sid ServerID, id GroupID) error {
	s, ok := m.Server(sid)
	if !ok {
		return fmt.Errorf("group %d names server %d, which has no server line", id, sid)
	}
	if w, given := m.weights[sid]; s.Role == Observer && (!given || w > 0) {
		return fmt.Errorf("group %d names server %d, an observer; only participants vote", id, sid)
	}
	return nil
}

// Servers returns all servers in order of their ids. The slice is shared: do not change it.
func (m *Membership) Servers() []Server { return m.servers }

// Voters returns the ids of the participants in order. The slice is shared: do not change it.
func (m *Membership) Voters() []ServerID { return m.voters }

// Server returns the server with this id.
func (m *Membership) Server(id ServerID) (Server, bool) {
	i, ok := slices.BinarySearchFunc(m.servers, id, func(s Server, id ServerID) int { return cmp.Compare(s.ID, id) })
	if !ok {
		return Server{}, false
	}
	return m.servers[i], true
}

// IsVoter reports whether id is a participant.
func (m *Membership) IsVoter(id ServerID) bool {
	_, ok := slices.BinarySearch(m.voters, id)
	return ok
}

// Hierarchical reports whether groups and weights decide what a quorum is.
func (m *Membership) Hierarchical() bool { return len(m.groups) > 0 }

// Version returns the zxid that committed this membership, 0 for a first one.
func (m *Membership) Version() int64 { return m.version }

// WithVersion returns the same members at another version.
func (m *Membership) WithVersion(version int64) *Membership {
	c := *m
	c.version = version
	return &c
}

// Definition returns what New makes this membership of. Its maps and the slice of servers are
// not shared.
func (m *Membership) Definition() Definition {
	d := Definition{Servers: slices.Clone(m.servers), Version: m.version}
	if !m.Hierarchical() {
		return d
	}
	d.Groups, d.Weights = make(map[GroupID][]ServerID, len(m.groups)), maps.Clone(m.weights)
	for _, g := range m.groups {
		d.Groups[g.id] = slices.Clone(g.members)
	}
	return d
}

// SameMembers reports whether both have the same servers, groups and weights, whatever
// their versions are.
func (m *Membership) SameMembers(o *Membership) bool {
	return slices.Equal(m.lines(), o.lines())
}

// String returns the text of /zookeeper/config and of the messages between servers:
// servers, groups and weights, each in order of their numbers, and the version in
// hexadecimal as the last line, without a newline.
func (m *Membership) String() string {
	return strings.Join(append(m.lines(), "version="+m.hexVersion()), "\n")
}

// lines returns all lines but the version.
func (m *Membership) lines() []string {
	lines := make([]string, 0, len(m.servers)+len(m.groups)+len(m.weights)+1)
	for _, s := range m.servers {
		lines = append(lines, s.Line())
	}
	for _, g := range m.groups {
		ids := make([]string, len(g.members))
		for i, id := range g.members {
			ids[i] = strconv.FormatInt(int64(id), 10)
		}
		lines = append(lines, fmt.Sprintf("group.%d=%s", g.id, strings.Join(ids, ":")))
	}
	for _, s := range m.servers {
		if w, ok := m.weights[s.ID]; ok {
			lines = append(lines, fmt.Sprintf("weight.%d=%d", s.ID, w))
		}
	}
	return lines
}
