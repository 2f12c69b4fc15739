package claim

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// bids are the children that stand in a line, in order, and those that look
// as if they did.
func (p Place) bids() (bids []bid, orphans []Orphan) {
	var parsed []Bid
	for _, c := range p.Children {
		b, err := ParseBid(c.Name)
		switch {
		case err != nil:
		case c.Stat.EphemeralOwner != 0:
			parsed = append(parsed, b)
			bids = append(bids, bid{b, c, p.Path})
		case b.Naming != Foreign && b.Naming != Plain && !isItem(c.Name):
			orphans = append(orphans, Orphan{Path: Join(p.Path, c.Name), Token: c.Stat.Czxid,
				Why: "is persistent: it stays whoever leaves, and clients of other libraries wait for it"})
		}
	}
	order := parsed
	if !wornOut(parsed) {
		names := make([]string, len(parsed))
		for i, b := range parsed {
			names[i] = b.Name
		}
		order = ParseBids(names)
	} else {
		order = nil
	}
	slices.SortFunc(bids, func(a, b bid) int {
		if order == nil {
			return cmp.Compare(a.c.Stat.Czxid, b.c.Stat.Czxid)
		}
		at := func(x bid) int { return slices.IndexFunc(order, func(o Bid) bool { return o.Name == x.Name }) }
		return cmp.Compare(at(a), at(b))
	})
	return bids, orphans
}

// bid is one with its znode.
type bid struct {
	Bid
	c      Child
	parent string
}

// stand is the bid's znode in a role.
func (b bid) stand(role string) Stand { return b.c.stand(b.parent, b.Naming, role) }

func (c Child) stand(parent string, n Naming, role string) Stand {
	return Stand{Path: Join(parent, c.Name), ID: BidID(n, c.Data), Naming: n, Session: c.Stat.EphemeralOwner,
		Token: c.Stat.Czxid, Since: c.Stat.Ctime, Role: role}
}

// queueUp says who of a line waits for whom. Under Leases all are taken to
// hold: how many may is written nowhere.
func queueUp(bids []bid, rule Rule, holds string) []Stand {
	out := make([]Stand, 0, len(bids))
	for i, b := range bids {
		s := b.stand(holds)
		for _, ahead := range bids[:i] {
			if rule != Leases && !(b.Naming.shared() && ahead.Naming.shared()) {
				s.Behind = append(s.Behind, Join(ahead.parent, ahead.Name))
			}
		}
		if len(s.Behind) > 0 {
			s.Role = "waits"
		}
		out = append(out, s)
	}
	return out
}

// line is the scene of an election or a lock.
func (p Place) line(s *Scene, bids []bid) {
	s.Kind = KindLock
	holds := "holds"
	var leader *Child
	for i, c := range p.Children {
		if c.Name == "LEADER" {
			leader = &p.Children[i]
		}
	}
	for _, b := range bids {
		switch b.Naming {
		case OwnRead, CuratorRead, CuratorWrite, KazooRead:
			s.Kind = KindReadWriteLock
		case CuratorLatch, Plain:
			s.Kind = KindElection
		case CuratorLease:
			s.Kind = KindSemaphore
		}
	}
	if leader != nil {
		s.Kind = KindElection
	}
	rule := Exclusive
	switch s.Kind {
	case KindElection:
		holds = "leads"
	case KindSemaphore:
		rule = Leases
	}
	s.Stands = queueUp(bids, rule, holds)
	if leader != nil {
		p.published(s, *leader)
	}
}

// published reads LEADER.
func (p Place) published(s *Scene, leader Child) {
	n, err := ParseNotice(leader.Data)
	own := Join(p.Path, leader.Name)
	first := &s.Stands[0]
	switch {
	case leader.Stat.EphemeralOwner == 0:
		s.Orphans = append(s.Orphans, Orphan{Path: own, Token: leader.Stat.Czxid, Why: "is persistent, so that no leader can make itself known"})
	case err != nil: // others'
	case !slices.Contains(p.Names, n.Bid):
		s.Orphans = append(s.Orphans, p.nameless(leader, n))
	case Join(p.Path, n.Bid) == first.Path:
		first.Since = leader.Stat.Ctime
	}
}

// nameless is a LEADER whose bid is not there.
func (p Place) nameless(leader Child, n Notice) Orphan {
	return Orphan{Path: Join(p.Path, leader.Name), Token: leader.Stat.Czxid, Why: fmt.Sprintf("names %s, which is gone", n.Bid), Missing: Join(p.Path, n.Bid)}
}

// twice finds bids that a lost answer has left behind: the same bid, by its nonce, stands twice;
// or one session twice in an election, for which no library has a reason.
// In a lock it may well: each thread of a program makes a bid of its own.
func twice(s Scene) []Orphan {
	var out []Orphan
	for i, a := range s.Stands {
		for _, b := range s.Stands[i+1:] {
			why := ""
			switch {
			case stem(a) != "" && stem(a) == stem(b):
				why = "is left over from a lost answer: the same bid stands here again, as " + path.Base(b.Path)
			case s.Kind == KindElection && a.Session == b.Session && a.ID == b.ID:
				why = fmt.Sprintf("may be left over from a lost answer: session %v stands here again, as %s", a.Session, path.Base(b.Path))
			default:
				continue
			}
			out = append(out, Orphan{Path: a.Path, Token: a.Token, Why: why})
			break
		}
	}
	return out
}

// stem is what a bid's name begins with where that is random: all of the same prefix are one
// client's. Empty: nothing in it is.
func stem(s Stand) string {
	switch b, err := ParseBid(path.Base(s.Path)); {
	case err != nil, b.Naming == Foreign, b.Naming == Plain:
		return ""
	default:
		if head := strings.TrimSuffix(b.Name, FormatSeq(b.Seq)); len(head) > len(Nonce{}) {
			return head
		}
	}
	return ""
}
