package ensemble

// HasQuorum reports whether the servers for which has(id) is true are a quorum.
// Servers that are not voters of m never count. Any two quorums of one
// membership share a voter. It allocates nothing.
func (m *Membership) HasQuorum(has func(ServerID) bool) bool {
	if m.Hierarchical() {
		return m.hasGroups(has)
	}
	n := 0
	for _, id := range m.voters {
		if has(id) {
			n++
		}
	}
	return 2*n > len(m.voters)
}

// hasGroups is the hierarchical test. A group counts if has(id) is true for servers with
// more than half of its weight. A quorum needs more than half of the groups whose weight
// is not 0.
func (m *Membership) hasGroups(has func(ServerID) bool) bool {
	groups, won := 0, 0
	for _, g := range m.groups {
		if g.total == 0 {
			continue
		}
		groups++
		var sum int64
		for _, id := range g.members {
			if m.weights[id] > 0 && has(id) {
				sum += m.weights[id]
			}
		}
		if 2*sum > g.total {
			won++
		}
	}
	return 2*won > groups
}

// Weight returns the weight of a server's vote: 1 for every id with majority
// quorums, the configured one with groups, and 0 for an id that a hierarchical
// membership does not know. A server of weight 0 is never elected.
func (m *Membership) Weight(id ServerID) int64 {
	if !m.Hierarchical() {
		return 1
	}
	return m.weights[id]
}
