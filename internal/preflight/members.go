package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
)

// sameMembers compares the members of a running server with those of zoo.cfg.
func (l *Live) sameMembers(m *Member) []Finding {
	if m.Config == nil {
		return []Finding{{Unseen, m.Server, "its answer to conf has no members that can be read", "servers that disagree about the members can elect two leaders",
			"compare the server, group and weight lines of all members by hand"}}
	}
	members := l.c.Ensemble.Members
	id, known := l.idOf(m)
	anyHost := func(s ensemble.Server) bool {
		return s.ID == l.c.Ensemble.ID && listensEverywhere(members, s.ID) || known && s.ID == id && listensEverywhere(m.Config, id)
	}
	if memberLines(m.Config, anyHost) != memberLines(members, anyHost) {
		exact := func(ensemble.Server) bool { return false }
		running, given := memberLines(m.Config, exact), memberLines(members, exact)
		return []Finding{{Prevents, m.Server, "its members are " + running + "; zoo.cfg has " + given,
			"servers that disagree about the members can elect two leaders",
			"make the server, group and weight lines of all members equal; after a reconfiguration copy the members from /zookeeper/config"}}
	}
	return nil
}

// listensEverywhere reports whether the line of a server has a wildcard in place of a host. Only that server itself may
// have such a line, because others cannot connect to it.
func listensEverywhere(m *ensemble.Membership, id ensemble.ServerID) bool {
	s, _ := m.Server(id)
	return slices.ContainsFunc(s.Addresses, func(a ensemble.Address) bool { return ensemble.HostPort{Host: a.Host}.IsWildcard() })
}

// memberLines returns everything that decides about quorums, in one order: the ids, addresses and roles of the members,
// and the groups and weights of those that vote. Client addresses do not matter here: a server line may leave
// them out. The hosts of a server for which anyHost is true do not matter either.
func memberLines(m *ensemble.Membership, anyHost func(ensemble.Server) bool) string {
	d := m.Definition()
	var all []string
	for _, s := range d.Servers {
		s.Client = ensemble.HostPort{}
		if anyHost(s) {
			s.Addresses = portsOf(s)
		}
		all = append(all, s.Line())
	}
	for _, id := range slices.Sorted(maps.Keys(d.Groups)) {
		var voters []string
		for _, sid := range d.Groups[id] {
			if m.IsVoter(sid) {
				voters = append(voters, fmt.Sprint(sid))
			}
		}
		all = append(all, fmt.Sprintf("group.%d=%s", id, strings.Join(voters, ":")))
	}
	if m.Hierarchical() {
		for _, id := range m.Voters() {
			all = append(all, fmt.Sprintf("weight.%d=%d", id, m.Weight(id)))
		}
	}
	return strings.Join(all, " ")
}

// portsOf returns the addresses of a server with wildcards in place of the hosts, in order of their ports.
func portsOf(s ensemble.Server) []ensemble.Address {
	all := slices.Clone(s.Addresses)
	for i := range all {
		all[i].Host = ensemble.Wildcard
	}
	slices.SortFunc(all, func(a, b ensemble.Address) int {
		return cmp.Or(cmp.Compare(a.QuorumPort, b.QuorumPort), cmp.Compare(a.ElectionPort, b.ElectionPort))
	})
	return all
}
