package survey

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/queues"
	"bellwether/wire"
)

// Child is a child of a Parent, as it was read.
type Child struct {
	Name string
	Data []byte
	Stat wire.Stat
}

// Parent is a znode as it was read, with the facts that show which recipe its children belong to.
type Parent struct {
	Path     string
	Data     []byte   // set for a semaphore of kazoo, for which Counts reports true
	Beside   []string // names of its siblings
	Names    []string // names of all children
	Children []Child  // the children that Reads returned
}

// Participant is a znode by which a client takes part in a recipe.
type Participant struct {
	Path    string
	ID      string // the data of the znode, if it is text
	Naming  claim.Naming
	Session wire.SessionID
	Token   wire.Zxid
	Since   int64    // creation time or, for a leader, the time of publication; ms since 1970
	Role    string   // leads, holds, waits, works, is next, is in, coordinates
	Behind  []string // paths of the znodes for which the client waits, the nearest last
	AnyOf   bool     // the client waits until one of Behind is gone, not all of them
}

// Recipe is one recipe in use. Participants, Items and Orphans are final only after Assemble.
type Recipe struct {
	Kind         claim.Kind
	Path         string
	Participants []Participant // in the order in which they get their turns
	Items        int           // number of items of a queue
	Leases       int           // number of leases of a semaphore; 0: no znode shows it
	Orphans      []Orphan

	gate, line []Participant // Assemble appends them to Participants
}

// Orphan is a znode that will not disappear by itself, or that no client seems to own.
type Orphan struct {
	Path, Why string
	Token     wire.Zxid // czxid of the znode; it distinguishes the znode from a later one at the same path
	Missing   string    // path of the missing znode that makes this one an orphan; may be empty
	Plain     bool      // the znode is not a client's bid: remove it by delete, not by kick
}

// dir returns the path of the parent. base returns the name of the znode.
func (p Parent) dir() string  { return path.Dir(p.Path) }
func (p Parent) base() string { return path.Base(p.Path) }

func (p Parent) beside(name string) bool { return slices.Contains(p.Beside, name) }

// atWorkMax is how many items of one of Curator's queues are read. A consumer of Curator marks an item
// that it works on with an ephemeral znode of the same name below another parent. A few stats are enough
// to distinguish this parent from that of the items.
const atWorkMax = 16

// Reads returns the names of the children whose stat is needed, and also their data if they are ephemeral.
// These are all children except the items of a queue.
func (p Parent) Reads() []string {
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

// Counts reports whether the data of the znode is a number of leases.
func (p Parent) Counts() bool { return p.beside(p.base() + gateSuffix) }

// gateSuffix is the suffix by which kazoo forms the path of a semaphore's gate. lineSuffix is the suffix
// by which this project forms the path of the line of a queue's consumers.
const (
	gateSuffix = "-__lock__"
	lineSuffix = ".line"
)

// Suffixes lists the suffixes by which recipes name further znodes beside their own.
var Suffixes = [...]string{lineSuffix, gateSuffix}

// isItem reports whether a name is that of a queue item, in any naming scheme.
func isItem(name string) bool {
	_, ok := claim.ParseItem(name)
	return ok || isCuratorItem(name) || queues.IsDelayed(name)
}

// isCuratorItem reports whether a name is queue-<seq>, with a priority, a time or an id before the number.
// Curator's DistributedQueue and its variants use such names.
func isCuratorItem(name string) bool {
	b, err := claim.ParseBid(name)
	return err == nil && b.Naming == claim.Foreign && strings.HasPrefix(name, "queue-")
}

// Recognise returns the recipe that the children of a parent belong to. A recipe with several parents,
// such as a semaphore with leases and a gate, is recognised in parts, which Assemble joins.
func Recognise(p Parent) (Recipe, bool) {
	bids, orphans := p.bids()
	s := Recipe{Path: p.Path, Items: p.items(), Orphans: orphans}
	switch base := p.base(); {
	case base == "entries" && p.beside("taken"):
		s.Kind, s.Path = claim.KindWorkQueue, p.dir()
	case base == "delayed" && p.beside("entries"):
		s = Recipe{Kind: claim.KindWorkQueue, Path: p.dir(), Items: p.delayed()}
	case base == "taken" && p.beside("entries"):
		s = Recipe{Kind: claim.KindWorkQueue, Path: p.dir(), Participants: p.ephemerals("works")}
	case s.Items > 0:
		s.Kind = claim.KindQueue
	case slices.ContainsFunc(p.Names, isCuratorItem): // all are ephemeral, so they are marks of consumers
		s.Kind, s.Participants = claim.KindWorkQueue, p.ephemerals("works")
	case strings.HasSuffix(base, lineSuffix) && p.beside(strings.TrimSuffix(base, lineSuffix)):
		s.Kind, s.Path, s.line = claim.KindQueue, strings.TrimSuffix(p.Path, lineSuffix), queueUp(bids, lines.Exclusive, "is next")
	case base == "leases" && (p.beside("locks") || len(bids) > 0 && bids[0].Naming == claim.CuratorLease): // the gate is missing while no client waits
		s.Kind, s.Path, s.Participants = claim.KindSemaphore, p.dir(), queueUp(bids, lines.Leases, "holds")
	case base == "locks" && p.beside("leases"):
		s.Kind, s.Path, s.gate = claim.KindSemaphore, p.dir(), queueUp(bids, lines.Exclusive, "waits")
	case strings.HasSuffix(base, gateSuffix) && p.beside(strings.TrimSuffix(base, gateSuffix)):
		s.Kind, s.Path, s.gate = claim.KindSemaphore, strings.TrimSuffix(p.Path, gateSuffix), pythonIDs(queueUp(bids, lines.Exclusive, "waits"))
	case p.Counts():
		s.Kind, s.Participants = claim.KindSemaphore, p.ephemerals("holds")
		s.Leases, _ = strconv.Atoi(string(p.Data)) // Leases stays 0 if the data is not a number
	case len(bids) > 0:
		p.line(&s, bids)
	default:
		p.members(&s)
	}
	s.Orphans = append(s.Orphans, twice(s)...)
	return s, len(s.Participants)+len(s.gate)+len(s.line)+s.Items+len(s.Orphans) > 0
}

// delayed returns the number of items that are not due yet.
func (p Parent) delayed() int {
	n := 0
	for _, name := range p.Names {
		if queues.IsDelayed(name) {
			n++
		}
	}
	return n
}

// items returns the number of items of a queue. Ephemeral znodes are not items.
func (p Parent) items() int {
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

// pythonIDs removes b'…', which kazoo's Semaphore puts around an id at its gate.
func pythonIDs(participants []Participant) []Participant {
	for i := range participants {
		if id, ok := strings.CutPrefix(participants[i].ID, "b'"); ok {
			participants[i].ID = strings.TrimSuffix(id, "'")
		}
	}
	return participants
}

// Missing returns, as orphans, the participants whose session is not in known.
func (s Recipe) Missing(known map[wire.SessionID]bool) []Orphan {
	var out []Orphan
	for _, st := range s.Participants {
		if !known[st.Session] {
			out = append(out, Orphan{Path: st.Path, Token: st.Token, Why: fmt.Sprintf("belongs to session %v, which no server knows", st.Session)})
		}
	}
	return out
}

// Assemble joins the parts of recipes with several parents: the leases and the gate of a semaphore, and
// the items of a queue and its waiting consumers.
func Assemble(recipes []Recipe) []Recipe {
	byPath := map[string]*Recipe{}
	for _, s := range recipes {
		t := byPath[s.Path]
		if t == nil {
			t = &Recipe{Kind: s.Kind, Path: s.Path}
			byPath[s.Path] = t
		}
		if t.Kind == claim.KindQueue {
			t.Kind = s.Kind
		}
		t.Items += s.Items
		t.Leases += s.Leases
		t.Participants = append(t.Participants, s.Participants...)
		t.Orphans = append(t.Orphans, s.Orphans...)
		t.gate = append(t.gate, s.gate...)
		t.line = append(t.line, s.line...)
	}
	out := make([]Recipe, 0, len(byPath))
	for _, s := range byPath {
		s.enter()
		s.Participants, s.line = append(s.Participants, s.line...), nil
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Recipe) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// enter appends the clients at the gate of a semaphore to those that have a lease. The first client at the
// gate waits for any lease, and may already have bid for one.
func (s *Recipe) enter() {
	if len(s.gate) == 0 {
		return
	}
	gate := s.gate
	s.gate = nil
	first := &gate[0]
	last := len(s.Participants) - 1
	bidding := last >= 0 && s.Participants[last].Session == first.Session && s.Participants[last].Naming != claim.KazooLease
	if bidding {
		first, last = &s.Participants[last], last-1
	}
	first.Role, first.AnyOf = "waits", true
	for _, held := range s.Participants[:last+1] {
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
	s.Participants = append(s.Participants, gate...)
}
