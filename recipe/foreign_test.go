package recipe

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// These tests put znodes of other programs where a recipe works: names that it does not know, persistent
// znodes whose names look like bids, and data that it cannot parse.

// strangers are the children planted below each parent. Each has a child, so that nobody can delete it by
// mistake.
var strangers = []string{"stranger", "-n_", "lock-", "entry-", "tx-", "ready ", "ä", "x-n_12", "__party__", "-", "_c_"}

// lookalikes have the name of a bid, but no session owns them.
var lookalikes = []string{"n_0000000000", "0123456789abcdef0123456789abcdef-n_0000000000", "0123456789abcdef0123456789abcdef__lock__0000000000",
	"_c_01234567-89ab-cdef-0123-456789abcdef-latch-0000000000"}

// rubbish is neither JSON nor a number nor UTF-8.
const rubbish = "{\"sites\":[\xff"

// grounds lists for each recipe the parents that get strangers, the lines that also get lookalikes, the
// znodes that hold rubbish, and the expected result; nil means success.
var grounds = map[string]struct {
	parents, lines, data []string
	comes                func(error) bool
}{
	"election": {lines: []string{"/app/election"}, data: []string{"/app/election/LEADER"}},
	"election, observed": {data: []string{"/app/election/LEADER"}, comes: func(err error) bool { // the observer waits for a leader and sees none
		return errors.Is(err, context.DeadlineExceeded)
	}},
	"lock":           {lines: []string{"/app/lock"}},
	"read lock":      {lines: []string{"/app/rw"}},
	"write lock":     {lines: []string{"/app/rw"}},
	"semaphore":      {parents: []string{"/app/semaphore", "/app/semaphore/leases"}, lines: []string{"/app/semaphore/locks"}},
	"several locks":  {lines: []string{"/app/lock-a", "/app/lock-b"}},
	"barrier":        {data: []string{"/app/barrier"}},
	"double barrier": {data: []string{"/app/double"}},
	"queue":          {parents: []string{"/app/queue"}, lines: []string{"/app/queue.line"}},
	"work queue":     {parents: []string{"/app/jobs", "/app/jobs/entries", "/app/jobs/taken"}, lines: []string{"/app/jobs.line"}},
	"registration":   {data: []string{"/app/registration"}, comes: isA[*OwnedError]},
	"group":          {lines: []string{"/app/group"}},
	"discovery":      {lines: []string{"/app/services", "/app/services/web"}},
	"cache":          {lines: []string{"/app"}},
	"value":          {parents: []string{"/app/value"}},
	"counter":        {parents: []string{"/app/counter"}, data: []string{"/app/counter"}, comes: isA[*DataError]},
	"ids":            {parents: []string{"/app/ids"}, data: []string{"/app/ids"}, comes: isA[*DataError]},
	"partitioner":    {lines: []string{"/app/parts", "/app/parts/members", "/app/parts/parts", "/app/parts/parts/one"}},
	"work":           {parents: []string{"/app/work"}, lines: []string{"/app/work/members", "/app/work/parts", "/app/work/parts/task"}},
	"configuration":  {lines: []string{"/app/election"}},
	"transaction":    {lines: []string{txRoot}, data: []string{txRoot + "/tx-rubbish"}},
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// TestEveryRecipeBesideStrangers checks that each recipe succeeds or returns a typed error, and leaves
// znodes of other programs unchanged.
func TestEveryRecipeBesideStrangers(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				recipe, _, _ := strings.Cut(u.name, ",")
				ground, known := grounds[u.name]
				if !known {
					ground, known = grounds[recipe]
				}
				if !known {
					t.Fatal("grounds has no entry for this recipe")
				}
				for _, p := range append(ground.parents, ground.lines...) {
					s.plantAt(p, strangers)
				}
				for _, p := range ground.lines {
					s.plantAt(p, lookalikes)
				}
				for _, p := range ground.data {
					s.fill(p)
				}
				before := s.persistent()
				suffers(t, s, "beside strangers", func(ctx context.Context, c *zk.Client) error {
					err := u.use(ctx, c)
					if wants := ground.comes; wants == nil && err != nil || wants != nil && !wants(err) {
						t.Errorf("%T: %v", err, err)
					}
					return err
				}, nil)
				after := s.persistent()
				for p, data := range before {
					if now, there := after[p]; !there || now != data && u.name != "value" && u.name != "barrier" {
						t.Errorf("%s was %q, is %q, there %v", p, data, now, there)
					}
				}
			})
		})
	}
}

// plantAt puts strangers below a parent, which it creates if it is missing.
func (s *fakeServer) plantAt(parent string, names []string) {
	s.fill(parent)
	for _, name := range names {
		s.fill(claim.Join(parent, name))
		s.fill(claim.Join(claim.Join(parent, name), "child"))
	}
}

// fill creates a persistent znode that holds rubbish, and its missing parents.
func (s *fakeServer) fill(p string) {
	if _, _, there := s.node(p); there || p == "/" {
		return
	}
	s.fill(path.Dir(p))
	s.put(p, rubbish)
}

// persistent returns the persistent znodes, without those that the recipes under test change.
func (s *fakeServer) persistent() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for p, n := range s.nodes {
		if n.stat.EphemeralOwner == 0 && !strings.HasPrefix(p, "/app/barrier") {
			all[p] = string(n.data)
		}
	}
	return all
}

// TestStrangersThatCount checks which znodes of other programs affect a recipe.
func TestStrangersThatCount(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, s *fakeServer, c *zk.Client){
		"a barrier with children stays closed": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.fill("/app/barrier/child")
			b := made(NewBarrier(c, "/app/barrier", nil))
			if err := b.Open(t.Context()); !errors.Is(err, zk.ErrNotEmpty) {
				t.Error(err)
			}
		},
		"a child of a double barrier is a member": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.fill("/app/double/stranger")
			b := made(NewDoubleBarrier(c, "/app/double", 2, nil))
			if err := b.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			out := after(func() error { return b.Leave(context.Background()) })
			still(t, out)
			s.delete("/app/double/stranger")
			returned(t, out)
		},
		"a lease that no session holds is held": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.fill("/app/semaphore/leases/" + lookalikes[0])
			m := made(NewSemaphore(c, "/app/semaphore", 1, nil))
			if _, err := m.TryAcquire(t.Context()); !errors.Is(err, ErrHeld) {
				t.Error(err)
			}
		},
		"only what a session holds is a member of a group": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.plantAt("/app/group", strangers)
			if in, err := made(NewGroup(c, "/app/group", nil)).Members(t.Context()); len(in) > 0 || err != nil {
				t.Errorf("%v, %v", in, err)
			}
		},
		"an instance that cannot be read is not picked": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.plantAt("/app/services/web", strangers)
			p, err := made(NewDiscovery(c, "/app/services", nil)).Provider(t.Context(), "web", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if i, any := p.Pick(); any || len(p.All()) > 0 {
				t.Errorf("picked %v", i)
			}
		},
		"a configuration of nobody's is passed over, and replaced": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.fill("/app/config")
			h := campaign(t, made(NewElection(c, "/app/election", "a", nil)))
			published := make(chan error, 1)
			time.AfterFunc(time.Second, func() {
				published <- PublishConfig(context.Background(), h, "/app/config", []byte("x"), nil)
			})
			for now, err := range WatchConfig(t.Context(), c, "/app/config", nil) {
				if string(now.Data) != "x" || err != nil {
					t.Errorf("%+v, %v", now, err)
				}
				break
			}
			if err := <-published; err != nil {
				t.Error(err)
			}
		},
		"an item with children stays": func(t *testing.T, s *fakeServer, c *zk.Client) {
			s.fill("/app/queue/entry-100-0000000000/child")
			q := made(NewQueue(c, "/app/queue", nil))
			if _, err := q.Take(t.Context()); !errors.Is(err, zk.ErrNotEmpty) {
				t.Error(err)
			}
		},
		"a transaction with strangers below stays": func(t *testing.T, s *fakeServer, c *zk.Client) {
			co := made(NewCoordinator(c, txRoot, nil))
			p := co.Path()
			d, err := co.Commit(t.Context(), p, nil, nil, func(context.Context, Tx, Decision) error {
				s.fill(p + "/stranger/child")
				return nil
			})
			if _, _, there := s.node(p + "/stranger/child"); d != Commit || err != nil || !there {
				t.Errorf("%v, %v, the stranger's is there: %v", d, err, there)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.fill("/app")
				test(t, s, s.connect(zk.Options{}))
			})
		})
	}
}
