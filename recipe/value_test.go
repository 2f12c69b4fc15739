package recipe

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

const tally = "/app/tally"

// TestValueComparesAndSets checks that CompareAndSet replaces only the expected value, also if the znode does not
// exist yet.
func TestValueComparesAndSets(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		v := made(NewValue(s.connect(zk.Options{}), tally, &ValueOptions{Initial: []byte("none")}))
		if data, err := v.Get(t.Context()); err != nil || string(data) != "none" {
			t.Errorf("at first %q, %v", data, err)
		}
		for _, c := range []struct {
			old, data string
			want      bool
		}{{"some", "x", false}, {"none", "one", true}, {"none", "two", false}, {"one", "two", true}} {
			if ok, err := v.CompareAndSet(t.Context(), []byte(c.old), []byte(c.data)); ok != c.want || err != nil {
				t.Errorf("%s to %s: %v, %v", c.old, c.data, ok, err)
			}
		}
		if err := v.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.bids(tally)); n != 0 {
			t.Errorf("%d marks left over", n)
		}
		own := errors.New("no")
		if _, err := v.Update(t.Context(), func([]byte) ([]byte, error) { return nil, own }); !errors.Is(err, own) {
			t.Errorf("Update: %v", err)
		}
	})
}

// TestCounterCostsTwoRequests checks a counter that no other client changes: a read and a transaction.
func TestCounterCostsTwoRequests(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		n := made(NewCounter(s.connect(zk.Options{}), tally, nil))
		for i := range 3 {
			before := s.asked()
			if sum, err := n.Add(t.Context(), 5); err != nil || sum != int64(5*i+5) {
				t.Errorf("sum %d, %v", sum, err)
			}
			if got := s.asked() - before; i > 0 && got != 2 {
				t.Errorf("%d requests", got)
			}
		}
	})
}

// TestCounterLosesNothing lets many clients add at the same time. Every third transaction loses its
// answer, whether it was carried out or not.
func TestCounterLosesNothing(t *testing.T) {
	for _, f := range []fate{normal, dropReply, dropAll} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			multis := 0
			var mu sync.Mutex
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				mu.Lock()
				defer mu.Unlock()
				if op == wire.OpMulti {
					if multis++; multis%3 == 0 {
						return f
					}
				}
				return normal
			})
			var all sync.WaitGroup
			for range 4 {
				c := s.connect(zk.Options{})
				all.Go(func() {
					n := made(NewCounter(c, tally, nil))
					for range 10 {
						if _, err := n.Add(t.Context(), 1); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if data, _, _ := s.node(tally); data != "40" {
				t.Errorf("fate %d: counted %s, want 40", f, data)
			}
		})
	}
}

// TestCounterSaysWhenItCannotKnow loses the reply to a change and ends the session. If the number does not show
// whether the change was carried out, Add returns an UnknownOutcomeError. Nothing is counted twice.
func TestCounterSaysWhenItCannotKnow(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			c := s.connect(zk.Options{})
			n := made(NewCounter(c, tally, nil))
			if _, err := n.Add(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			once := true
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpMulti && once {
					once = false
					s.setAway(true)
					time.AfterFunc(time.Second, func() { s.expire(c.Session().ID); s.setAway(false) })
					return f
				}
				return normal
			})
			_, err := n.Add(t.Context(), 1)
			var lost *zk.UnknownOutcomeError
			data, _, _ := s.node(tally)
			if f == dropReply && !(errors.As(err, &lost) && errors.Is(err, zk.ErrSessionExpired)) || f == dropAll && err != nil || data != "2" {
				t.Errorf("fate %d: %v, counted %s", f, err, data)
			}
		})
	}
}

// TestCounterPastTheLastVersion (CURATOR-688) lets the version of the znode wrap around. Adding goes on,
// and never uses -1, which as a condition would match any version.
func TestCounterPastTheLastVersion(t *testing.T) {
	for _, start := range []int32{math.MaxInt32 - 1, -3} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			s.put("/app", "")
			s.put(tally, "0")
			s.version(tally, start)
			a, b := made(NewCounter(s.connect(zk.Options{}), tally, nil)), made(NewCounter(s.connect(zk.Options{}), tally, nil))
			for range 3 {
				for _, n := range []*Counter{a, b} {
					if _, err := n.Add(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
					if _, stat, err := n.v.b.c.Get(t.Context(), tally); err != nil || stat.Version == -1 {
						t.Fatalf("version %d, %v", stat.Version, err)
					}
				}
			}
			if data, _, _ := s.node(tally); data != "6" {
				t.Errorf("counted %s", data)
			}
			s.version(tally, -1)
			if _, err := a.Add(t.Context(), 1); err == nil {
				t.Error("counted on a version that cannot be compared")
			}
		})
	}
}

func (s *fakeServer) version(name string, v int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[name].stat.Version = v
}

// TestCounterFormats checks the formats of the other libraries.
func TestCounterFormats(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		for f, want := range map[CounterFormat]string{DecimalCounter: "-2", BinaryCounter: "\xff\xff\xff\xff\xff\xff\xff\xfe"} {
			path := fmt.Sprintf("/counter%d", f)
			n := made(NewCounter(c, path, &CounterOptions{Format: f}))
			if sum, err := n.Add(t.Context(), -2); sum != -2 || err != nil {
				t.Errorf("sum %d, %v", sum, err)
			}
			if data, _, _ := s.node(path); data != want {
				t.Errorf("format %d holds %q", f, data)
			}
			if _, err := n.Add(t.Context(), math.MinInt64); !errors.Is(err, ErrCounterRange) {
				t.Errorf("below the range: %v", err)
			}
			if _, err := n.Add(t.Context(), math.MaxInt64); err != nil {
				t.Error(err)
			}
			if _, err := n.Add(t.Context(), 3); !errors.Is(err, ErrCounterRange) {
				t.Errorf("above the range: %v", err)
			}
			s.change(path, "abc")
			if _, err := n.Get(t.Context()); err == nil {
				t.Error("abc is a number")
			}
		}
	})
}

// TestIDsAreGivenOutOnce checks many concurrent calls, with one transaction for each block, also if that
// transaction loses its answer.
func TestIDsAreGivenOutOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		multis := 0
		var mu sync.Mutex
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			mu.Lock()
			defer mu.Unlock()
			if op == wire.OpMulti {
				if multis++; multis%2 == 0 {
					return dropReply
				}
			}
			return normal
		})
		seen := map[int64]bool{}
		var all sync.WaitGroup
		for range 3 {
			d, err := NewIDs(s.connect(zk.Options{}), "/ids", &IDsOptions{Block: 10})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				all.Go(func() {
					for range 25 {
						id, err := d.Next(t.Context())
						mu.Lock()
						if err != nil || id < 1 || seen[id] {
							t.Errorf("id %d again (%v), %v", id, seen[id], err)
						}
						seen[id] = true
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		data, _, _ := s.node("/ids")
		if n, err := strconv.Atoi(data); err != nil || n != 150 {
			t.Errorf("reserved %s for 150 ids", data)
		}
	})
}

// TestIDsPassOverABlock checks that a block stays unused if its answer is lost and the session has ended,
// so that it is unknown whether the block was reserved.
func TestIDsPassOverABlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		d := made(NewIDs(c, "/ids", &IDsOptions{Block: 10}))
		once := true
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpMulti && once {
				once = false
				s.setAway(true)
				time.AfterFunc(time.Second, func() { s.expire(c.Session().ID); s.setAway(false) })
				return dropReply
			}
			return normal
		})
		for _, want := range []int64{11, 12} {
			if id, err := d.Next(t.Context()); err != nil || id != want {
				t.Errorf("id %d, %v, want %d", id, err, want)
			}
		}
		if data, _, _ := s.node("/ids"); data != "20" {
			t.Errorf("reserved up to %s", data)
		}
	})
}
