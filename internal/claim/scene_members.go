package claim

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// partySuffix ends the names of the members of kazoo's Party.
const partySuffix = "__party__"

// ephemerals are the children that go with a session, in order of age. The
// marks by which a write is known again are none.
func (p Place) ephemerals(role string) []Stand {
	var out []Stand
	for _, c := range p.Children {
		if c.Stat.EphemeralOwner != 0 && c.Name != "LEADER" && !isMark(c.Name) {
			st := c.stand(p.Path, p.naming(c), role)
			if st.Naming == KazooItem || st.Naming == Own {
				st.ID = "" // the data of what is at work is random
			}
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b Stand) int { return cmp.Compare(a.Token, b.Token) })
	return out
}

// isMark reports whether a name is that of a mark, of a value's change or a queue's item.
func isMark(name string) bool {
	if nonce, ok := strings.CutPrefix(name, "_m_"); ok {
		return isHex32(nonce)
	}
	nonce, ok := strings.CutSuffix(name, "-put")
	return ok && isHex32(nonce)
}

// naming tells whose a member's name is, as far as it can be told: where ours
// look like others', theirs are meant.
func (p Place) naming(c Child) Naming {
	nonce, _, hyphen := strings.Cut(c.Name, "-")
	switch {
	case p.Counts() && isHex32(c.Name):
		return KazooLease
	case isCuratorItem(c.Name):
		return CuratorItem
	case strings.HasPrefix(c.Name, "entry-"):
		return KazooItem
	case hyphen && isHex32(nonce) && isItem(c.Name):
		return Own
	case strings.HasSuffix(c.Name, partySuffix) && isHex32(strings.TrimSuffix(c.Name, partySuffix)):
		return KazooParty
	case hyphen && isHex32(nonce):
		return KazooShallow
	case isHex32(c.Name):
		return HexBarrier
	case p.isInstance(c):
		return CuratorInstance
	case isUUID(c.Name):
		return CuratorBarrier
	case len(c.Name) > 39 && isProtected(c.Name[:40], 36):
		return CuratorNode
	}
	return MemberName
}

// isInstance reports whether a member is one of a service: BASE/NAME/ID, and
// both are in its data.
func (p Place) isInstance(c Child) bool {
	var i struct{ Name, ID string }
	return len(c.Data) > 0 && c.Data[0] == '{' && json.Unmarshal(c.Data, &i) == nil && i.Name == p.base() && i.ID == c.Name
}

// members is the scene of a double barrier, a group, a service or a
// transaction.
func (p Place) members(s *Scene) {
	s.Stands = p.ephemerals("is in")
	s.Kind = KindGroup
	every := func(namings ...Naming) bool {
		return len(s.Stands) > 0 && !slices.ContainsFunc(s.Stands, func(st Stand) bool { return !slices.Contains(namings, st.Naming) })
	}
	switch {
	case strings.HasPrefix(p.base(), TxPrefix) && isHex32(p.base()[len(TxPrefix):]):
		p.transaction(s)
		return
	case every(HexBarrier, CuratorBarrier):
		p.barrier(s)
		return // their ids are their data
	case every(CuratorInstance):
		s.Kind = KindService
	}
	for i := range s.Stands {
		m := &s.Stands[i]
		switch name := path.Base(m.Path); m.Naming {
		case KazooShallow:
			_, m.ID, _ = strings.Cut(name, "-")
		case CuratorNode:
			m.ID = name[40:]
		case MemberName, CuratorInstance:
			m.ID = name // the data is the member's own
		}
	}
	for _, c := range p.Children {
		if n, err := ParseNotice(c.Data); err == nil && c.Name == "LEADER" {
			s.Kind = KindElection
			s.Orphans = append(s.Orphans, p.nameless(c, n))
		}
	}
}

// barrier is the scene of a double barrier. The znode ready lets its members
// in, and is of their round where one of them is older.
func (p Place) barrier(s *Scene) {
	s.Kind = KindDoubleBarrier
	if !slices.Contains(p.Names, "ready") {
		for i := range s.Stands {
			s.Stands[i].Role = "waits"
		}
	}
	for _, c := range p.Children {
		if c.Name == "ready" && c.Stat.EphemeralOwner == 0 && c.Stat.Czxid < s.Stands[0].Token {
			s.Orphans = append(s.Orphans, Orphan{Path: Join(p.Path, c.Name), Token: c.Stat.Czxid, Plain: true,
				Why: "is older than everybody who is in: it may be left over from a round whose members have died, and keeps the next from beginning together"})
		}
	}
}

// transaction is the scene of a two-phase commit: who coordinates it, and the
// sites that are there.
func (p Place) transaction(s *Scene) {
	s.Kind = KindTransaction
	for i := range s.Stands {
		m := &s.Stands[i]
		m.Naming, m.ID = Own, ""
		if site, ok := strings.CutPrefix(path.Base(m.Path), "site_"); ok {
			m.ID = site
		} else {
			m.Role = "coordinates"
		}
	}
}
