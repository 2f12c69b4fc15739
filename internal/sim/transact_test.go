package sim

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/claim/commit"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// transactionsMin is how many transactions are simulated in each run of the test.
const transactionsMin = 2000

// transactionOptions returns options for many transactions. The coordinator and the sites
// are killed, stopped and cut off, and sometimes a server is.
func transactionOptions(seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: client.Commit, TermMS: 10,
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
		n += len(s.clients.Transactions)
		for _, d := range s.clients.Transactions {
			all[fmt.Sprintf("plain %v, %v", d.Plain, s.clients.Coordinator().Note(d).Done)]++
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
func (s *scene) deal(plain, refuses bool, only *server) (parties []*client.Party) {
	s.opt.Recipe = client.Commit
	for i := range 3 {
		c := s.scripted(only)
		only = nil
		s.clients.Cast(c, i)
		p := c.Player.(*client.Party)
		p.Refuses = 0
		parties = append(parties, p)
	}
	if refuses {
		parties[2].Refuses = 100
	}
	s.clients.Transactions = []*client.Transaction{{Path: check.TxRoot + "/tx-1", Plain: plain, Sites: []string{"s1", "s2"}}}
	s.calm, s.quiet = true, true // there is no other transaction
	return parties
}

// settled waits until the transaction is over for all parties and is removed.
func (s *scene) settled(what string) {
	s.t.Helper()
	s.until(what+": "+s.clients.Transactions[0].Path+" is settled", 60*machine.Second, func() bool { return s.clients.TransactionsLeft() == "" })
}

// eachStep plays a transaction with a crash of each party at each of its steps, for either
// kind and either outcome.
func eachStep(t *testing.T, play func(s *scene, parties []*client.Party, victim *client.Party)) {
	steps := 0
	for i := range 8 {
		plain, refuses, who := i&1 != 0, i&2 != 0, i>>2 // 0: the coordinator, 1: a site
		for at := 1; ; at++ {
			s := newScene(t, Options{Seed: uint64(at)})
			parties := s.deal(plain, refuses, nil)
			victim := parties[who]
			victim.Client().CrashAt = at
			play(s, parties, victim)
			if victim.Client().Steps < at {
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
	eachStep(t, func(s *scene, _ []*client.Party, victim *client.Party) {
		s.settled(fmt.Sprintf("%s crashes at step %d", victim.Who(), victim.Client().CrashAt))
	})
}

// TestVanishedPartyBlocksNoSite lets the coordinator or a site vanish at every step. It
// checks that no site that has promised waits longer than the timeout for votes, and that
// the party learns the decision when it comes back.
func TestVanishedPartyBlocksNoSite(t *testing.T) {
	eachStep(t, func(s *scene, parties []*client.Party, victim *client.Party) {
		victim.Client().HangsInstead = true
		what := fmt.Sprintf("%s vanishes at step %d", victim.Who(), victim.Client().CrashAt)
		bound := int64(s.clients.VoteTimeout().Microseconds()) + 20*machine.Second // until the session or the wait for votes ends
		s.until(what, 30*machine.Second, func() bool { return victim.Client().Hung || s.clients.TransactionsLeft() == "" })
		s.until(what+": nobody waits", bound, func() bool {
			for _, p := range parties {
				if n := p.Note(s.clients.Transactions[0]); p != victim && n.Prepared && n.Done == commit.Undecided {
					return false
				}
			}
			return true
		})
		if victim.Client().Hung {
			s.Do(Act{Kind: Return, A: -victim.Client().ID})
		}
		s.settled(what)
	})
}

// TestTransactionBegunTooLate delivers the request by which an earlier life of the
// coordinator begins a transaction, after the transaction was given up. It checks that the
// request fails, because another znode has taken the transaction's place for good.
func TestTransactionBegunTooLate(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := newScene(t, Options{Seed: 1, Voters: 3})
		leader := s.leader()
		slow := s.servers[int(leader.id)%3]
		co := s.deal(plain, false, slow)[0]
		s.until("the coordinator is about to begin", 10*machine.Second, func() bool { return co.Note(s.clients.Transactions[0]).Begun && !co.Working() })
		s.until("it begins", machine.Second, func() bool { return co.Working() })
		slow.pause()
		s.RunFor(100 * machine.Millisecond)
		co.Client().Crash()
		co.Client().Only = leader.id
		s.until("it gives the transaction up", 10*machine.Second, func() bool { return co.Note(s.clients.Transactions[0]).Over })
		slow.resume()
		s.RunFor(20 * machine.Second)
		s.settled("too late")
	}
}

// TestTransactionOfTheNextSession checks that a site whose session has ended takes part in
// transactions that begin during its next session.
func TestTransactionOfTheNextSession(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := newScene(t, Options{Seed: 1})
		parties := s.deal(plain, false, nil)
		later := s.clients.Transactions
		s.clients.Transactions = nil
		serves := func() bool {
			for _, p := range parties[1:] {
				if !p.Serves() {
					return false
				}
			}
			return true
		}
		s.until("all sites serve", 10*machine.Second, serves)
		site := parties[1]
		before := site.Client().Session
		s.Do(Act{Kind: Hang, A: -site.Client().ID})
		s.RunFor(20 * machine.Second)
		s.Do(Act{Kind: Return, A: -site.Client().ID})
		s.until("the site has another session", 20*machine.Second, func() bool { return site.Client().Session != before && serves() })
		s.clients.Transactions = later
		s.settled("the next session")
		if d := site.Note(later[0]).Done; d != commit.Commit {
			t.Errorf("plain %v: %v", plain, d)
		}
	}
}
