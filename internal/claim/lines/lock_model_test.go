package lines

import (
	"math"
	"path"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// Locks, read-write locks and semaphores in the model of the election.

// standing counts the terms under a rule whose bids still exist.
func (w *world) standing(r Rule) int {
	n := 0
	for _, h := range w.handles {
		if h.rule == r && w.leader[h.bid] != nil {
			n++
		}
	}
	return n
}

// place is a candidate for a lock of the model.
type place struct {
	naming claim.Naming
	rule   Rule
}

// runLocks plays one history: faults, then healing, then orderly departures. Some candidates bid with Try.
func (w *world) runLocks(steps, leases int, places ...place) {
	for _, p := range places {
		w.joinAs(p.naming, p.rule, leases)
	}
	for range steps {
		c := w.candidates[w.choose(len(w.candidates))]
		if w.choose(50) == 0 && c.e.State().Phase == Done {
			w.bid(c, true)
		}
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.heal()
	w.checkPlaces()
	w.checkLeaving()
}

// bidders returns, by path, the candidates whose bids exist.
func (w *world) bidders() map[string]*candidate {
	all := map[string]*candidate{}
	for _, c := range w.candidates {
		for _, l := range lines(c.e) {
			if l.phase == Standing || l.phase == Leading {
				all[l.path(l.own.Name)] = c
			}
		}
	}
	return all
}

// checkPlaces checks the healed world: every candidate that may hold does, and each other one watches the
// nearest bid that it must wait for.
func (w *world) checkPlaces() {
	bidders := w.bidders()
	for _, p := range append(w.bids(), w.bidsBelow(modelGate)...) {
		c := bidders[p]
		if c == nil {
			w.violated("%s is nobody's", p)
			continue
		}
		s := c.e.State()
		if path.Dir(p) == modelGate {
			w.checkGate(c, p)
			continue
		}
		switch ahead := w.ahead(c, s.Bid); {
		case c.mayHold(ahead):
			if s.Phase != Leading {
				w.violated("c%d does not hold %s", c.id, p)
			}
		case c.rule != Leases && (s.Phase != Standing || s.For != ahead[len(ahead)-1]):
			w.violated("c%d watches %q, not %s", c.id, s.For, ahead[len(ahead)-1])
		}
	}
	if n := len(w.bidsBelow(modelGate)); n > 0 && len(w.bids()) <= w.candidates[0].leases {
		w.violated("%d at the gate of leases that are free", n)
	}
	if over := len(w.bids()) - w.candidates[0].leases; over > 1 && w.candidates[0].rule == Leases {
		w.violated("%d wait for a lease", over)
	}
}

// checkGate checks a candidate that waits at the gate of a semaphore.
func (w *world) checkGate(c *candidate, p string) {
	gate := w.bidsBelow(modelGate)
	s := lines(c.e)[0].State()
	for i, q := range gate {
		switch {
		case q != p:
		case i == 0 && s.Phase != Leading:
			w.violated("c%d does not hold the gate", c.id)
		case i > 0 && modelGate+"/"+s.For != gate[i-1]:
			w.violated("c%d watches %q, not %s", c.id, s.For, gate[i-1])
		}
	}
}

// checkLeaving lets the candidates leave one by one. Each departure must wake exactly the candidates that
// watched the bid: at most one, except for readers that waited for a writer. At a semaphore one more
// candidate moves up at the gate.
func (w *world) checkLeaving() {
	for w.wrong == "" {
		bidders := w.bidders()
		if len(bidders) == 0 {
			return
		}
		var there []*candidate
		for _, c := range w.candidates {
			if c.e.State().Phase == Standing || c.e.State().Phase == Leading {
				there = append(there, c)
			}
		}
		c := there[w.choose(len(there))]
		want, most := w.watchers(c), 1
		if c.rule == Exclusive {
			most = len(there)
		}
		woken, moved, events := w.sum()
		w.step(c, claim.Resign{})
		w.settle()
		woken2, moved2, events2 := w.sum()
		woken, moved, events = woken2-woken, moved2-moved, events2-events
		if woken != want || moved > 1 || events != woken+moved || c.rule == Leases && woken > most {
			w.violated("c%d leaves: %d events, %d woken, %d moved up, want %d", c.id, events, woken, moved, want)
		}
		w.checkPlaces()
	}
}

// watchers counts the bids that wait for a candidate's bid.
func (w *world) watchers(gone *candidate) int {
	n := 0
	for _, c := range w.candidates {
		s := c.e.State()
		switch {
		case c.rule != Leases && s.For != "" && s.For == gone.e.State().Bid:
			n++
		case c.rule == Leases && c != gone && gone.e.State().Phase == Leading && len(lines(c.e)) == 2 && s.Phase == Standing:
			n++
		}
	}
	return n
}

// sum adds up the candidates that were woken or moved up at a gate, and the events sent.
func (w *world) sum() (woken, moved, events int) {
	for _, c := range w.candidates {
		woken += c.woken
		moved += c.moved
	}
	return woken, moved, w.events
}

// lockWorlds lists the recipes that the tests play.
var lockWorlds = []struct {
	name   string
	leases int
	places []place
}{
	{"lock", 0, []place{{claim.Own, Exclusive}, {claim.Own, Exclusive}, {claim.CuratorLock, Exclusive}, {claim.KazooLock, Exclusive}, {claim.GoZKLock, Exclusive}}},
	{"read-write lock", 0, []place{{claim.Own, Exclusive}, {claim.OwnRead, Shared}, {claim.CuratorRead, Shared}, {claim.CuratorWrite, Exclusive}, {claim.KazooRead, Shared}}},
	{"semaphore of one", 1, []place{{claim.Own, Leases}, {claim.CuratorLease, Leases}, {claim.Own, Leases}, {claim.Own, Leases}}},
	{"semaphore of two", 2, []place{{claim.Own, Leases}, {claim.CuratorLease, Leases}, {claim.Own, Leases}, {claim.CuratorLease, Leases}, {claim.Own, Leases}}},
	{"kazoo's semaphore", 2, []place{{claim.KazooLease, Leases}, {claim.KazooLease, Leases}, {claim.KazooLease, Leases}, {claim.KazooLease, Leases}}},
}

// TestLocksUnderFaults checks under faults of connections, servers and clocks: mutual exclusion by
// deadlines and by tokens, separation of readers and writers, the number of leases, and that no candidate
// waits for ever.
func TestLocksUnderFaults(t *testing.T) {
	for _, x := range lockWorlds {
		t.Run(x.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, broken{})
				w.runLocks(rapid.IntRange(0, 300).Draw(t, "steps"), x.leases, x.places...)
				w.fail(t)
			})
		})
	}
}

// TestLockSeeds checks the rules of TestLocksUnderFaults in longer histories.
func TestLockSeeds(t *testing.T) {
	for _, x := range lockWorlds {
		t.Run(x.name, func(t *testing.T) {
			for seed := range uint64(claimtest.Seeds / 4) {
				w := seeded(seed, broken{})
				if seed%4 == 0 { // a parent whose counter reaches its largest value
					w.parents(modelParent)
					w.counts[modelParent] = math.MaxInt32 - int32(w.choose(5))
				}
				w.runLocks(900, x.leases, x.places...)
				if w.wrong != "" {
					t.Logf("seed %d", seed)
					w.fail(t)
				}
			}
		})
	}
}

// TestLockChecksNotice breaks one rule at a time for each kind of recipe, and requires that some history
// fails.
func TestLockChecksNotice(t *testing.T) {
	for name, b := range map[string]broken{
		"the lease counts from the answer": {leaseByReply: true},
		"D is left out":                    {noDelay: true},
		"the wall clock is not looked at":  {oneClock: true},
		"requests outlive their session":   {anySession: true},
		"a lost create counts as failed":   {lostIsFailure: true},
	} {
		for _, x := range lockWorlds[:3] {
			t.Run(name+", "+x.name, func(t *testing.T) {
				for seed := range uint64(3000) {
					w := seeded(seed, b)
					if w.runLocks(900, x.leases, x.places...); w.wrong != "" {
						t.Logf("seed %d: %s", seed, w.wrong)
						return
					}
				}
				t.Fatal("no history showed it")
			})
		}
	}
}

// TestReadersInTheWayAreSeen checks that the check of readers and writers detects a writer that ignores
// readers.
func TestReadersInTheWayAreSeen(t *testing.T) {
	w := seeded(1, broken{})
	w.joinAs(claim.OwnRead, Shared, 0)
	w.heal()
	c := w.joinAs(claim.Own, Exclusive, 0)
	lines(c.e)[0].cfg.Rule = Shared
	w.heal()
	if w.wrong == "" {
		t.Error("a writer beside a reader goes unnoticed")
	}
}

// TestOneLeaseTooManyIsSeen checks that the check of the number of leases detects a holder too many.
func TestOneLeaseTooManyIsSeen(t *testing.T) {
	w := seeded(1, broken{})
	for range 2 {
		w.joinAs(claim.Own, Leases, 1)
	}
	w.candidates[1].e.(*Semaphore).cfg.Leases = 2
	w.heal()
	if w.wrong == "" {
		t.Error("two holders of one lease go unnoticed")
	}
}

// TestSemaphoreSendsOneRequestAtATime checks that a semaphore numbers its requests in order, that at most one
// request of each of its two lines waits, and that each answer reaches the line that made the request.
func TestSemaphoreSendsOneRequestAtATime(t *testing.T) {
	w := seeded(7, broken{})
	for range 3 {
		w.joinAs(claim.Own, Leases, 1)
	}
	asked := map[*candidate]uint64{}
	for range 400 {
		w.act()
		for _, c := range w.candidates {
			s := c.e.(*Semaphore)
			if s.asked != nil && s.n < asked[c] {
				t.Fatalf("request %d after %d", s.n, asked[c])
			}
			if asked[c] = s.n; len(s.waiting) > 2 {
				t.Fatalf("%d requests wait", len(s.waiting))
			}
			if w.left(c) > 0 && s.State().Token == wire.Zxid(0) {
				t.Fatal("a lease without a token")
			}
		}
	}
	w.fail(t)
}
