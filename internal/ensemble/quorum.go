package ensemble

// Set is a set of servers. Its method Has fits [Membership.HasQuorum].
type Set map[ServerID]struct{}

// SetOf returns the set of these servers.
func SetOf(ids ...ServerID) Set {
	s := make(Set, len(ids))
	for _, id := range ids {
		s[id] = struct{}{}
	}
	return s
}

// Has reports whether id is in the set.
func (s Set) Has(id ServerID) bool {
	_, ok := s[id]
	return ok
}

// HasQuorum reports whether the servers for which has is true are a quorum.
// Servers that are no voters of m never count. Any two quorums of one
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

// hasGroups is the hierarchical test: a group is won by more than half of its
// weight, a quorum wins more than half of the groups that have any weight.
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

// sharedMax bounds the search of Overlap, which is exponential in the voters
// that both memberships share.
const sharedMax = 20

// Overlap reports whether every quorum of m shares a voter with every quorum of
// o, so that no decision of one can pass the other by. It searches all ways to
// part the shared voters; with more than 20 of them it answers by the count of
// voters if both are majorities, and false, not proven, otherwise.
func (m *Membership) Overlap(o *Membership) bool {
	var shared []ServerID
	for _, id := range m.voters {
		if o.IsVoter(id) {
			shared = append(shared, id)
		}
	}
	if !m.Hierarchical() && !o.Hierarchical() {
		return majoritiesOverlap(len(m.voters), len(o.voters), len(shared))
	}
	if len(shared) > sharedMax {
		return false
	}
	for mask := range uint32(1) << len(shared) {
		// A shared voter goes to m where its bit is set, to o elsewhere; all
		// others go to the side that has them. Disjoint quorums exist exactly
		// if some split gives each side one.
		at := make(map[ServerID]bool, len(shared))
		for i, id := range shared {
			at[id] = mask&(1<<i) != 0
		}
		mine := func(id ServerID) bool { own, both := at[id]; return own || !both }
		theirs := func(id ServerID) bool { return !at[id] }
		if m.HasQuorum(mine) && o.HasQuorum(theirs) {
			return false
		}
	}
	return true
}

// majoritiesOverlap decides by counting: each side takes its own voters first
// and needs the rest of its majority from the shared ones.
func majoritiesOverlap(a, b, shared int) bool {
	need := func(n int) int { return max(0, n/2+1-(n-shared)) }
	return a == 0 || b == 0 || need(a)+need(b) > shared
}
