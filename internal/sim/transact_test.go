package sim

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/claim/commit"
)

// transactionsMin is how many transactions are simulated in each run of the test.
const transactionsMin = 2000

// transactionOptions returns options for many transactions. The coordinator and the sites
// are killed, stopped and cut off, and sometimes a server is.
func transactionOptions(seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: Commit, TermMS: 10,
		Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200,
	}
}

// TestTransactions lets a coordinator and three sites carry out many transactions, of
// either kind and with either outcome. It checks that the parties never differ about an
// outcome, and that in the end all know each transaction's outcome and the transaction is
// removed.
func TestTransactions(t *testing.T) {
	all := map[string]int{}
	for seed, n := uint64(0), 0; n < transactionsMin && !t.Failed(); seed++ {
		s := New(transactionOptions(seed + 1))
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
		n += len(s.deals)
		for _, d := range s.deals {
			all[fmt.Sprintf("plain %v, %v", d.plain, s.coordinator().notes[d].done)]++
		}
	}
	t.Log(all)
	for _, what := range []string{"plain false, commit", "plain false, abort", "plain true, commit", "plain true, abort"} {
		if all[what] < 50 && !t.Failed() {
			t.Errorf("%s: %d", what, all[what])
		}
	}
}

// deal returns a coordinator and two sites with one transaction to carry out. The
// coordinator connects only to the given server; nil: to any server.
func (s *scene) deal(plain, refuses bool, only *server) (parties []*party) {
	s.opt.Recipe = Commit
	for i := range 3 {
		c := s.scripted(only)
		only = nil
		s.cast(c, i)
		p := c.player.(*party)
		p.refuses = 0
		parties = append(parties, p)
	}
	if refuses {
		parties[2].refuses = 100
	}
	s.deals = []*deal{{path: txRoot + "/tx-1", plain: plain, sites: []string{"s1", "s2"}}}
	s.calm, s.quiet = true, true // there is no other transaction
	return parties
}

// settled waits until the transaction is over for all parties and is removed.
func (s *scene) settled(what string) {
	s.t.Helper()
	s.until(what+": "+s.deals[0].path+" is settled", 60*second, func() bool { return s.allSettled() == "" })
}

// eachStep plays a transaction with a crash of each party at each of its steps, for either
// kind and either outcome.
func eachStep(t *testing.T, play func(s *scene, parties []*party, victim *party)) {
	steps := 0
	for i := range 8 {
		plain, refuses, who := i&1 != 0, i&2 != 0, i>>2 // 0: the coordinator, 1: a site
		for at := 1; ; at++ {
			s := newScene(t, Options{Seed: uint64(at)})
			parties := s.deal(plain, refuses, nil)
			victim := parties[who]
			victim.crashAt = at
			play(s, parties, victim)
			if victim.points < at {
				break
			}
			steps++
		}
	}
	t.Logf("%d steps", steps)
	if steps < 80 {
		t.Errorf("only %d steps to crash at", steps)
	}
}

// TestTransactionCrashAtEveryStep lets the coordinator or a site crash at every step and
// come back. It checks that all parties decide and carry out the transaction.
func TestTransactionCrashAtEveryStep(t *testing.T) {
	eachStep(t, func(s *scene, _ []*party, victim *party) {
		s.settled(fmt.Sprintf("%s crashes at step %d", victim.who(), victim.crashAt))
	})
}

// TestTransactionNobodyIsBlocked lets the coordinator or a site vanish at every step. It
// checks that no site that has promised waits longer than the timeout for votes, and that
// the party learns the decision when it comes back.
func TestTransactionNobodyIsBlocked(t *testing.T) {
	eachStep(t, func(s *scene, parties []*party, victim *party) {
		victim.vanish = true
		what := fmt.Sprintf("%s vanishes at step %d", victim.who(), victim.crashAt)
		bound := int64(s.patience().Microseconds()) + 20*second // until the session or the wait for votes ends
		s.until(what, 30*second, func() bool { return victim.c.silent || s.allSettled() == "" })
		s.until(what+": nobody waits", bound, func() bool {
			for _, p := range parties {
				if n := p.note(s.deals[0]); p != victim && n.prepared && n.done == commit.Undecided {
					return false
				}
			}
			return true
		})
		if victim.c.silent {
			s.Do(Act{Kind: Return, A: -victim.c.id})
		}
		s.settled(what)
	})
}

// TestTransactionBegunTooLate delivers the begin of an earlier life after the transaction
// was given up. It checks that the begin finds its place taken forever.
func TestTransactionBegunTooLate(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := newScene(t, Options{Seed: 1, Voters: 3})
		leader := s.leader()
		slow := s.servers[int(leader.id)%3]
		co := s.deal(plain, false, slow)[0]
		s.until("the coordinator is about to begin", 10*second, func() bool { return co.note(s.deals[0]).begun && co.m == nil })
		s.until("it begins", second, func() bool { return co.m != nil })
		slow.pause()
		s.RunFor(100 * millisecond)
		co.c.crash()
		co.c.only = leader
		s.until("it gives the transaction up", 10*second, func() bool { return co.note(s.deals[0]).over })
		slow.resume()
		s.RunFor(20 * second)
		s.settled("too late")
	}
}

// TestTransactionOfTheNextSession checks that a site whose session has ended takes part in
// transactions that begin during its next session.
func TestTransactionOfTheNextSession(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := newScene(t, Options{Seed: 1})
		parties := s.deal(plain, false, nil)
		later := s.deals
		s.deals = nil
		serves := func() bool {
			for _, p := range parties[1:] {
				if !p.c.attached || p.serving == nil || p.looks.answered != p.looks.round {
					return false
				}
			}
			return true
		}
		s.until("all sites serve", 10*second, serves)
		site := parties[1]
		before := site.c.session
		s.Do(Act{Kind: Hang, A: -site.c.id})
		s.RunFor(20 * second)
		s.Do(Act{Kind: Return, A: -site.c.id})
		s.until("the site has another session", 20*second, func() bool { return site.c.session != before && serves() })
		s.deals = later
		s.settled("the next session")
		if d := site.note(later[0]).done; d != commit.Commit {
			t.Errorf("plain %v: %v", plain, d)
		}
	}
}
