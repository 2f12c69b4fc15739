package claim

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"bellwether/wire"
)

// Kind is the recipe that the znodes below a parent belong to.
type Kind string

// The kinds. A lock may be an election of kazoo, or of Curator's
// LeaderSelector, whose znodes are the same.
const (
	KindElection      Kind = "election"
	KindLock          Kind = "lock"
	KindReadWriteLock Kind = "read-write lock"
	KindSemaphore     Kind = "semaphore"
	KindQueue         Kind = "queue"
	KindWorkQueue     Kind = "work queue"
	KindDoubleBarrier Kind = "double barrier"
	KindGroup         Kind = "group"
)

// Child is a znode below a parent, as it was read.
type Child struct {
	Name string
	Data []byte
	Stat wire.Stat
}

// Place is a parent as it was read.
type Place struct {
	Path     string
	Beside   []string // names of the znodes beside it
	Names    []string // of all children
	Children []Child  // those that Reads asks for
}

// Stand is a znode by which a client takes part in a recipe.
type Stand struct {
	Path    string
	ID      string // its data, where that is text
	Naming  Naming
	Session wire.SessionID
	Token   wire.Zxid
	Since   int64    // when it was made or, of a leader, published; ms since 1970
	Role    string   // leads, holds, reads, writes, waits, works, is in
	Behind  []string // paths of those that keep it waiting, the nearest last
	AnyOf   bool     // one of them going is enough
}

// Scene is one recipe in use.
type Scene struct {
	Kind    Kind
	Path    string
	Stands  []Stand // in the order of their turns
	Items   int     // of a queue
	Orphans []Orphan

	gate, line []Stand // to be put together with the rest, see Assemble
}

// Orphan is a znode that will not go by itself, or that nobody seems to own.
type Orphan struct{ Path, Why string }

// dir and base part a path.
func (p Place) dir() string  { return path.Dir(p.Path) }
func (p Place) base() string { return path.Base(p.Path) }

func (p Place) beside(name string) bool { return slices.Contains(p.Beside, name) }

// Reads are the children whose stat, and data if they are ephemeral, tell
// something: all but the items of a queue.
func (p Place) Reads() []string {
	if p.base() == "taken" && p.beside("entries") {
		return p.Names
	}
	return slices.DeleteFunc(slices.Clone(p.Names), isItem)
}

// isItem reports whether a name is that of a queue's item, under any naming.
func isItem(name string) bool {
	_, ok := ParseItem(name)
	return ok
}

// Recognise says which recipe stands at a place. What it is part of, a
// semaphore's leases or a queue's line, Assemble puts together.
func Recognise(p Place) (Scene, bool) {
	items := 0
	for _, n := range p.Names {
		if isItem(n) {
			items++
		}
	}
	bids, orphans := p.bids()
	s := Scene{Path: p.Path, Items: items, Orphans: orphans}
	switch base := p.base(); {
	case base == "entries" && p.beside("taken"):
		s.Kind, s.Path = KindWorkQueue, p.dir()
	case base == "taken" && p.beside("entries"):
		s = Scene{Kind: KindWorkQueue, Path: p.dir(), Stands: p.ephemerals("works")}
	case items > 0:
		s.Kind = KindQueue
	case strings.HasSuffix(base, ".line") && p.beside(strings.TrimSuffix(base, ".line")):
		s.Kind, s.Path, s.line = KindQueue, strings.TrimSuffix(p.Path, ".line"), queueUp(bids, Exclusive, "is next")
	case base == "leases" && p.beside("locks"):
		s.Kind, s.Path, s.Stands = KindSemaphore, p.dir(), queueUp(bids, Leases, "holds")
	case base == "locks" && p.beside("leases"):
		s.Kind, s.Path, s.gate = KindSemaphore, p.dir(), queueUp(bids, Exclusive, "waits")
	case strings.HasSuffix(base, "-__lock__") && p.beside(strings.TrimSuffix(base, "-__lock__")):
		s.Kind, s.Path, s.gate = KindSemaphore, strings.TrimSuffix(p.Path, "-__lock__"), queueUp(bids, Exclusive, "waits")
	case p.beside(base + "-__lock__"):
		s.Kind, s.Stands = KindSemaphore, p.ephemerals("holds")
	case len(bids) > 0:
		p.line(&s, bids)
	default:
		p.members(&s)
	}
	s.Orphans = append(s.Orphans, twice(s.Stands)...)
	return s, len(s.Stands)+len(s.gate)+len(s.line)+s.Items+len(s.Orphans) > 0
}

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
			orphans = append(orphans, Orphan{Join(p.Path, c.Name), "is persistent: it stays whoever leaves, and clients of other libraries wait for it"})
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
		s.Orphans = append(s.Orphans, Orphan{own, "is persistent, so that no leader can make itself known"})
	case err != nil: // others'
	case !slices.Contains(p.Names, n.Bid):
		s.Orphans = append(s.Orphans, Orphan{own, fmt.Sprintf("names %s, which is gone", n.Bid)})
	case Join(p.Path, n.Bid) == first.Path:
		first.Since = leader.Stat.Ctime
	}
}

// ephemerals are the children that go with a session, in order of age.
func (p Place) ephemerals(role string) []Stand {
	var out []Stand
	for _, c := range p.Children {
		if c.Stat.EphemeralOwner == 0 || c.Name == "LEADER" {
			continue
		}
		n := Foreign
		if b, err := KazooLease.parse(c.Name); err == nil {
			n = b.Naming
		}
		out = append(out, c.stand(p.Path, n, role))
	}
	slices.SortFunc(out, func(a, b Stand) int { return cmp.Compare(a.Token, b.Token) })
	return out
}

// members is the scene of a double barrier, or of a group.
func (p Place) members(s *Scene) {
	s.Stands = p.ephemerals("is in")
	nonces := len(s.Stands) > 0
	for i := range s.Stands {
		m := &s.Stands[i]
		name := path.Base(m.Path)
		nonces = nonces && isNonce(name)
		if nonce, id, ok := strings.Cut(name, "-"); ok && isHex32(nonce) {
			m.ID = id // of kazoo's ShallowParty
		} else if !isHex32(nonce) && !isNonce(name) && !strings.HasSuffix(name, "__party__") {
			m.ID = name // the data is the member's own
		}
	}
	s.Kind = KindGroup
	if nonces {
		s.Kind = KindDoubleBarrier
		if !slices.Contains(p.Names, "ready") {
			for i := range s.Stands {
				s.Stands[i].Role = "waits"
			}
		}
	}
	for _, c := range p.Children {
		if n, err := ParseNotice(c.Data); err == nil && c.Name == "LEADER" {
			s.Kind = KindElection
			s.Orphans = append(s.Orphans, Orphan{Join(p.Path, c.Name), fmt.Sprintf("names %s, which is gone", n.Bid)})
		}
	}
}

// isNonce reports whether a name is 32 hex digits, with the hyphens of a UUID
// or without.
func isNonce(name string) bool {
	return isHex32(name) || len(name) == 36 && isHex32(strings.ReplaceAll(name, "-", ""))
}

// twice finds clients that stand twice under the same id in one line.
func twice(stands []Stand) []Orphan {
	var out []Orphan
	for i, s := range stands {
		for _, later := range stands[i+1:] {
			if _, err := ParseBid(path.Base(s.Path)); err == nil && s.Session == later.Session && s.ID == later.ID {
				out = append(out, Orphan{s.Path, fmt.Sprintf("may be left over from a lost answer: session %v stands here again, as %s", s.Session, path.Base(later.Path))})
				break
			}
		}
	}
	return out
}

// Missing are the stands whose session the servers do not know.
func (s Scene) Missing(known map[wire.SessionID]bool) []Orphan {
	var out []Orphan
	for _, st := range s.Stands {
		if !known[st.Session] {
			out = append(out, Orphan{st.Path, fmt.Sprintf("belongs to session %v, which no server knows", st.Session)})
		}
	}
	return out
}

// Assemble puts together what stands at several places: leases and gate,
// items and those who wait for them.
func Assemble(scenes []Scene) []Scene {
	byPath := map[string]*Scene{}
	for _, s := range scenes {
		t := byPath[s.Path]
		if t == nil {
			t = &Scene{Kind: s.Kind, Path: s.Path}
			byPath[s.Path] = t
		}
		if t.Kind == KindQueue {
			t.Kind = s.Kind
		}
		t.Items += s.Items
		t.Stands = append(t.Stands, s.Stands...)
		t.Orphans = append(t.Orphans, s.Orphans...)
		t.gate = append(t.gate, s.gate...)
		t.line = append(t.line, s.line...)
	}
	out := make([]Scene, 0, len(byPath))
	for _, s := range byPath {
		s.enter()
		s.Stands, s.line = append(s.Stands, s.line...), nil
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Scene) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// enter puts those at a semaphore's gate behind those with a lease. Who is
// first at the gate waits for any lease, and may have bid for it already.
func (s *Scene) enter() {
	if len(s.gate) == 0 {
		return
	}
	gate := s.gate
	s.gate = nil
	first := &gate[0]
	last := len(s.Stands) - 1
	bidding := last >= 0 && s.Stands[last].Session == first.Session && s.Stands[last].Naming != KazooLease
	if bidding {
		first, last = &s.Stands[last], last-1
	}
	first.Role, first.AnyOf = "waits", true
	for _, held := range s.Stands[:last+1] {
		first.Behind = append(first.Behind, held.Path)
	}
	if bidding {
		for i := range gate {
			for j, b := range gate[i].Behind {
				if b == gate[0].Path {
					gate[i].Behind[j] = first.Path
				}
			}
		}
		gate = gate[1:]
	}
	s.Stands = append(s.Stands, gate...)
}
