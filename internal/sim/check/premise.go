package check

import (
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/value"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Count is how often a premise of a rule was met. A rule whose premise is never met shows nothing.
type Count struct {
	Premise string // what must be the case; empty if the rule has only one premise
	N       int
}

// Premises counts how often the premises of checkers were met.
type Premises struct {
	checkers []Checker
	seen     []int // for each checker without counts of its own
	met      []func(o any) bool
}

// NewPremises returns the counts of checkers.
func NewPremises(checkers []Checker) *Premises {
	p := &Premises{checkers: checkers, seen: make([]int, len(checkers)), met: make([]func(any) bool, len(checkers))}
	for i, c := range checkers {
		p.met[i] = premises[c.Name()]
	}
	return p
}

// See counts an observation.
func (p *Premises) See(o any) {
	for i, met := range p.met {
		if met != nil && met(o) {
			p.seen[i]++
		}
	}
}

// Counts returns all counts, by the name of the rule and its premise.
func (p *Premises) Counts() map[string]int {
	out := map[string]int{}
	for i, c := range p.checkers {
		own, counts := c.(interface{ Met() []Count })
		if !counts {
			out[c.Name()] = p.seen[i]
			continue
		}
		for _, n := range own.Met() {
			name := c.Name()
			if n.Premise != "" {
				name += ": " + n.Premise
			}
			out[name] = n.N
		}
	}
	return out
}

// premise counts how often the premise of a checker with one rule was met.
type premise struct{ n int }

// count counts one time.
func (c *premise) count() { c.n++ }

// Met returns the count.
func (c *premise) Met() []Count { return []Count{{N: c.n}} }

// premises say which observations meet the premise of a rule, by the name of the rule. The checkers that are not
// listed count by themselves.
var premises = map[string]func(o any) bool{
	"Leadership":           func(o any) bool { e, ok := o.(Established); return ok && e.Role == peerwire.Leading },
	"PrefixConsistency":    isA[Delivered],
	"Integrity":            isA[Delivered],
	"Agreement":            isA[Delivered],
	"TotalOrder":           isA[Applies],
	"LocalPrimaryOrder":    isA[Applies],
	"GlobalPrimaryOrder":   isA[Applies],
	"PrimaryIntegrity":     isA[Committed],
	"NoHole":               func(o any) bool { e, ok := o.(Ordered); return ok && !e.Void && len(e.Duty.Append) > 0 },
	"EqualDigest":          isA[Stands],
	"NothingUndone":        func(o any) bool { e, ok := o.(Stands); return ok && e.Shown > 0 },
	"EphemeralsOfSessions": func(o any) bool { return commitOf(o, wire.OpCloseSession) },
	"LeadershipTransfers": func(o any) bool {
		e, ok := o.(Promised)
		return ok && !e.ByLearner && e.Packet.Type == peerwire.PacketHandOver
	},
	"AtMostOnce":  func(o any) bool { e, ok := o.(Committed); return ok && e.Txn.Cxid > 0 },
	"AsIssued":    func(o any) bool { e, ok := o.(Committed); return ok && e.Txn.Cxid > 0 },
	"AckedWrites": func(o any) bool { e, ok := o.(Answered); return ok && e.Op.IsWrite() && e.Header.Err == wire.OK },
	"RealTime": func(o any) bool {
		e, ok := o.(Answered)
		return ok && (e.Op.IsWrite() || e.Synced) && e.Header.Err == wire.OK
	},
	"SessionOrder":    isA[Answered],
	"Shown":           func(o any) bool { e, ok := o.(Answered); return ok && statOf(e.Record) != nil },
	"WatchOrder":      isA[Notified],
	"RealEvents":      func(o any) bool { e, ok := o.(Notified); return ok && e.Event.Zxid > 0 },
	"OnlyCommitted":   isA[ReadAlone],
	"Claims":          isA[TermBegan],
	"PossibleLeaders": isA[TermBegan],
	"Fence":           func(o any) bool { e, ok := o.(ResourceUsed); return ok && e.Admitted },
	"Commits":         isA[CarriedOut],
	"Barriers":        isA[MemberIn],
	"BarrierPasses": func(o any) bool {
		e, ok := o.(WorkEnded)
		if !ok {
			return false
		}
		_, ok = e.Operation.(*barrier.Barrier)
		return ok
	},
	"Counts": func(o any) bool {
		e, ok := o.(WorkEnded)
		if !ok {
			return false
		}
		_, ok = e.Operation.(*value.Change)
		return ok
	},
	"Items":         func(o any) bool { e, ok := o.(WorkEnded); return ok && e.Item != "" },
	"Caches":        isA[CacheShows],
	"Shares":        isA[PartOwned],
	"MultiLocks":    isA[AllTaken],
	"Announcements": func(o any) bool { return isA[Announced](o) || isA[ConfigurationSeen](o) },
	"Registrations": isA[RegistrationState],
	"LocalSessions": isA[Attached],
}

// isA reports whether an observation has a type.
func isA[T any](o any) bool { _, ok := o.(T); return ok }

// commitOf reports whether an observation is the commit of a transaction of a type.
func commitOf(o any, op wire.OpCode) bool { e, ok := o.(Committed); return ok && e.Txn.Type == op }
