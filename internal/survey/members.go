package survey

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
)

// partySuffix is the last part of the names of members of kazoo's Party.
const partySuffix = "__party__"

// ephemerals returns the ephemeral children in the order of their creation. It leaves out marks, which are
// no participants: a client uses a mark to detect whether its own write was carried out.
func (p Parent) ephemerals(role string) []Participant {
	var out []Participant
	for _, c := range p.Children {
		if c.Stat.EphemeralOwner != 0 && c.Name != "LEADER" && !claim.IsMark(c.Name) {
			st := c.participant(p.Path, p.naming(c), role)
			if st.Naming == claim.KazooItem || st.Naming == claim.Own {
				st.ID = "" // the data of an item at work is random and no id
			}
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b Participant) int { return cmp.Compare(a.Token, b.Token) })
	return out
}

// naming returns the naming scheme of a member's znode. If a name has the same form in this project and in
// another library, it returns the scheme of the other library.
func (p Parent) naming(c Child) claim.Naming {
	nonce, _, hyphen := strings.Cut(c.Name, "-")
	switch {
	case p.Counts() && claim.IsHex32(c.Name):
		return claim.KazooLease
	case isCuratorItem(c.Name):
		return claim.CuratorItem
	case strings.HasPrefix(c.Name, "entry-"):
		return claim.KazooItem
	case hyphen && claim.IsHex32(nonce) && isItem(c.Name):
		return claim.Own
	case strings.HasSuffix(c.Name, partySuffix) && claim.IsHex32(strings.TrimSuffix(c.Name, partySuffix)):
		return claim.KazooParty
	case hyphen && claim.IsHex32(nonce):
		return claim.KazooShallow
	case claim.IsHex32(c.Name):
		return claim.HexBarrier
	case p.isInstance(c):
		return claim.CuratorInstance
	case claim.IsUUID(c.Name):
		return claim.CuratorBarrier
	case len(c.Name) > 39 && claim.IsProtected(c.Name[:40], 36):
		return claim.CuratorNode
	}
	return claim.MemberName
}

// isInstance reports whether a child is an instance of a service: its path is BASE/NAME/ID, and its data
// contains the name and the id.
func (p Parent) isInstance(c Child) bool {
	var i struct{ Name, ID string }
	return len(c.Data) > 0 && c.Data[0] == '{' && json.Unmarshal(c.Data, &i) == nil && i.Name == p.base() && i.ID == c.Name
}

// members fills in the Recipe of a double barrier, a group, a service or a transaction.
func (p Parent) members(s *Recipe) {
	s.Participants = p.ephemerals("is in")
	s.Kind = claim.KindGroup
	every := func(namings ...claim.Naming) bool {
		return len(s.Participants) > 0 && !slices.ContainsFunc(s.Participants, func(st Participant) bool { return !slices.Contains(namings, st.Naming) })
	}
	switch {
	case strings.HasPrefix(p.base(), claim.TxPrefix) && claim.IsHex32(p.base()[len(claim.TxPrefix):]):
		p.transaction(s)
		return
	case every(claim.HexBarrier, claim.CuratorBarrier):
		p.barrier(s)
		return // the data of a member is its id
	case every(claim.CuratorInstance):
		s.Kind = claim.KindService
	}
	for i := range s.Participants {
		m := &s.Participants[i]
		switch name := path.Base(m.Path); m.Naming {
		case claim.KazooShallow:
			_, m.ID, _ = strings.Cut(name, "-")
		case claim.CuratorNode:
			m.ID = name[40:]
		case claim.MemberName, claim.CuratorInstance:
			m.ID = name // the data belongs to the application, so it is not an id
		}
	}
	for _, c := range p.Children {
		if n, err := claim.ParseNotice(c.Data); err == nil && c.Name == "LEADER" {
			s.Kind = claim.KindElection
			s.Orphans = append(s.Orphans, p.nameless(c, n))
		}
	}
}

// barrier fills in the Recipe of a double barrier. The znode ready lets members in. It belongs to their
// round if one of the members is older than ready.
func (p Parent) barrier(s *Recipe) {
	s.Kind = claim.KindDoubleBarrier
	if !slices.Contains(p.Names, "ready") {
		for i := range s.Participants {
			s.Participants[i].Role = "waits"
		}
	}
	for _, c := range p.Children {
		if c.Name == "ready" && c.Stat.EphemeralOwner == 0 && c.Stat.Czxid < s.Participants[0].Token {
			s.Orphans = append(s.Orphans, Orphan{Path: claim.Join(p.Path, c.Name), Token: c.Stat.Czxid, Plain: true,
				Why: "is older than all present members: it may be left over from a round whose members have died, and then the next round does not begin together"})
		}
	}
}

// transaction fills in the Recipe of a two-phase commit: its coordinator, and the sites that have joined.
func (p Parent) transaction(s *Recipe) {
	s.Kind = claim.KindTransaction
	for i := range s.Participants {
		m := &s.Participants[i]
		m.Naming, m.ID = claim.Own, ""
		if site, ok := strings.CutPrefix(path.Base(m.Path), "site_"); ok {
			m.ID = site
		} else {
			m.Role = "coordinates"
		}
	}
}
