package lines

import (
	"math"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// act makes one random thing happen. The weights let terms occur between the faults.
func (w *world) act() {
	c := w.candidates[w.choose(len(w.candidates))]
	switch p := w.choose(100); {
	case p < 30:
		w.flow(c)
	case p < 40:
		w.deliver(c)
	case p < 50:
		w.serve(c)
	case p < 60:
		w.ping(c)
	case p < 68:
		w.pass(claimtest.Pauses[w.choose(len(claimtest.Pauses))])
	case p < 71:
		w.cut(c)
	case p < 79:
		if c.at == nil {
			w.connect(c, w.replicas[w.choose(len(w.replicas))])
		}
	case p < 81:
		w.expireOne()
	case p < 86:
		if r := w.replicas[w.choose(len(w.replicas))]; r.applied < len(w.log) {
			w.apply(r)
		}
	case p < 88:
		w.disturbClock(c)
	case p < 89:
		w.step(c, claim.Resign{})
	case p < 95:
		if c.e.State().Phase == Done {
			w.campaign(c)
		} else {
			w.step(c, claim.Tick{})
		}
	default:
		w.guardedWrite()
	}
	w.check()
}

// flow lets a candidate and its server exchange messages for a while.
func (w *world) flow(c *candidate) {
	for range w.choose(12) {
		w.serve(c)
		w.deliver(c)
		w.check()
	}
}

// pass lets time pass. The timers of running candidates fire when they are due.
func (w *world) pass(d time.Duration) {
	w.now += d
	for _, c := range w.candidates {
		if !c.paused && c.wake > 0 && c.wake <= w.now && w.choose(2) == 0 {
			w.step(c, claim.Tick{})
		}
	}
}

// disturbClock pauses a process, suspends its machine, or sets its clock. It never sets a clock back
// during a suspend, which no client can detect.
func (w *world) disturbClock(c *candidate) {
	switch w.choose(6) {
	case 0:
		c.paused = true
	case 1, 2:
		c.paused = false
	case 3, 4:
		d := time.Duration(w.choose(13)) * time.Second
		w.now += d
		c.suspended += d
	case 5:
		c.set += time.Duration(w.choose(7)) * time.Second
	}
}

// expireOne ends one session that is due.
func (w *world) expireOne() {
	if len(w.sessions) == 0 {
		return
	}
	skip := w.choose(len(w.sessions))
	for id := wire.SessionID(1); id <= w.nextID; id++ {
		if s := w.sessions[id]; s != nil {
			if skip == 0 {
				w.expire(s)
				return
			}
			skip--
		}
	}
}

// guardedWrite lets a guarded write of some term arrive now. The term may have ended long ago.
func (w *world) guardedWrite() {
	if len(w.handles) == 0 {
		return
	}
	h := w.handles[w.choose(len(w.handles))]
	res := claim.Result{}
	if !w.broken.noGuard {
		res = w.write(0, claim.Op{Kind: claim.OpMulti, Ops: []claim.Op{{Kind: claim.OpCheck, Path: h.bid, Version: claim.AnyVersion}}})
	}
	if oldest := w.outdated(h.rule); res.Err == nil && h.token < oldest {
		w.violated("guarded write of token %v went through after %v led", h.token, oldest)
	}
}

// check looks for violations of rules that must hold at every moment.
func (w *world) check() {
	var holders [Leases + 1]int
	leases := 0
	for _, c := range w.candidates {
		if w.left(c) > 0 {
			holders[c.rule]++
			leases = c.leases
		}
	}
	if n := w.standing(Leases); n > leases && leases > 0 {
		w.violated("%d bids that held a lease stand, of %d leases", n, leases)
	}
	alone := holders[Leadership] + holders[Exclusive]
	if alone > 1 || alone > 0 && holders[Shared] > 0 || holders[Leases] > leases {
		w.violated("%d deadlines of %v are unexpired", alone, holders)
	}
	for p, n := range w.leader {
		if isBid(p) && n.Owner != 0 {
			w.checkKnown(p, n)
		}
	}
}

// checkKnown fails if a live session has a bid that its candidate does not know and is not searching for.
// Such a bid could become first although no client would act as leader.
func (w *world) checkKnown(p string, n *claimtest.Node) {
	for _, c := range w.candidates {
		if c.session != n.Owner || w.sessions[n.Owner] == nil {
			continue
		}
		busy, known := c.req != nil || len(c.inbox) > 0 || outstanding(c.e), false
		for _, l := range lines(c.e) {
			busy = busy || l.Asked != 0 || l.doubtful || len(l.probes) > 0
			known = known || l.own.Name == path.Base(p)
		}
		if !busy && c.at != nil && !known {
			w.violated("%s is an orphan of c%d", p, c.id)
		}
	}
}

// heal ends all faults and lets enough time pass for every timeout.
func (w *world) heal() {
	for _, c := range w.candidates {
		c.paused = false
	}
	for end := w.now + 90*time.Second; w.now < end && w.wrong == ""; w.nextMoment() {
		w.settle()
	}
	w.settle()
}

// settle does everything that can be done without time passing.
func (w *world) settle() {
	for busy := true; busy && w.wrong == ""; {
		busy = false
		for _, r := range w.replicas {
			for r.applied < len(w.log) {
				w.apply(r)
			}
		}
		for _, c := range w.candidates {
			if !w.manual && c.at == nil && len(c.inbox) == 0 && c.e.State().Phase != Done {
				w.connect(c, w.replicas[c.id%len(w.replicas)])
			}
			if len(c.inbox) > 0 || c.req != nil {
				w.serve(c)
				w.deliver(c)
				busy = true
			}
		}
		w.check()
	}
}

// nextMoment lets time pass until the first timer is due.
func (w *world) nextMoment() {
	d := modelTimeout / 10
	for _, c := range w.candidates {
		if c.wake > w.now {
			d = min(d, c.wake-w.now)
		}
	}
	w.now += d
	for _, c := range w.candidates {
		if w.sessions[c.session] != nil && c.at != nil {
			w.ping(c)
		}
		if c.wake > 0 && c.wake <= w.now {
			w.step(c, claim.Tick{})
		}
	}
	for id := wire.SessionID(1); id <= w.nextID; id++ {
		if s := w.sessions[id]; s != nil {
			w.expire(s)
		}
	}
}

// checkProgress checks the healed world: one candidate leads and is published, and each other candidate
// waits for the bid ahead of its own.
func (w *world) checkProgress() {
	bids, leading := w.bids(), 0
	standing := map[string]*candidate{}
	for _, c := range w.candidates {
		s := c.e.State()
		switch s.Phase {
		case Done:
			continue
		case Leading:
			leading++
			if n := w.leader[lines(c.e)[0].cfg.Leader]; n == nil || !strings.Contains(n.Data, s.Bid) {
				w.violated("LEADER does not name c%d", c.id)
			}
		}
		standing[modelParent+"/"+s.Bid] = c
	}
	if len(standing) != len(bids) {
		w.violated("%d bids, %d candidates stand", len(bids), len(standing))
	}
	if len(bids) > 0 && leading != 1 {
		w.violated("%d lead of %d", leading, len(bids))
	}
	for i, b := range bids {
		if c := standing[b]; c != nil && i > 0 && modelParent+"/"+c.e.State().For != bids[i-1] {
			w.violated("c%d watches %q, not %s", c.id, c.e.State().For, bids[i-1])
		}
	}
}

// checkDepartures lets the candidates leave one by one. Each departure must send one event and wake one
// candidate, except for the last bid in the line.
func (w *world) checkDepartures() {
	for {
		bids := w.bids()
		if len(bids) == 0 || w.wrong != "" {
			return
		}
		gone := w.choose(len(bids))
		woken, events := 0, w.events
		for _, c := range w.candidates {
			woken -= c.woken
			if modelParent+"/"+c.e.State().Bid == bids[gone] {
				w.step(c, claim.Resign{})
			}
		}
		w.settle()
		for _, c := range w.candidates {
			woken += c.woken
		}
		want := 1
		if gone == len(bids)-1 {
			want = 0
		}
		if events = w.events - events; events != want || woken != want {
			w.violated("departure %d of %d: %d events, %d woken", gone, len(bids), events, woken)
		}
		for range 3 { // LEADER may follow a little later
			w.nextMoment()
			w.settle()
		}
		if next := w.bids(); len(next) > 0 && w.wrong == "" {
			w.checkProgress()
		}
	}
}

// run plays one history: faults, then healing, then orderly departures.
func (w *world) run(steps int, namings ...claim.Naming) {
	for _, n := range namings {
		w.join(n)
	}
	for range steps {
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.heal()
	w.checkProgress()
	w.checkDepartures()
}

func (w *world) fail(t interface{ Fatalf(string, ...any) }) {
	if w.wrong != "" {
		trace := w.trace[max(0, len(w.trace)-60):]
		t.Fatalf("%s\n%s", w.wrong, strings.Join(trace, "\n"))
	}
}

// TestElectionUnderFaults checks all rules at once under random interleavings of lost replies, lagging
// servers, expiries, pauses, suspends and set clocks.
func TestElectionUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, broken{})
		w.run(rapid.IntRange(0, 300).Draw(t, "steps"), claim.Own, claim.Own, claim.CuratorLatch, claim.KazooLock)
		w.fail(t)
	})
}

// seeded returns a world whose random choices depend only on a seed.
func seeded(seed uint64, b broken) *world {
	rnd := rand.New(rand.NewPCG(seed, 1))
	return newWorld(func(n int) int { return rnd.IntN(n) }, b)
}

// TestElectionSeeds checks the rules of TestElectionUnderFaults in longer histories.
func TestElectionSeeds(t *testing.T) {
	for seed := range uint64(claimtest.Seeds) {
		w := seeded(seed, broken{})
		w.run(900, claim.Own, claim.Own, claim.Own, claim.CuratorLock, claim.GoZKLock)
		if w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

// TestPlainElectionSeeds checks the same rules below a parent that is shared with Apache's recipe. Names of that
// recipe contain no nonce, so guards are not checked.
func TestPlainElectionSeeds(t *testing.T) {
	for seed := range uint64(claimtest.Seeds) {
		w := seeded(seed, broken{})
		w.run(900, claim.Plain, claim.Plain, claim.Plain)
		if w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

// TestElectionWithExhaustedSequenceNumbers checks the same rules below a parent whose counter has reached its
// largest value, so that bids share a number or have numbers out of order.
func TestElectionWithExhaustedSequenceNumbers(t *testing.T) {
	for seed := range uint64(claimtest.Seeds / 4) {
		w := seeded(seed, broken{})
		w.parents(modelParent)
		w.counts[modelParent] = math.MaxInt32 - int32(w.choose(5))
		w.run(900, claim.Own, claim.Own, claim.KazooLock)
		if w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

// TestChecksNotice breaks one rule at a time, and requires that some history fails.
func TestChecksNotice(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     broken
		steps int
	}{
		{"sync does nothing", broken{noSync: true}, 900},
		{"a lost create counts as failed", broken{lostIsFailure: true}, 900},
		{"the lease counts from the answer", broken{leaseByReply: true}, 900},
		{"D is left out", broken{noDelay: true}, 900},
		{"the wall clock is not looked at", broken{oneClock: true}, 900},
		{"writes are not guarded", broken{noGuard: true}, 900},
		{"requests outlive their session", broken{anySession: true}, 900},
		{"watches are never given up", broken{keepWatch: true}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(2000) {
				w := seeded(seed, c.b)
				w.run(c.steps, claim.Own, claim.Own, claim.Own)
				if w.wrong != "" {
					t.Logf("seed %d: %s", seed, w.wrong)
					return
				}
			}
			t.Fatal("no history showed it")
		})
	}
}

// TestSequenceIsNoToken checks that the check of tokens fails if sequence numbers are used as tokens. They cannot
// be tokens, because a parent that is created again counts from 0.
func TestSequenceIsNoToken(t *testing.T) {
	for _, asSeq := range []bool{false, true} {
		w := seeded(1, broken{seqToken: asSeq})
		w.join(claim.Own)
		w.heal()
		w.step(w.candidates[0], claim.Resign{})
		w.settle()
		w.write(0, claim.Op{Kind: claim.OpDelete, Path: modelParent, Version: claim.AnyVersion})
		delete(w.counts, modelParent)
		w.campaign(w.candidates[0])
		w.heal()
		if (w.wrong != "") != asSeq {
			t.Fatalf("sequence number as token %v: wrong is %q\n%s", asSeq, w.wrong, strings.Join(w.trace, "\n"))
		}
	}
}
