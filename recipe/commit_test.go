package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

const txRoot = "/app/txs"

// ledger is a participant that remembers the calls of its methods.
type ledger struct {
	mu       sync.Mutex
	refuses  bool
	hang     chan struct{} // if set, Prepare waits for it
	prepared int
	outcomes []Decision
}

func (l *ledger) Prepare(ctx context.Context, _ Tx) error {
	l.mu.Lock()
	l.prepared++
	refuses, hang := l.refuses, l.hang
	l.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuses {
		return errors.New("no")
	}
	return nil
}

func (l *ledger) Commit(context.Context, Tx) error { return l.note(Commit) }
func (l *ledger) Abort(context.Context, Tx) error  { return l.note(Abort) }

func (l *ledger) note(d Decision) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes = append(l.outcomes, d)
	return nil
}

func (l *ledger) has() []Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outcomes
}

// parties is a coordinator and n serving sites, each with a client of its own.
type parties struct {
	c       *Coordinator
	clients []*zk.Client // the first one is the coordinator's
	names   []string
	sites   []*ledger
	stop    []context.CancelFunc
}

func (s *fakeServer) parties(n int, o *CommitOptions) *parties {
	s.t.Helper()
	p := &parties{clients: []*zk.Client{s.connect(zk.Options{})}}
	var err error
	if p.c, err = NewCoordinator(p.clients[0], txRoot, o); err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		p.names = append(p.names, fmt.Sprint("s", i))
		p.sites = append(p.sites, &ledger{})
		p.clients = append(p.clients, s.connect(zk.Options{}))
		p.stop = append(p.stop, nil)
		s.serveSite(p, i, o)
	}
	synctest.Wait()
	return p
}

// serveSite starts a site.
func (s *fakeServer) serveSite(p *parties, i int, o *CommitOptions) {
	site, err := NewSite(p.clients[i+1], txRoot, p.names[i], p.sites[i], o)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := site.Serve(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, zk.ErrClosed) {
			s.t.Errorf("site %s: %v", p.names[i], err)
		}
	}()
	p.stop[i] = func() { cancel(); <-ended }
	s.t.Cleanup(p.stop[i])
}

// mute drops all further requests of a client's session, as if its process had died.
func (s *fakeServer) mute(c *zk.Client) {
	id := c.Session().ID
	s.hook(func(by *peer, _ wire.OpCode, _ string) fate {
		if by.session == id {
			return swallow
		}
		return normal
	})
}

// transact commits a transaction and waits until all have carried it out.
func (p *parties) transact(t *testing.T) Decision {
	t.Helper()
	d, err := p.c.Commit(t.Context(), p.c.Path(), p.names, []byte("pay"), nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return d
}

func (p *parties) want(t *testing.T, d Decision, sites ...int) {
	t.Helper()
	for _, i := range sites {
		if got := p.sites[i].has(); len(got) != 1 || got[0] != d {
			t.Errorf("site %d carried out %v, want %v once", i, got, d)
		}
	}
}

func bothCommits(t *testing.T, test func(t *testing.T, s *fakeServer, o *CommitOptions)) {
	for name, o := range map[string]*CommitOptions{"coordinated": nil, "plain": {Plain: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) { test(t, s, o) })
		})
	}
}

// TestCommitCountsVotes checks that votes of all sites commit, that one vote against aborts, and that
// nothing is left.
func TestCommitCountsVotes(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(3, o)
		if d := p.transact(t); d != Commit {
			t.Errorf("decision %v", d)
		}
		p.want(t, Commit, 0, 1, 2)
		for _, l := range p.sites {
			l.outcomes = nil
		}
		p.sites[1].refuses = true
		if d := p.transact(t); d != Abort {
			t.Errorf("decision %v", d)
		}
		p.want(t, Abort, 1)
		if left := s.bids(txRoot); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestCommitCosts checks the watch events of a transaction with n sites: three for the znode of each site,
// and the decision for each site and the coordinator. One event tells each site that there is a
// transaction, and one that it is gone.
func TestCommitCosts(t *testing.T) {
	for _, n := range append([]int{5}, sizes()...) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) { commitCosts(t, s, n, false, 4*n+1+2*n, 40*n) })
		})
	}
	for _, n := range []int{5, 10, 30} { // each site watches the votes of all others, and reads a vote after its event
		t.Run(fmt.Sprint("plain ", n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) { commitCosts(t, s, n, true, n*(n-1)+1+2*n, n*(n-1)+40*n) })
		})
	}
}

func commitCosts(t *testing.T, s *fakeServer, n int, plain bool, eventsMax, requestsMax int) {
	p := s.parties(n, &CommitOptions{Plain: plain})
	events, asked := s.eventCount(), s.asked()
	if d := p.transact(t); d != Commit {
		t.Errorf("decision %v", d)
	}
	events, asked = s.eventCount()-events, s.asked()-asked
	t.Logf("plain %v, %d sites: %d events, %d requests", plain, n, events, asked)
	if asked > requestsMax {
		t.Errorf("%d requests, want at most %d", asked, requestsMax)
	}
	if events > eventsMax || events < n {
		t.Errorf("%d events, want at most %d", events, eventsMax)
	}
}

// TestCommitDeparturesCost checks that the disappearance of a coordinator costs each of n
// sites one event, and that one of them takes over. If a site gives up, the transaction
// is decided, and each other site learns the decision by one event.
func TestCommitDeparturesCost(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		p := s.parties(n, &CommitOptions{Patience: time.Hour})
		hang := make(chan struct{})
		for _, l := range []*ledger{p.sites[0], p.sites[1]} {
			l.hang = hang
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := after(func() error {
			_, err := p.c.Commit(ctx, p.c.Path(), p.names, nil, nil)
			return err
		})
		synctest.Wait()
		s.costsAtMost("the coordinator departs", n+1, 8*n, func() { cancel(); <-ended })
		s.costsAtMost("a site departs", n+1, 8*n, p.stop[1])
		p.want(t, Abort, 2, 3)
	})
}

// TestChecklist14SiteVanishes checks that a site that disappeared before the decision counts as not having
// voted. The others learn the decision without it.
func TestChecklist14SiteVanishes(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(3, o)
		p.sites[2].hang = make(chan struct{})
		out := make(chan Decision, 1)
		go func() {
			d, _ := p.c.Commit(context.Background(), p.c.Path(), p.names, nil, nil)
			out <- d
		}()
		synctest.Wait()
		s.mute(p.clients[3])
		p.stop[2]()
		s.expire(p.clients[3].Session().ID)
		if d := <-out; d != Abort {
			t.Errorf("decision %v", d)
		}
		synctest.Wait()
		p.want(t, Abort, 0, 1)
		p.sites[2].hang = nil
		s.serveSite(p, 2, o)
		synctest.Wait()
		if left := s.bids(txRoot); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestChecklist14CoordinatorVanishes checks that a site takes over at once, and that the coordinator finds
// its decision when it comes back.
func TestChecklist14CoordinatorVanishes(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(3, o)
		hang := make(chan struct{})
		p.sites[2].hang = hang
		ctx, crash := context.WithCancel(t.Context())
		tx := p.c.Path()
		ended := make(chan error, 1)
		go func() {
			_, err := p.c.Commit(ctx, tx, p.names, nil, nil)
			ended <- err
		}()
		synctest.Wait()
		s.mute(p.clients[0])
		crash()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		s.expire(p.clients[0].Session().ID)
		synctest.Wait()
		start := time.Now()
		close(hang)
		synctest.Wait()
		p.want(t, Commit, 0, 1, 2)
		if waited := time.Since(start); waited > 0 {
			t.Errorf("the sites waited %v", waited)
		}
		var told Decision
		d, err := p.c.Recover(t.Context(), tx, func(_ context.Context, _ Tx, d Decision) error { told = d; return nil })
		if d != Commit || told != Commit || err != nil {
			t.Errorf("recovered %v, told %v, %v", d, told, err)
		}
		synctest.Wait()
		if left := s.bids(txRoot); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestChecklist14RecoveredSite checks that a recovered site finds the decision that was made without it.
func TestChecklist14RecoveredSite(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(2, o)
		var once sync.Once
		voted := make(chan struct{})
		s.hook(func(_ *peer, op wire.OpCode, name string) fate {
			if op == wire.OpSetData && path.Base(name) == "site_s1" {
				once.Do(func() { close(voted) })
			}
			return normal
		})
		block := make(chan struct{})
		p.sites[0].hang = block
		out := make(chan Decision, 1)
		tx := p.c.Path()
		go func() {
			d, _ := p.c.Commit(context.Background(), tx, p.names, nil, nil)
			out <- d
		}()
		<-voted
		synctest.Wait()
		p.stop[1]() // the session of the site is still alive, and its vote stays
		close(block)
		if d := <-out; d != Commit {
			t.Fatalf("decision %v", d)
		}
		synctest.Wait()
		p.want(t, Commit, 0)
		again, err := NewSite(s.connect(zk.Options{}), txRoot, "s1", p.sites[1], o)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := again.Recover(t.Context(), tx); d != Commit || err != nil {
			t.Errorf("recovered %v, %v", d, err)
		}
		p.want(t, Commit, 1)
		if d, err := again.Recover(t.Context(), txRoot+"/tx-gone"); d != Abort || err != nil {
			t.Errorf("presumed %v, %v", d, err)
		}
	})
}

// TestChecklist14LostReplies checks that a transaction commits everywhere although each write loses its reply once,
// or is dropped once before it is carried out.
func TestChecklist14LostReplies(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
			p := s.parties(3, o)
			seen := map[string]bool{}
			var mu sync.Mutex
			s.hook(func(_ *peer, op wire.OpCode, name string) fate {
				mu.Lock()
				defer mu.Unlock()
				key := fmt.Sprint(op, path.Base(name))
				write := op == wire.OpMulti || op == wire.OpCreate || op == wire.OpCreate2 || op == wire.OpSetData || op == wire.OpDelete
				if !write || seen[key] || strings.HasPrefix(path.Base(name), "app") {
					return normal
				}
				seen[key] = true
				return f
			})
			if d := p.transact(t); d != Commit {
				// A site whose znode disappears before it has voted may be overlooked. That cannot happen
				// here, because all sessions live.
				t.Errorf("decision %v", d)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			p.want(t, Commit, 0, 1, 2)
			if left := s.bids(txRoot); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestCommitSurvivesExpiry checks that all parties carry out the same decision although all sessions expire in the
// middle of the transaction.
func TestCommitSurvivesExpiry(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(3, o)
		hang := make(chan struct{})
		p.sites[0].hang = hang
		out := make(chan Decision, 1)
		go func() {
			d, err := p.c.Commit(context.Background(), p.c.Path(), p.names, nil, nil)
			if err != nil {
				t.Error(err)
			}
			out <- d
		}()
		synctest.Wait()
		for _, c := range p.clients {
			s.expire(c.Session().ID)
		}
		time.Sleep(time.Second)
		close(hang)
		d := <-out
		time.Sleep(time.Minute)
		synctest.Wait()
		p.want(t, d, 0, 1, 2)
		if left := s.bids(txRoot); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestCommitLeavesNoWatch checks that no watch is left for a site that never came.
func TestCommitLeavesNoWatch(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(1, o)
		p.names = append(p.names, "nobody")
		if d := p.transact(t); d != Abort {
			t.Errorf("decision %v", d)
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		for peer := range s.peers {
			if len(peer.exists) > 0 {
				t.Errorf("session %v watches %v", peer.session, peer.exists)
			}
		}
	})
}

// TestCommitRefusesDoubleSites checks that a name cannot be given twice.
func TestCommitRefusesDoubleSites(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(1, o)
		if d, err := p.c.Commit(t.Context(), p.c.Path(), []string{"s0", "s0"}, nil, nil); err == nil {
			t.Errorf("decision %v", d)
		}
	})
}

// TestCommitRefusesForeignPaths checks that Commit refuses a path that is not below the
// root or that does not have the name of a transaction, because no site would find it. It
// must create nothing there.
func TestCommitRefusesForeignPaths(t *testing.T) {
	bothCommits(t, func(t *testing.T, s *fakeServer, o *CommitOptions) {
		p := s.parties(1, o)
		site, err := NewSite(p.clients[0], txRoot, "s0", &ledger{}, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"", txRoot, txRoot + "/", txRoot + "/x", "/elsewhere/tx-1", txRoot + "/tx-1/tx-2", txRoot + "/../tx-1"} {
			_, commits := p.c.Commit(t.Context(), path, p.names, nil, nil)
			_, recovers := p.c.Recover(t.Context(), path, nil)
			_, joins := site.Join(t.Context(), path)
			_, again := site.Recover(t.Context(), path)
			for _, err := range []error{commits, recovers, p.c.Forget(t.Context(), path), joins, again} {
				if !errors.Is(err, zk.ErrBadArguments) {
					t.Errorf("%q: %v", path, err)
				}
			}
		}
		if _, _, ok := s.node("/elsewhere"); ok {
			t.Error("/elsewhere was made")
		}
	})
}

// TestCommitNeedsNoPatience checks that no wake-up is lost while all parties live, whatever replies,
// connections and sessions are lost. So no timeout is needed.
func TestCommitNeedsNoPatience(t *testing.T) {
	for seed := range uint64(60) {
		bubble(t, func(t *testing.T, s *fakeServer) {
			r := rand.New(rand.NewPCG(seed, 16))
			p := s.parties(3, &CommitOptions{Plain: seed%2 == 0, Patience: 24 * time.Hour})
			var mu sync.Mutex
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				mu.Lock()
				defer mu.Unlock()
				if op == wire.OpPing || r.IntN(12) > 0 {
					return normal
				}
				return []fate{dropReply, dropAll}[r.IntN(2)]
			})
			out := make(chan error, 1)
			go func() {
				_, err := p.c.Commit(context.Background(), p.c.Path(), p.names, nil, nil)
				out <- err
			}()
			for range 30 {
				mu.Lock()
				wait, who, end := r.IntN(300), p.clients[r.IntN(4)], r.IntN(8) == 0
				mu.Unlock()
				time.Sleep(time.Duration(wait) * time.Millisecond)
				if end {
					s.expire(who.Session().ID)
				}
			}
			s.hook(nil)
			time.Sleep(time.Minute)
			select {
			case err := <-out:
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			default:
				t.Fatalf("seed %d: hangs: %v", seed, slices.Sorted(maps.Keys(s.nodes)))
			}
			if left := s.bids(txRoot); len(left) > 0 {
				t.Errorf("seed %d: left behind: %v", seed, left)
			}
		})
	}
}

// TestRefusedCoordinatorLeavesNothing checks that a coordinator that may not read its own transaction
// returns an error, and that a site takes over at once.
func TestRefusedCoordinatorLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p := s.parties(2, &CommitOptions{Patience: time.Hour})
		s.hook(func(by *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpMultiRead && by.session == p.clients[0].Session().ID {
				return deny
			}
			return normal
		})
		if d, err := p.c.Commit(t.Context(), p.c.Path(), p.names, nil, nil); d != Undecided || !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("decision %v, %v", d, err)
		}
		time.Sleep(time.Second)
		p.want(t, Commit, 0, 1)
	})
}

// TestRefusedSiteLeavesNothing checks that a site that may not vote removes its znode, so that nobody
// waits for it.
func TestRefusedSiteLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p := s.parties(1, &CommitOptions{Patience: time.Hour})
		c := s.connect(zk.Options{})
		site, err := NewSite(c, txRoot, "mute", &ledger{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.hook(func(by *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpSetData && by.session == c.Session().ID {
				return deny
			}
			return normal
		})
		tx := p.c.Path()
		joined := after(func() error {
			_, err := site.Join(context.Background(), tx)
			return err
		})
		if err := <-joined; err != nil {
			t.Fatalf("of a transaction that is not there: %v", err)
		}
		out := make(chan Decision, 1)
		go func() {
			d, _ := p.c.Commit(context.Background(), tx, []string{"s0", "mute"}, nil, nil)
			out <- d
		}()
		synctest.Wait()
		if _, err := site.Join(t.Context(), tx); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("joined: %v", err)
		}
		start := time.Now()
		if d := <-out; d != Abort || time.Since(start) > time.Second {
			t.Errorf("decision %v after %v", d, time.Since(start))
		}
	})
}

// TestCancelledCommitIsTakenOver checks that a site takes over from a cancelled coordinator at once,
// although the session of the coordinator is alive.
func TestCancelledCommitIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p := s.parties(2, &CommitOptions{Patience: time.Hour})
		hang := make(chan struct{})
		p.sites[1].hang = hang
		ctx, cancel := context.WithCancel(t.Context())
		tx := p.c.Path()
		ended := after(func() error {
			_, err := p.c.Commit(ctx, tx, p.names, nil, nil)
			return err
		})
		synctest.Wait()
		start := time.Now()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		synctest.Wait()
		close(hang)
		synctest.Wait()
		p.want(t, Commit, 0, 1)
		if d, err := p.c.Recover(t.Context(), tx, nil); d != Commit || err != nil {
			t.Errorf("recovered %v, %v", d, err)
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestCancelledJoinIsAnAbort checks that a cancelled site aborts the transaction at once, although its
// session is alive. Join does not return before Prepare has returned.
func TestCancelledJoinIsAnAbort(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p := s.parties(2, &CommitOptions{Patience: time.Hour})
		p.sites[1].hang = make(chan struct{})
		out := make(chan Decision, 1)
		start := time.Now()
		go func() {
			d, _ := p.c.Commit(context.Background(), p.c.Path(), p.names, nil, nil)
			out <- d
		}()
		synctest.Wait()
		p.stop[1]()
		if d := <-out; d != Abort || time.Since(start) > 0 {
			t.Errorf("decision %v after %v", d, time.Since(start))
		}
		synctest.Wait()
		p.want(t, Abort, 0)
	})
}

// TestCancelledWithoutConnection checks that znodes that could not be removed in time are removed when the
// client is connected again.
func TestCancelledWithoutConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p := s.parties(0, &CommitOptions{Patience: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		tx := p.c.Path()
		ended := after(func() error {
			_, err := p.c.Commit(ctx, tx, []string{"nobody"}, nil, nil)
			return err
		})
		synctest.Wait()
		s.setAway(true)
		s.cut(p.clients[0])
		start := time.Now()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(start) > 0 {
			t.Errorf("cancelled: %v after %v", err, time.Since(start))
		}
		if left := s.bids(tx); !slices.Equal(left, []string{"coordinator"}) {
			t.Errorf("below the transaction: %v", left)
		}
		s.setAway(false)
		time.Sleep(3 * time.Second)
		if left := s.bids(tx); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestServeLeavesNoWatch checks that Serve leaves no watch when it ends.
func TestServeLeavesNoWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p := s.parties(1, nil)
		p.stop[0]()
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.nodes[txRoot].child); n > 0 {
			t.Errorf("%d watches on the children of the root", n)
		}
	})
}
