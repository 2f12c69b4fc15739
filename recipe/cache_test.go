package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

const grove = "/app/tree"

// plant creates the znode grove with n children. If deep is set, each child has a child.
func (s *fakeServer) plant(n int, deep bool) {
	s.put("/app", "")
	s.put(grove, "root")
	for i := range n {
		name := fmt.Sprintf("%s/n%04d", grove, i)
		s.put(name, "0")
		if deep {
			s.put(name+"/leaf", "0")
		}
	}
}

func openCache(t *testing.T, c *zk.Client, o *CacheOptions) *Cache {
	t.Helper()
	k, err := OpenCache(t.Context(), c, grove, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// agree fails the test unless the Cache holds the same znodes as the server.
func agree(t *testing.T, s *fakeServer, k *Cache) {
	t.Helper()
	synctest.Wait()
	want := map[string]string{}
	s.mu.Lock()
	for name, n := range s.nodes {
		if k.tree.Covers(name) {
			want[name] = string(n.data)
		}
	}
	s.mu.Unlock()
	got := map[string]string{}
	for n := range k.All() {
		got[n.Path] = string(n.Data)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the cache holds %d znodes, the server %d:\n%q\n%q", len(got), len(want), head(got), head(want))
	}
	if k.Len() != len(got) || k.Err() != nil || k.Stale() {
		t.Errorf("%d znodes, error %v, stale %v", k.Len(), k.Err(), k.Stale())
	}
}

func head(m map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name+"="+m[name])
	}
	return out[:min(len(out), 12)]
}

// eachCache runs a test with persistent watches, with one-shot watches, and with a Cache of children only.
func eachCache(t *testing.T, test func(t *testing.T, s *fakeServer, c *zk.Client, o *CacheOptions)) {
	for _, old := range []bool{false, true} {
		for _, childrenOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("old=%v,children=%v", old, childrenOnly), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *fakeServer) {
					s.old = old
					test(t, s, s.connect(zk.Options{}), &CacheOptions{ChildrenOnly: childrenOnly})
				})
			})
		}
	}
}

// TestCacheFollows checks every kind of change, also of the root itself.
func TestCacheFollows(t *testing.T) {
	eachCache(t, func(t *testing.T, s *fakeServer, c *zk.Client, o *CacheOptions) {
		k := openCache(t, c, o)
		agree(t, s, k) // the tree is empty
		s.plant(5, true)
		agree(t, s, k)
		s.change(grove+"/n0001", "1")
		s.change(grove, "1")
		agree(t, s, k)
		s.put(grove+"/n0002/leaf/bud", "")
		agree(t, s, k)
		s.delete(grove + "/n0002/leaf/bud")
		s.delete(grove + "/n0002/leaf")
		s.delete(grove + "/n0002")
		agree(t, s, k)
		s.put(grove+"/n0002", "again")
		agree(t, s, k)
		for _, name := range []string{"n0000/leaf", "n0000", "n0001/leaf", "n0001", "n0002", "n0003/leaf", "n0003", "n0004/leaf", "n0004"} {
			s.delete(grove + "/" + name)
		}
		s.delete(grove)
		agree(t, s, k)
		s.put(grove, "back")
		s.put(grove+"/x", "")
		agree(t, s, k)
		if got := k.Children(grove); !slices.Equal(got, []string{"x"}) {
			t.Errorf("children %v", got)
		}
		if n, ok := k.Get(grove); !ok || string(n.Data) != "back" {
			t.Errorf("root %+v, %v", n, ok)
		}
	})
}

// TestChecklist08CacheReadsOnlyWhatChanged has 1,000 znodes. While the Cache is disconnected, three are
// set, one is created and one is deleted. The same is done with a session that expires meanwhile, and on a
// server without persistent watches.
func TestChecklist08CacheReadsOnlyWhatChanged(t *testing.T) {
	for _, expired := range []bool{false, true} {
		t.Run(fmt.Sprintf("expired=%v", expired), func(t *testing.T) {
			eachCache(t, func(t *testing.T, s *fakeServer, c *zk.Client, o *CacheOptions) {
				s.plant(1000, false)
				k := openCache(t, c, o)
				agree(t, s, k)
				for range 3 {
					before := s.readCount()
					s.setAway(true)
					if s.cut(c); expired {
						s.expire(c.Session().ID)
					}
					time.Sleep(time.Second)
					for _, i := range []int{7, 500, 999} {
						s.change(fmt.Sprintf("%s/n%04d", grove, i), fmt.Sprint(before))
					}
					s.put(fmt.Sprintf("%s/new%d", grove, before), "")
					s.delete(fmt.Sprintf("%s/n%04d", grove, before%400+8))
					if !k.Stale() {
						t.Error("not stale while away")
					}
					s.setAway(false)
					time.Sleep(10 * time.Second)
					agree(t, s, k)
					// Reads of the three znodes that were set, of the new znode and its children, and of the root's stat and children.
					if n := s.readCount() - before; n > 7 {
						t.Errorf("%d reads for five changes among 1,000 znodes", n)
					}
				}
			})
		})
	}
}

// TestCacheLooksAtItsRoot checks that after a reconnect the Cache reads its root only if the root was set,
// has another child, or was created again.
func TestCacheLooksAtItsRoot(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *fakeServer)
		reads  int // expected reads, without the read that checks the root
	}{
		"nothing":   {func(*fakeServer) {}, 0},
		"its data":  {func(s *fakeServer) { s.change(grove, "1") }, 1},
		"its names": {func(s *fakeServer) { s.delete(grove + "/n0000") }, 1},
		"it is gone": {func(s *fakeServer) {
			s.delete(grove + "/n0000")
			s.delete(grove)
		}, 0},
		"it is another": {func(s *fakeServer) {
			s.delete(grove + "/n0000")
			s.delete(grove)
			s.put(grove, "another")
		}, 2},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.plant(1, false)
				client := s.connect(zk.Options{})
				k := openCache(t, client, nil)
				agree(t, s, k)
				before := s.readCount()
				s.setAway(true)
				s.cut(client)
				c.change(s)
				s.setAway(false)
				time.Sleep(10 * time.Second)
				agree(t, s, k)
				if n := s.readCount() - before; n != 1+c.reads {
					t.Errorf("%d reads, want %d", n, 1+c.reads)
				}
			})
		})
	}
}

// TestCacheCostsOneEventAndOneRead checks the cost of a change.
func TestCacheCostsOneEventAndOneRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.plant(10, false)
		k := openCache(t, s.connect(zk.Options{}), nil)
		agree(t, s, k)
		events, reads := s.eventCount(), s.readCount()
		s.change(grove+"/n0003", "1")
		agree(t, s, k)
		s.delete(grove + "/n0004")
		agree(t, s, k)
		if e, r := s.eventCount()-events, s.readCount()-reads; e != 2 || r != 1 {
			t.Errorf("%d events and %d reads for a change and a deletion, want 2 and 1", e, r)
		}
	})
}

// readEvents takes events until the nth CacheCurrent.
func readEvents(t *testing.T, k *Cache, currents int, then func(n int)) []string {
	t.Helper()
	var out []string
	n := 0
	for e, err := range k.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != CacheCurrent {
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%v %s", e.Type, strings.TrimPrefix(e.Node.Path, grove)), " "))
			continue
		}
		if n++; n == currents {
			return out
		}
		then(n)
	}
	return out
}

// TestCacheEventsInOrder checks that Events yields the existing znodes and then each change. Parents come
// before children when they are added, and after them when they are removed.
func TestCacheEventsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.plant(2, true)
		c := s.connect(zk.Options{})
		k := openCache(t, c, nil)
		got := readEvents(t, k, 2, func(int) {
			s.setAway(true)
			s.cut(c)
			s.delete(grove + "/n0000/leaf")
			s.delete(grove + "/n0000")
			s.change(grove+"/n0001/leaf", "1")
			s.setAway(false)
		})
		want := []string{"added ", "added /n0000", "added /n0000/leaf", "added /n0001", "added /n0001/leaf"}
		if len(got) < 8 || !slices.Equal(got[:5], want) {
			t.Fatalf("events %q", got)
		}
		if i, j := slices.Index(got, "removed /n0000/leaf"), slices.Index(got, "removed /n0000"); i < 0 || j < i {
			t.Errorf("events %q: the child goes first", got)
		}
		if !slices.Contains(got, "changed /n0001/leaf") {
			t.Errorf("events %q", got)
		}
	})
}

// TestCacheReadersTakeTheirTime checks that all unread changes of a znode come as one event, also if all
// znodes are removed at once.
func TestCacheReadersTakeTheirTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		const nodes = 200
		s.plant(nodes, true)
		k := openCache(t, s.connect(zk.Options{}), nil)
		unread := func(do func(), last string) (got []string) {
			current := false
			for e, err := range k.Events(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprint(e.Type, " ", strings.TrimPrefix(e.Node.Path, grove))
				if current {
					got = append(got, what)
				}
				if what == last {
					break
				}
				if e.Type == CacheCurrent {
					current = true
					do()
				}
			}
			return got
		}
		got := unread(func() {
			for i := range 100 {
				s.change(grove+"/n0000", fmt.Sprint(i))
				s.put(grove+"/passing", "")
				synctest.Wait()
				s.delete(grove + "/passing")
				synctest.Wait()
			}
			s.put(grove+"/last", "")
			synctest.Wait()
		}, "added /last")
		if !slices.Equal(got, []string{"changed /n0000", "added /last"}) {
			t.Errorf("after 301 changes: %q", got)
		}
		got = unread(func() { s.clear(grove); synctest.Wait() }, "removed ")
		if len(got) != 2+2*nodes {
			t.Errorf("after the end of all: %d events, %q", len(got), got[:min(len(got), 12)])
		}
		agree(t, s, k)
	})
}

// TestCacheEventsEndWithTheirContext checks that Events ends with its context, also if there is always
// another event.
func TestCacheEventsEndWithTheirContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.plant(3, false)
		k := openCache(t, s.connect(zk.Options{}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for _, err := range k.Events(ctx) {
			if err != nil {
				if err != context.Canceled {
					t.Error(err)
				}
				break
			}
			if n++; n > 100 {
				t.Fatal("Events does not end with its context")
			}
			cancel()
			s.change(grove+"/n0001", fmt.Sprint(n)) // so there is always another event
			synctest.Wait()
		}
	})
}

// TestCacheSurvivesAStormThatOverflowsItsWatch checks that a Cache whose watch has overflowed asks for the
// changes that it missed.
func TestCacheSurvivesAStormThatOverflowsItsWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.plant(50, false)
		c := s.connect(zk.Options{StreamMax: 8})
		k := openCache(t, c, nil)
		for round := range 20 {
			for i := range 50 {
				s.change(fmt.Sprintf("%s/n%04d", grove, i), fmt.Sprint(round))
			}
		}
		time.Sleep(time.Minute)
		agree(t, s, k)
	})
}

// TestCacheIsBounded checks that a Cache that would exceed its limits ends with a *CacheFullError.
func TestCacheIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.plant(10, false)
		c := s.connect(zk.Options{})
		var full *CacheFullError
		if _, err := OpenCache(t.Context(), c, grove, &CacheOptions{NodesMax: 10}); !errors.As(err, &full) || full.NodesMax != 10 {
			t.Errorf("11 znodes in a cache for 10: %v", err)
		}
		k := openCache(t, c, &CacheOptions{BytesMax: 100})
		s.change(grove+"/n0005", strings.Repeat("x", 200))
		<-k.Done()
		if err := k.Err(); !errors.As(err, &full) || full.BytesMax != 100 || !k.Stale() {
			t.Errorf("ended by %v", err)
		}
	})
}

// TestCacheEnds checks that a Cache ends with Close and with its client, and that the
// caller's context ends OpenCache.
func TestCacheEnds(t *testing.T) {
	eachCache(t, func(t *testing.T, s *fakeServer, c *zk.Client, o *CacheOptions) {
		s.plant(1, false)
		k := openCache(t, c, o)
		k.Close()
		if err := k.Err(); !errors.Is(err, zk.ErrClosed) || k.Len() == 0 {
			t.Errorf("after Close: %v, %d znodes", err, k.Len())
		}
		k = openCache(t, c, o)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-k.Done()
		for _, err := range k.Events(t.Context()) {
			if err != nil && !errors.Is(err, zk.ErrClosed) {
				t.Errorf("events of a closed cache: %v", err)
			}
		}
		away := s.connect(zk.Options{})
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate { return swallow })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := OpenCache(ctx, away, grove, o); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("OpenCache that is given up: %v", err)
		}
	})
}

// TestCacheLeavesNoOneShotWatch checks that a Cache on a server without persistent watches leaves no watch
// when it ends: neither those of its reads nor those that were set again in a later session. Watches of
// others stay.
func TestCacheLeavesNoOneShotWatch(t *testing.T) {
	for _, expired := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpAddWatch || op == wire.OpSetWatches2 {
					return dropAll
				}
				return normal
			})
			s.plant(200, true)
			c := s.connect(zk.Options{})
			k := openCache(t, c, nil)
			none, err := OpenCache(t.Context(), c, "/none", nil)
			if err != nil {
				t.Fatal(err)
			}
			if expired {
				s.expire(c.Session().ID)
				time.Sleep(time.Second)
			}
			_, _, other, err := c.GetW(t.Context(), grove+"/n0001")
			if err != nil {
				t.Fatal(err)
			}
			s.change(grove+"/n0002", "1")
			agree(t, s, k)
			if n := s.oneShots(); n < 800 {
				t.Errorf("%d watches of 401 znodes", n)
			}
			k.Close()
			none.Close()
			if n := s.oneShots(); n != 1 {
				t.Errorf("expired %v: %d watches are left, want the other one", expired, n)
			}
			s.change(grove+"/n0001", "1")
			if _, err := other.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCachesShareNoOneShotWatch checks that of two Caches of one client one can be closed while the other
// continues, in whatever order they set their watches.
func TestCachesShareNoOneShotWatch(t *testing.T) {
	for _, expired := range []bool{false, true} {
		for _, closed := range []int{0, 1} {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.old = true
				s.plant(5, true)
				c := s.connect(zk.Options{})
				both := []*Cache{openCache(t, c, nil), openCache(t, c, nil)}
				if expired {
					s.expire(c.Session().ID)
					time.Sleep(time.Second)
				}
				both[closed].Close()
				s.change(grove+"/n0001", "1")
				s.put(grove+"/n0002/twig", "")
				agree(t, s, both[1-closed])
				both[1-closed].Close()
				synctest.Wait() // a server that does not know removeWatches ends the connection, and the client notices that
				if n := s.oneShots(); n != 0 {
					t.Errorf("%d watches are left", n)
				}
			})
		}
	}
}

// TestCacheMissesNothingWhileItLoads checks changes that are made while the connection or the session is
// lost during the first load.
func TestCacheMissesNothingWhileItLoads(t *testing.T) {
	for _, expired := range []bool{false, true} {
		eachCache(t, func(t *testing.T, s *fakeServer, c *zk.Client, o *CacheOptions) {
			s.plant(300, false)
			reads := 0
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpMultiRead || op == wire.OpGetData {
					if reads++; op == wire.OpMultiRead && reads == 3 || reads == 200 {
						s.setAway(true)
						return dropAll
					}
				}
				return normal
			})
			out := make(chan *Cache, 1)
			go func() {
				k, err := OpenCache(context.Background(), c, grove, o)
				if err != nil {
					t.Error(err)
				}
				out <- k
			}()
			time.Sleep(time.Second)
			s.change(grove+"/n0000", "1")
			s.delete(grove + "/n0001")
			s.put(grove+"/new", "")
			if expired {
				time.Sleep(15 * time.Second)
			}
			s.setAway(false)
			k := <-out
			t.Cleanup(k.Close)
			agree(t, s, k)
		})
	}
}

// awaitConnected waits until the client is connected.
func awaitConnected(ctx context.Context, c *zk.Client) error {
	for s := range c.States(ctx) {
		if err := c.Err(); err != nil {
			return err
		}
		if s.State == zk.Connected || s.State == zk.ReadOnly {
			return nil
		}
	}
	return ctx.Err()
}

// TestCacheReadsInTheSessionItKnows checks that a Cache reads only in the session that it knows. A later
// session may have a server that is behind, and begins with a sync.
func TestCacheReadsInTheSessionItKnows(t *testing.T) {
	eachCache(t, func(t *testing.T, s *fakeServer, c *zk.Client, o *CacheOptions) {
		s.plant(1, false)
		k := openCache(t, c, o)
		over := c.Session().ID + 1000 // not the session of the client
		for _, kind := range []claim.OpKind{claim.OpGet, claim.OpWatch, claim.OpWatchAll, claim.OpStat, claim.OpSync} {
			res := k.carryOut(t.Context(), claim.Request{Session: over, Ops: []claim.Op{{Kind: kind, Path: grove}}}).Results
			if !errors.Is(res[0].Err, wire.ErrSessionExpired) {
				t.Errorf("%v in another session: %v", kind, res[0].Err)
			}
		}
	})
}
