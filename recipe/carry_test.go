package recipe

import (
	"errors"
	"testing"
	"testing/synctest"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
	"bellwether/zk"
)

// carries begins a request and returns a function that waits for its answer.
func (s *fakeServer) carries(c *zk.Client, ops ...claim.Op) <-chan []claim.Result {
	b := newBidder(c, lines.Config{Parent: "/app"}, ElectionOptions{}, "test", nil)
	got := make(chan []claim.Result, 1)
	go func() {
		got <- b.carryOut(s.t.Context(), claim.Request{N: 1, Session: c.Session().ID, Ops: ops}, nil).Results
	}()
	synctest.Wait()
	return got
}

// TestReadsBehindASyncAreSentWithIt checks that reads after a sync are sent before the sync is answered.
func TestReadsBehindASyncAreSentWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "x")
		c := s.connect(zk.Options{})
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpSync {
				return swallow
			}
			return normal
		})
		got := s.carries(c, claim.Op{Kind: claim.OpSync, Path: "/app"}, claim.Op{Kind: claim.OpList, Path: "/app"}, claim.Op{Kind: claim.OpGet, Path: "/app"})
		s.mu.Lock()
		reads := s.requests[wire.OpMultiRead]
		s.mu.Unlock()
		if reads != 1 || len(got) != 0 {
			t.Errorf("%d reads have arrived before the sync was answered", reads)
		}
		s.hook(nil)
		s.cut(c) // both requests are lost
		if res := <-got; res[0].Err != nil || res[1].Err != nil || string(res[2].Data) != "x" {
			t.Errorf("%+v", res)
		}
	})
}

// TestWhatIsReadBehindALostCreateIsLostToo checks that a read after a lost create counts as lost, even if
// it was answered.
func TestWhatIsReadBehindALostCreateIsLostToo(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		c := s.connect(zk.Options{})
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpCreate2 {
				return dropReply
			}
			return normal
		})
		res := <-s.carries(c, claim.Op{Kind: claim.OpCreate, Path: "/app/a"}, claim.Op{Kind: claim.OpList, Path: "/app"})
		for i, r := range res {
			if !errors.Is(r.Err, wire.ErrConnectionLoss) {
				t.Errorf("operation %d: %v", i, r.Err)
			}
		}
	})
}

// TestRefusedCreateDoesNotHinderTheReadBehindIt checks that a read after a refused create has its result.
func TestRefusedCreateDoesNotHinderTheReadBehindIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		s.put("/app/a", "")
		c := s.connect(zk.Options{})
		res := <-s.carries(c, claim.Op{Kind: claim.OpCreate, Path: "/app/a"}, claim.Op{Kind: claim.OpList, Path: "/app"})
		if !errors.Is(res[0].Err, wire.ErrNodeExists) || res[1].Err != nil || len(res[1].Names) != 1 {
			t.Errorf("%+v", res)
		}
	})
}

// TestParentsCostOneRequestWhereTheyAreThere checks the number of requests, also if some of the parents
// are missing.
func TestParentsCostOneRequestWhereTheyAreThere(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		for _, x := range []struct {
			path string
			want int
		}{{"/a/b/c", 5}, {"/a/b/c", 1}, {"/a/b/d", 1}, {"/a/e/f", 3}, {"/", 0}} {
			before := s.asked()
			if res := <-s.carries(c, claim.Op{Kind: claim.OpParents, Path: x.path, Data: []byte("x")}); res[0].Err != nil {
				t.Errorf("%s: %v", x.path, res[0].Err)
			}
			if got := s.asked() - before; got != x.want {
				t.Errorf("%s: %d requests, want %d", x.path, got, x.want)
			}
		}
		for name, want := range map[string]string{"/a": "", "/a/b": "", "/a/b/c": "x", "/a/e/f": "x"} {
			if data, owner, ok := s.node(name); !ok || data != want || owner != 0 {
				t.Errorf("%s: %q of %v (%v)", name, data, owner, ok)
			}
		}
	})
}

// TestWhatCannotBeReadIsWatched checks that a znode that the client may not read is watched, unless Strict
// is set, and that a missing znode leaves no watch.
func TestWhatCannotBeReadIsWatched(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		c := s.connect(zk.Options{})
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpGetData {
				return deny
			}
			return normal
		})
		for _, x := range []struct {
			op      claim.Op
			want    error
			watches int
		}{
			{claim.Op{Kind: claim.OpWatch, Path: "/app/a"}, zk.ErrNoNode, 0},
			{claim.Op{Kind: claim.OpWatch, Path: "/app", Strict: true}, zk.ErrNoAuth, 0},
			{claim.Op{Kind: claim.OpWatch, Path: "/app"}, nil, 1},
		} {
			if res := <-s.carries(c, x.op); !errors.Is(res[0].Err, x.want) {
				t.Errorf("%+v: %v, want %v", x.op, res[0].Err, x.want)
			}
			if got := s.watchCount(); got != x.watches {
				t.Errorf("%+v: %d watches, want %d", x.op, got, x.watches)
			}
		}
	})
}

// watchCount returns the number of one-shot watches at the server.
func (s *fakeServer) watchCount() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		n += len(p.exists)
	}
	for _, node := range s.nodes {
		n += len(node.watch) + len(node.child)
	}
	return n
}
