package survey

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
)

// bids returns the ephemeral children that are bids, in the order of the line. It also returns, as
// orphans, the persistent children whose names look like bids.
func (p Parent) bids() (bids []bid, orphans []Orphan) {
	var parsed []claim.Bid
	for _, c := range p.Children {
		b, err := claim.ParseBid(c.Name)
		switch {
		case err != nil:
		case c.Stat.EphemeralOwner != 0:
			parsed = append(parsed, b)
			bids = append(bids, bid{b, c, p.Path})
		case b.Naming != claim.Foreign && b.Naming != claim.Plain && !isItem(c.Name):
			orphans = append(orphans, Orphan{Path: claim.Join(p.Path, c.Name), Token: c.Stat.Czxid,
				Why: "is persistent: it is not deleted when its client leaves, and clients of other libraries wait for it"})
		}
	}
	order := parsed
	if !claim.SequenceExhausted(parsed) {
		names := make([]string, len(parsed))
		for i, b := range parsed {
			names[i] = b.Name
		}
		order = claim.ParseBids(names)
	} else {
		order = nil
	}
	slices.SortFunc(bids, func(a, b bid) int {
		if order == nil {
			return cmp.Compare(a.c.Stat.Czxid, b.c.Stat.Czxid)
		}
		at := func(x bid) int { return slices.IndexFunc(order, func(o claim.Bid) bool { return o.Name == x.Name }) }
		return cmp.Compare(at(a), at(b))
	})
	return bids, orphans
}

// bid is a bid and its znode.
type bid struct {
	claim.Bid
	c      Child
	parent string
}

// participant returns the bid as a Participant with this role.
func (b bid) participant(role string) Participant { return b.c.participant(b.parent, b.Naming, role) }

func (c Child) participant(parent string, n claim.Naming, role string) Participant {
	return Participant{Path: claim.Join(parent, c.Name), ID: lines.BidID(n, c.Data), Naming: n, Session: c.Stat.EphemeralOwner,
		Token: c.Stat.Czxid, Since: c.Stat.Ctime, Role: role}
}

// queueUp returns the bids of a line as participants, and sets for which others each one waits. Under the
// rule Leases every bid counts as a holder, because no znode shows how many may hold.
func queueUp(bids []bid, rule lines.Rule, holds string) []Participant {
	out := make([]Participant, 0, len(bids))
	for i, b := range bids {
		s := b.participant(holds)
		for _, ahead := range bids[:i] {
			if rule != lines.Leases && !(claim.IsShared(b.Naming) && claim.IsShared(ahead.Naming)) {
				s.Behind = append(s.Behind, claim.Join(ahead.parent, ahead.Name))
			}
		}
		if len(s.Behind) > 0 {
			s.Role = "waits"
		}
		out = append(out, s)
	}
	return out
}

// line fills in the Recipe of an election or a lock.
func (p Parent) line(s *Recipe, bids []bid) {
	s.Kind = claim.KindLock
	holds := "holds"
	var leader *Child
	for i, c := range p.Children {
		if c.Name == "LEADER" {
			leader = &p.Children[i]
		}
	}
	for _, b := range bids {
		switch b.Naming {
		case claim.OwnRead, claim.CuratorRead, claim.CuratorWrite, claim.KazooRead:
			s.Kind = claim.KindReadWriteLock
		case claim.CuratorLatch, claim.Plain:
			s.Kind = claim.KindElection
		case claim.CuratorLease:
			s.Kind = claim.KindSemaphore
		}
	}
	if leader != nil {
		s.Kind = claim.KindElection
	}
	rule := lines.Exclusive
	switch s.Kind {
	case claim.KindElection:
		holds = "leads"
	case claim.KindSemaphore:
		rule = lines.Leases
	}
	s.Participants = queueUp(bids, rule, holds)
	if leader != nil {
		p.published(s, *leader)
	}
}

// published adds what the data of LEADER shows.
func (p Parent) published(s *Recipe, leader Child) {
	n, err := claim.ParseNotice(leader.Data)
	own := claim.Join(p.Path, leader.Name)
	first := &s.Participants[0]
	switch {
	case leader.Stat.EphemeralOwner == 0:
		s.Orphans = append(s.Orphans, Orphan{Path: own, Token: leader.Stat.Czxid, Why: "is persistent, so no leader can publish itself"})
	case err != nil: // the data was written by another recipe
	case !slices.Contains(p.Names, n.Bid):
		s.Orphans = append(s.Orphans, p.nameless(leader, n))
	case claim.Join(p.Path, n.Bid) == first.Path:
		first.Since = leader.Stat.Ctime
	}
}

// nameless returns the orphan for a LEADER whose bid is gone.
func (p Parent) nameless(leader Child, n claim.Notice) Orphan {
	return Orphan{Path: claim.Join(p.Path, leader.Name), Token: leader.Stat.Czxid, Why: fmt.Sprintf("names %s, which does not exist", n.Bid), Missing: claim.Join(p.Path, n.Bid)}
}

// twice finds bids that a lost reply has left behind. These are two bids with the same nonce or, in an
// election, two bids of one session, which no library makes on purpose. In a lock, one session may have
// several bids, because each thread of a program makes its own.
func twice(s Recipe) []Orphan {
	var out []Orphan
	for i, a := range s.Participants {
		for _, b := range s.Participants[i+1:] {
			why := ""
			switch {
			case stem(a) != "" && stem(a) == stem(b):
				why = "is left over from a lost reply: its client has made the bid again, as " + path.Base(b.Path)
			case s.Kind == claim.KindElection && a.Session == b.Session && a.ID == b.ID:
				why = fmt.Sprintf("may be left over from a lost reply: session %v has another bid, %s", a.Session, path.Base(b.Path))
			default:
				continue
			}
			out = append(out, Orphan{Path: a.Path, Token: a.Token, Why: why})
			break
		}
	}
	return out
}

// stem returns the nonce of a bid's name, or "" if the name has none. Bids of one client that have the
// same nonce are the same attempt.
func stem(s Participant) string {
	switch b, err := claim.ParseBid(path.Base(s.Path)); {
	case err != nil, b.Naming == claim.Foreign, b.Naming == claim.Plain:
		return ""
	default:
		if head := strings.TrimSuffix(b.Name, claim.FormatSeq(b.Seq)); len(head) > len(claim.Nonce{}) {
			return head
		}
	}
	return ""
}
