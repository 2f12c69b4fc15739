package check

import "bellwether/internal/ensemble"

// HasQuorum reports whether the servers for which has is true are a quorum of a membership. The checkers count by
// themselves: a fault in package ensemble would otherwise mislead them as it misleads the servers.
func HasQuorum(m *ensemble.Membership, has func(ensemble.ServerID) bool) bool {
	if !m.Hierarchical() {
		voters, n := 0, 0
		for _, s := range m.Servers() {
			if s.Role != ensemble.Participant {
				continue
			}
			if voters++; has(s.ID) {
				n++
			}
		}
		return n > voters/2
	}
	d := m.Definition()
	groups, won := 0, 0
	for _, members := range d.Groups {
		var all, sum int64
		for _, id := range members {
			w := d.Weights[id]
			if all += w; w > 0 && has(id) {
				sum += w
			}
		}
		if all > 0 {
			groups++
		}
		if sum > all/2 {
			won++
		}
	}
	return won > groups/2
}

// weightOf returns the weight of a server's vote.
func weightOf(m *ensemble.Membership, id ensemble.ServerID) int64 {
	if m.Hierarchical() {
		return m.Definition().Weights[id]
	}
	if s, ok := m.Server(id); !ok || s.Role != ensemble.Participant {
		return 0
	}
	return 1
}
