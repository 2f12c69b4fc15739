package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// TestElectionPausedLeader stops the leader's process until another candidate leads, and then
// continues it. Its handle must have ended when the process checks it, and its pending write
// must fail.
func TestElectionPausedLeader(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		root := fresh("paused")
		state := root + "/state"
		b := newCandidate(t, s.Addr, root+"/job", "b", electionTimeout, recipe.ElectionOptions{})
		mustCreate(t, b.c, root)
		mustCreate(t, b.c, state)
		a := standRemote(t, s.Addr, root+"/job", state)
		a.await(t, "leads")
		for range 20 {
			a.await(t, "wrote true")
		}
		b.campaign(t.Context())
		<-b.waits

		signal(t, a, syscall.SIGSTOP)
		h := b.wins(t)
		res, err := h.Do(t.Context(), zk.SetOp(state, fmt.Appendf(nil, "%d", h.Token()), zk.AnyVersion))
		if err != nil {
			t.Fatal(err)
		}
		for len(a.lines) > 0 {
			<-a.lines // this line was printed before the process was stopped
		}
		signal(t, a, syscall.SIGCONT)
		said := a.await(t, "")
		if strings.HasPrefix(said, "wrote") || strings.HasPrefix(said, "unsure") {
			said = a.await(t, "") // the write that was in flight when it was stopped
		}
		if !strings.HasPrefix(said, "over false") {
			t.Errorf("the older leader says %q after its pause", said)
		}
		data, stat, err := b.c.Get(t.Context(), state)
		if err != nil || stat.Version != res[0].Stat.Version {
			t.Errorf("state is %s, version %d after %d: %v", data, stat.Version, res[0].Stat.Version, err)
		}
	})
}

// TestElectionSilentNetwork drops the leader's packets. Its handle must end before another
// candidate leads.
func TestElectionSilentNetwork(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		m := newMeter(t, s.Addr)
		parent := fresh("silent") + "/job"
		a := stand(t, m.Addr, parent, "a", briefTimeout, recipe.ElectionOptions{})
		ha := a.wins(t)
		b := stand(t, s.Addr, parent, "b", electionTimeout, recipe.ElectionOptions{})
		a.gone.Store(true)
		t.Cleanup(func() { a.c.Detach() })
		m.of(a.c.Session().ID, (*passage).freeze)
		ended := make(chan time.Time, 1)
		go func() {
			<-ha.Context().Done()
			ended <- time.Now()
		}()
		hb := b.wins(t)
		led := time.Now()
		if ha.Left() > 0 || ha.Proof() != nil {
			t.Errorf("%v left of the older handle, proof %v", ha.Left(), ha.Proof())
		}
		if at := <-ended; !at.Before(led) {
			t.Errorf("the older handle ended %v after the newer began", at.Sub(led))
		}
		if hb.Token() <= ha.Token() {
			t.Errorf("token %v after %v", hb.Token(), ha.Token())
		}
	})
}

func signal(t *testing.T, r *remote, s syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func mustCreate(t *testing.T, c *zk.Client, path string) {
	t.Helper()
	if _, _, err := c.Create(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
}

// wins waits for the candidate's handle.
func (k *candidate) wins(t *testing.T) *recipe.Handle {
	t.Helper()
	select {
	case h := <-k.leads:
		return h
	case err := <-k.ended:
		t.Fatalf("%s: %v", k.id, err)
	case <-time.After(electionWait):
		t.Fatalf("%s does not lead within %v", k.id, electionWait)
	}
	return nil
}

const (
	faultsMax     = 12 * time.Second
	termsMin      = 5               // the test continues until there were this many terms
	writesMin     = 50              // required number of guarded writes
	faultyTimeout = 2 * time.Second // session timeout of the candidates
)

// faultyElection is an election of five candidates under random faults, and the records about it.
type faultyElection struct {
	t     *testing.T
	m     *meter
	state string
	all   []*candidate

	mu     sync.Mutex
	held   []*recipe.Handle // the handles of all terms, the newest last
	writes []write          // the guarded writes that succeeded

	newest atomic.Int64 // the largest token
}

type write struct {
	at    wire.Zxid
	token wire.Zxid
}

// TestElectionUnderRandomFaults cuts and freezes connections and drops replies to creates, so that
// sessions expire, while five candidates lead in turn. Two deadlines must never be unexpired
// at the same time, tokens must grow, and no guarded write of an older handle may succeed.
// Afterwards one candidate leads and no extra bid is left.
func TestElectionUnderRandomFaults(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		root := fresh("faults")
		st := &faultyElection{t: t, m: newMeter(t, s.Addr), state: root + "/state"}
		watch := newCandidate(t, s.Addr, root+"/job", "onlooker", electionTimeout, recipe.ElectionOptions{})
		mustCreate(t, watch.c, root)
		mustCreate(t, watch.c, st.state)
		for i := range 5 {
			st.all = append(st.all, newCandidate(t, st.m.Addr, root+"/job", fmt.Sprint("s", i), faultyTimeout, recipe.ElectionOptions{}))
		}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for _, k := range st.all {
			group.Go(func() { st.lead(ctx, k) })
		}
		group.Go(func() { st.sample(ctx) })
		st.causeFaults()

		for _, k := range st.all {
			k.awaitConnected(t)
		}
		calm := st.terms()
		for end := time.Now().Add(electionWait); !st.leads() && time.Now().Before(end); {
			<-time.After(10 * time.Millisecond)
		}
		if !st.leads() {
			t.Errorf("no candidate leads after the faults; there were %d terms before", calm)
		}
		stop()
		group.Wait()
		st.check()
		if left, err := watch.e.Candidates(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("left over: %+v, %v", left, err)
		}
	})
}

// awaitConnected waits until the client has reconnected; it may pause between two attempts.
func (k *candidate) awaitConnected(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	for s := range k.c.States(ctx) {
		if s.State == zk.Connected {
			return
		}
	}
	t.Errorf("%s is not connected %v after the end of the faults", k.id, electionWait)
}

// lead lets a candidate lead again and again, each time until its claim ends or for a while,
// and write all the time.
func (st *faultyElection) lead(ctx context.Context, k *candidate) {
	for ctx.Err() == nil {
		err := k.e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
			st.begins(h)
			enough := time.Now().Add(time.Duration(rand.IntN(1500)) * time.Millisecond)
			for ctx.Err() == nil && time.Now().Before(enough) {
				st.write(ctx, h)
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			st.t.Errorf("%s: %v", k.id, err)
			return
		}
	}
}

func (st *faultyElection) begins(h *recipe.Handle) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if n := len(st.held); n > 0 && h.Token() <= st.held[n-1].Token() {
		st.t.Errorf("token %v after %v", h.Token(), st.held[n-1].Token())
	}
	st.held = append(st.held, h)
	st.newest.Store(int64(h.Token()))
}

// write sends guarded writes with the handle of this term and with one of an older term.
func (st *faultyElection) write(ctx context.Context, h *recipe.Handle) {
	st.mu.Lock()
	older := st.held[rand.IntN(len(st.held))]
	st.mu.Unlock()
	for _, h := range []*recipe.Handle{h, older} {
		newest := wire.Zxid(st.newest.Load())
		op := zk.SetOp(st.state, fmt.Appendf(nil, "%d", h.Token()), zk.AnyVersion)
		// The deadline is not checked here, like in a process that was stopped after its check.
		res, err := clientOf(h, st).Multi(ctx, h.Guard(), op)
		if err != nil {
			continue
		}
		if h.Token() < newest {
			st.t.Errorf("guarded write of token %v went through after %v led", h.Token(), newest)
		}
		st.mu.Lock()
		st.writes = append(st.writes, write{res[1].Stat.Mzxid, h.Token()})
		st.mu.Unlock()
	}
}

// clientOf returns any client of the election, because a guard does not depend on the client.
func clientOf(h *recipe.Handle, st *faultyElection) *zk.Client {
	return st.all[int(h.Token())%len(st.all)].c
}

// sample checks that no two handles are unexpired at the same time. A handle never becomes
// unexpired again, so one that is unexpired before and after the check of another one was
// unexpired during it.
func (st *faultyElection) sample(ctx context.Context) {
	for ctx.Err() == nil {
		st.mu.Lock()
		recent := slices.Clone(st.held[max(0, len(st.held)-4):])
		st.mu.Unlock()
		for _, a := range recent {
			for _, b := range recent {
				if a.Token() < b.Token() && a.Left() > 0 && b.Left() > 0 && a.Left() > 0 {
					st.t.Errorf("handles %v and %v are unexpired at once", a.Token(), b.Token())
				}
			}
		}
		<-time.After(time.Millisecond)
	}
}

// causeFaults cuts and freezes connections and loses replies for a while.
func (st *faultyElection) causeFaults() {
	var freed sync.WaitGroup
	defer freed.Wait()
	began := time.Now()
	for took := time.Duration(0); took < faultsMax || !st.enough() && took < electionWait; took = time.Since(began) {
		k := st.all[rand.IntN(len(st.all))]
		id := k.c.Session().ID
		switch rand.IntN(4) {
		case 0:
			st.m.of(id, (*passage).cut)
		case 1:
			st.m.loseCreates("-n_", 1+rand.IntN(2))
		default:
			k.gone.Store(true)
			st.m.of(id, (*passage).freeze)
			freed.Go(func() {
				<-time.After(time.Duration(rand.IntN(4000)) * time.Millisecond)
				k.gone.Store(false)
				st.m.of(id, (*passage).thaw)
			})
		}
		<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
	}
	st.m.loseCreates("", 0)
}

func (st *faultyElection) terms() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.held)
}

// enough reports whether there were enough terms and guarded writes.
func (st *faultyElection) enough() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.held) >= termsMin && len(st.writes) >= writesMin
}

// leads reports whether a candidate has led since the faults ended and still leads.
func (st *faultyElection) leads() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.held) > 0 && st.held[len(st.held)-1].Left() > 0
}

// check checks all writes in the order in which they happened.
func (st *faultyElection) check() {
	slices.SortFunc(st.writes, func(a, b write) int { return int(min(max(a.at-b.at, -1), 1)) })
	for i := 1; i < len(st.writes); i++ {
		if st.writes[i].token < st.writes[i-1].token {
			st.t.Errorf("a write of token %v follows one of %v", st.writes[i].token, st.writes[i-1].token)
		}
	}
	if !st.enough() {
		st.t.Errorf("only %d terms and %d writes: too few for this test", len(st.held), len(st.writes))
	}
	st.t.Log(len(st.held), "terms,", len(st.writes), "guarded writes")
}

// TestElectionSurvivesServerRestart kills and restarts the server's process. Sessions and bids
// must survive.
func TestElectionSurvivesServerRestart(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		parent := fresh("restart") + "/job"
		a := stand(t, s.Addr, parent, "a", electionTimeout, recipe.ElectionOptions{})
		ha := a.wins(t)
		b := stand(t, s.Addr, parent, "b", electionTimeout, recipe.ElectionOptions{})
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := a.e.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := ha.Lost(); !errors.Is(err, recipe.ErrResigned) {
			t.Logf("the first term was lost over the restart: %v", err)
		}
		if hb := b.wins(t); hb.Token() <= ha.Token() {
			t.Errorf("token %v after %v", hb.Token(), ha.Token())
		}
	})
}

// TestElectionProofNeedsADelay shows that a session timeout of 10 s is enough on Bellwether, which
// reports its confirmation delay. On ZooKeeper, with the assumed 14 s, that timeout proves nothing,
// and the handle says so. The default timeout is enough on both.
func TestElectionProofNeedsADelay(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		usual, err := zk.Connect(t.Context(), s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer usual.Close(context.Background())
		if l := usual.Lease(); l.Term() <= 0 {
			t.Errorf("with the default timeout the lease is %+v", l)
		}
		c, err := zk.Connect(t.Context(), s.Addr, &zk.Options{SessionTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		e, err := recipe.NewElection(c, fresh("proof")+"/job", "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		awaitPublished(t, h)
		if err := c.Sync(t.Context(), "/"); err != nil { // the reply with the delay was sent before this reply, so it has arrived too
			t.Fatal(err)
		}
		if says := s.Kind == target.Bellwether; c.Lease().DelayKnown != says {
			t.Errorf("lease is %+v", c.Lease())
		}
		var none *recipe.NoProof
		if s.Kind == target.Apache && !errors.As(h.Proof(), &none) {
			t.Errorf("proof is %v", h.Proof())
		}
		for end := time.Now().Add(electionWait); s.Kind == target.Bellwether && h.Proof() != nil; <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("proof is %v", h.Proof())
			}
		}
	})
}
