package claim

import (
	"fmt"
	"path"
	"slices"
	"strconv"
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
	KindService       Kind = "service"
	KindTransaction   Kind = "transaction"
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
	Data     []byte   // of a semaphore of kazoo's, see Counts
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
	Role    string   // leads, holds, waits, works, is next, is in, coordinates
	Behind  []string // paths of those that keep it waiting, the nearest last
	AnyOf   bool     // one of them going is enough
}

// Scene is one recipe in use.
type Scene struct {
	Kind    Kind
	Path    string
	Stands  []Stand // in the order of their turns
	Items   int     // of a queue
	Leases  int     // of a semaphore, where that is written somewhere
	Orphans []Orphan

	gate, line []Stand // to be put together with the rest, see Assemble
}

// Orphan is a znode that will not go by itself, or that nobody seems to own.
type Orphan struct {
	Path, Why string
	Token     wire.Zxid // of the znode, lest another one be meant
	Missing   string    // path of a znode that is not there; empty for none
	Plain     bool      // it is nobody's bid: it is deleted, not kicked
}

// dir and base part a path.
func (p Place) dir() string  { return path.Dir(p.Path) }
func (p Place) base() string { return path.Base(p.Path) }

func (p Place) beside(name string) bool { return slices.Contains(p.Beside, name) }

// atWorkMax is how many items of Curator's queues are read: their consumers
// mark what they work on with ephemerals of the very same names, elsewhere.
const atWorkMax = 16

// Reads are the children whose stat, and data if they are ephemeral, tell
// something: all but the items of a queue.
func (p Place) Reads() []string {
	if p.base() == "taken" && p.beside("entries") {
		return p.Names
	}
	work := 0
	return slices.DeleteFunc(slices.Clone(p.Names), func(name string) bool {
		if isCuratorItem(name) && work < atWorkMax {
			work++
			return false
		}
		return isItem(name)
	})
}

// Counts reports whether the place's own data is the number of leases.
func (p Place) Counts() bool { return p.beside(p.base() + gateSuffix) }

// gateSuffix is what kazoo adds to the path of a semaphore for its gate, and
// lineSuffix what ours is of a queue for the line of its consumers.
const (
	gateSuffix = "-__lock__"
	lineSuffix = ".line"
)

// Suffixes make the names of znodes beside a recipe's own that belong to it.
var Suffixes = [...]string{lineSuffix, gateSuffix}

// isItem reports whether a name is that of a queue's item, under any naming.
func isItem(name string) bool {
	_, ok := ParseItem(name)
	return ok || isCuratorItem(name) || IsLater(name)
}

// isCuratorItem: queue-<seq>, with a priority, a time or an id before the number, of Curator's
// DistributedQueue and its kin.
func isCuratorItem(name string) bool {
	b, err := ParseBid(name)
	return err == nil && b.Naming == Foreign && strings.HasPrefix(name, "queue-")
}

// Recognise says which recipe stands at a place. What it is part of, a
// semaphore's leases or a queue's line, Assemble puts together.
func Recognise(p Place) (Scene, bool) {
	bids, orphans := p.bids()
	s := Scene{Path: p.Path, Items: p.items(), Orphans: orphans}
	switch base := p.base(); {
	case base == "entries" && p.beside("taken"):
		s.Kind, s.Path = KindWorkQueue, p.dir()
	case base == "delayed" && p.beside("entries"):
		s = Scene{Kind: KindWorkQueue, Path: p.dir(), Items: p.delayed()}
	case base == "taken" && p.beside("entries"):
		s = Scene{Kind: KindWorkQueue, Path: p.dir(), Stands: p.ephemerals("works")}
	case s.Items > 0:
		s.Kind = KindQueue
	case slices.ContainsFunc(p.Names, isCuratorItem): // none of them persistent: marks of who works
		s.Kind, s.Stands = KindWorkQueue, p.ephemerals("works")
	case strings.HasSuffix(base, lineSuffix) && p.beside(strings.TrimSuffix(base, lineSuffix)):
		s.Kind, s.Path, s.line = KindQueue, strings.TrimSuffix(p.Path, lineSuffix), queueUp(bids, Exclusive, "is next")
	case base == "leases" && (p.beside("locks") || len(bids) > 0 && bids[0].Naming == CuratorLease): // the gate goes while nobody waits
		s.Kind, s.Path, s.Stands = KindSemaphore, p.dir(), queueUp(bids, Leases, "holds")
	case base == "locks" && p.beside("leases"):
		s.Kind, s.Path, s.gate = KindSemaphore, p.dir(), queueUp(bids, Exclusive, "waits")
	case strings.HasSuffix(base, gateSuffix) && p.beside(strings.TrimSuffix(base, gateSuffix)):
		s.Kind, s.Path, s.gate = KindSemaphore, strings.TrimSuffix(p.Path, gateSuffix), pythonIDs(queueUp(bids, Exclusive, "waits"))
	case p.Counts():
		s.Kind, s.Stands = KindSemaphore, p.ephemerals("holds")
		s.Leases, _ = strconv.Atoi(string(p.Data)) // where it is none there are no more than we see
	case len(bids) > 0:
		p.line(&s, bids)
	default:
		p.members(&s)
	}
	s.Orphans = append(s.Orphans, twice(s)...)
	return s, len(s.Stands)+len(s.gate)+len(s.line)+s.Items+len(s.Orphans) > 0
}

// delayed counts the items that are not due yet.
func (p Place) delayed() int {
	n := 0
	for _, name := range p.Names {
		if IsLater(name) {
			n++
		}
	}
	return n
}

// items counts those of a queue. Ephemerals are none.
func (p Place) items() int {
	n := 0
	for _, name := range p.Names {
		if isItem(name) {
			n++
		}
	}
	for _, c := range p.Children {
		if isCuratorItem(c.Name) && c.Stat.EphemeralOwner != 0 {
			return 0
		}
	}
	return n
}

// pythonIDs takes off what kazoo's Semaphore puts around an id at its gate: b'…'.
func pythonIDs(stands []Stand) []Stand {
	for i := range stands {
		if id, ok := strings.CutPrefix(stands[i].ID, "b'"); ok {
			stands[i].ID = strings.TrimSuffix(id, "'")
		}
	}
	return stands
}

// Missing are the stands whose session the servers do not know.
func (s Scene) Missing(known map[wire.SessionID]bool) []Orphan {
	var out []Orphan
	for _, st := range s.Stands {
		if !known[st.Session] {
			out = append(out, Orphan{Path: st.Path, Token: st.Token, Why: fmt.Sprintf("belongs to session %v, which no server knows", st.Session)})
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
		t.Leases += s.Leases
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
