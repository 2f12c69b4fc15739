package commit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bellwether/internal/claim"
)

// busy does the next thing that a party can do, and reports whether there was one.
func (w *txWorld) busy(p *party) bool {
	if p.dead {
		return false
	}
	switch s := p.m.State(); {
	case p.req != nil && (len(p.inbox) == 0 || w.choose(2) == 0):
		w.serve(p)
	case len(p.inbox) > 0:
		w.deliver(p)
	case s.Due():
		w.act(p)
	default:
		return false
	}
	return true
}

// settle does everything that can be done without time passing. The party that carries out operation
// crashAt crashes directly afterwards.
func (w *txWorld) settle() {
	end := w.ops + 5000
	for again := true; again && w.wrong == ""; {
		if again = false; w.ops > end {
			w.violated("busy for ever")
		}
		for _, p := range w.parties {
			if w.busy(p) {
				again = true
			}
			if w.ops == w.crashAt && !p.dead && w.wrong == "" {
				w.crashAt = -1
				w.crash(p)
			}
		}
	}
}

// pass lets time pass until the next timer, and until the sessions of crashed parties end.
func (w *txWorld) pass() {
	w.now += 5 * time.Second
	for _, p := range w.parties {
		if p.dead {
			w.expire(p.session)
		}
		w.catchUp(p, len(w.log)-1)
		if p.wake > 0 && p.wake <= w.now {
			w.step(p, claim.Tick{})
		}
	}
}

// conclude lets time pass without further faults. Running parties must not be blocked by crashed ones.
func (w *txWorld) conclude(minutes int) {
	for range minutes * 12 {
		w.settle()
		w.pass()
	}
	w.settle()
	for _, p := range w.parties {
		if !p.dead && w.wrong == "" && p.m.State().Phase != TxOver {
			w.violated("%q hangs: %+v", p.site, p.m.State())
		}
	}
}

// revive restarts all crashed parties. Then every part must end and the transaction must be removed.
func (w *txWorld) revive() {
	for _, p := range w.parties {
		if p.dead || p.m.State().Withdrawn && p.done == Undecided {
			w.start(p)
		}
	}
	w.conclude(2)
	for _, p := range w.parties[1:] {
		if p.done == Undecided && p.prepared {
			w.violated("%q never learned the decision", p.site)
		}
	}
	if n := w.tree()[txPath]; n != nil && strings.Contains(n.Data, "s1") && w.wrong == "" {
		w.violated("the transaction was never removed: %v", w.tree())
	}
}

func (w *txWorld) fail(t interface {
	Helper()
	Fatalf(string, ...any)
}) {
	t.Helper()
	if w.wrong != "" {
		t.Fatalf("%s\n%s", w.wrong, strings.Join(w.trace[max(0, len(w.trace)-80):], "\n"))
	}
}

// patient is a scheduler that always makes the first choice.
func patient(int) int { return 0 }

func bothWays(t *testing.T, test func(t *testing.T, plain bool)) {
	for plain, name := range map[bool]string{false: "coordinated", true: "plain"} {
		t.Run(name, func(t *testing.T) { test(t, plain) })
	}
}

// TestCommitWithoutFaults checks that all votes count and that no znode is left.
func TestCommitWithoutFaults(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		for refuses := range modelSites + 1 {
			w := begunTx(plain, patient, txBroken{})
			want := Commit
			if refuses > 0 {
				w.parties[refuses].vote, want = Abort, Abort
			}
			w.settle()
			for _, p := range w.parties {
				if p.done != want {
					w.violated("%q: %v, want %v", p.site, p.done, want)
				}
			}
			w.revive()
			w.fail(t)
		}
	})
}

// TestChecklist14EverySingleCrash crashes the coordinator or a site after each single operation, with both
// decisions. It checks that the running parties are not blocked, and that after a restart every part ends and the
// transaction is removed.
func TestChecklist14EverySingleCrash(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		points := 0
		for _, vote := range []Decision{Commit, Abort} {
			for at := 1; ; at++ {
				w := begunTx(plain, patient, txBroken{})
				w.parties[2].vote = vote
				w.crashAt = w.ops + at
				w.settle()
				if w.crashAt != -1 {
					break // there are no more operations
				}
				points++
				w.conclude(3)
				w.revive()
				w.fail(t)
			}
		}
		if points < 40 {
			t.Errorf("only %d points to crash at", points)
		}
	})
}

// begunTx returns a world in which the coordinator has sent its first request, and no site has looked yet.
func begunTx(plain bool, choose func(int) int, b txBroken) *txWorld {
	w := newTxWorld(modelSites, plain, choose, b)
	for range 20 {
		if w.tree()[txPath] != nil {
			break
		}
		w.busy(w.parties[0])
	}
	return w
}

// faults plays one history: random crashes, restarts, lost replies, lagging servers and expiries, then
// healing.
func (w *txWorld) faults(steps int) {
	for _, p := range w.parties[1:] {
		if w.choose(8) == 0 {
			p.vote = Abort
		}
	}
	for range steps {
		p := w.parties[w.choose(len(w.parties))]
		switch n := w.choose(100); {
		case n < 70:
			w.busy(p)
		case n < 78:
			w.catchUp(p, min(p.seen+1, len(w.log)-1))
		case n < 84:
			w.lose(p)
		case n < 86:
			w.expire(p.session)
		case n < 89:
			if !p.dead {
				w.crash(p)
			}
		case n < 96:
			if p.dead || p.m.State().Phase == TxOver && p.done == Undecided {
				w.start(p)
			}
		case n < 97:
			w.step(p, claim.Resign{})
		default:
			w.now += time.Duration(w.choose(4)) * time.Second
			w.step(p, claim.Tick{})
		}
		if w.check(); w.wrong != "" {
			return
		}
	}
	w.conclude(3)
	w.revive()
}

// TestChecklist14CommitUnderFaults checks that no site commits what another one aborted, that all running
// parties learn the decision, and that a finished transaction is removed.
func TestChecklist14CommitUnderFaults(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		rapid.Check(t, func(rt *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 14))
			w := newTxWorld(modelSites, plain, r.IntN, txBroken{})
			if r.IntN(2) == 0 {
				w = begunTx(plain, r.IntN, txBroken{})
			}
			w.faults(r.IntN(400))
			w.fail(rt)
		})
	})
}

// TestChecklist14ChecksNotice checks that the checks fail when a rule is broken.
func TestChecklist14ChecksNotice(t *testing.T) {
	for name, b := range map[string]txBroken{
		"no sync": {noSync: true}, "sweep early": {sweepEarly: true}, "act on votes": {actOnVotes: true}, "stays on": {staysOn: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20000) {
				r := rand.New(rand.NewPCG(seed, 14))
				w := begunTx(seed%2 == 0, r.IntN, b)
				w.faults(r.IntN(400))
				if w.wrong != "" {
					return
				}
			}
			t.Error("nothing noticed")
		})
	}
}

// TestCommitNeedsNoPatience checks that no wake-up is lost. As long as no party crashes for good, a
// transaction ends before the time of Patience, whatever replies, connections and sessions are lost.
func TestCommitNeedsNoPatience(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 15))
			w := begunTx(plain, r.IntN, txBroken{})
			for _, p := range w.parties {
				p.m.cfg.Patience = 24 * time.Hour
			}
			for range r.IntN(400) {
				p := w.parties[r.IntN(len(w.parties))]
				switch n := r.IntN(100); {
				case n < 70:
					w.busy(p)
				case n < 80:
					w.catchUp(p, min(p.seen+1, len(w.log)-1))
				case n < 92:
					w.lose(p)
				default:
					w.expire(p.session)
				}
			}
			w.conclude(1)
			if w.fail(t); w.tree()[txPath] != nil {
				t.Fatalf("seed %d: the transaction was never removed", seed)
			}
		}
	})
}

// TestCommitIsGivenUp lets the coordinator or a site give up after each single operation, and come back
// later or never, while its session stays alive. It must leave no znode for which others would wait. The
// others must end before the time of Patience, unless the site was never seen.
func TestCommitIsGivenUp(t *testing.T) {
	points := 0
	for who := range modelSites + 1 {
		for at := 1; ; at++ {
			w := begunTx(false, patient, txBroken{})
			more := true
			for end := w.ops + at; w.ops < end && more; {
				more = false
				for _, p := range w.parties {
					if w.ops < end && w.busy(p) {
						more = true
					}
				}
			}
			if !more {
				break // there are no more operations
			}
			points++
			if left := w.parties[who]; who == 0 || w.parties[0].m.ballot(left.site).existed {
				for _, p := range w.parties {
					p.m.cfg.Patience, p.m.patience.Wait = 24*time.Hour, 24*time.Hour
				}
			}
			w.step(w.parties[who], claim.Resign{})
			w.conclude(1)
			for _, p := range w.parties {
				if s := p.m.State(); s.Phase != TxOver {
					w.violated("%q waits: %+v", p.site, s)
				}
			}
			w.check()
			w.revive()
			w.fail(t)
		}
	}
	if points < 80 {
		t.Errorf("only %d points to give up at", points)
	}
}
