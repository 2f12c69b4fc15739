package schedule

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// runs makes the runs of some seeds: start starts goroutines, and check looks at the end.
func runs(t *testing.T, seeds uint64, start func(), check func(s *Schedule)) {
	t.Helper()
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			s := Begin(seed, false)
			defer s.End()
			start()
			if !s.Run(time.Minute) {
				t.Fatalf("seed %d: a run does not end: %v", seed, s.Waiting())
			}
			check(s)
		})
	}
}

// TestLostUpdateIsFound: of two goroutines that each read a number and store the next one,
// some seeds let one overwrite the other's result. With a lock, none does.
func TestLostUpdateIsFound(t *testing.T) {
	var n Int64
	var mu Mutex
	found := map[int64]int{}
	for _, locked := range []bool{false, true} {
		increase := func() {
			if locked {
				mu.Lock()
				defer mu.Unlock()
			}
			n.Store(n.Load() + 1)
		}
		clear(found)
		runs(t, 50, func() {
			n.number.v = 0
			Go("one", increase)
			Go("two", increase)
		}, func(*Schedule) { found[n.number.v]++ })
		if lost := found[1]; locked && lost > 0 || !locked && (lost == 0 || found[2] == 0) {
			t.Errorf("locked %v: results %v", locked, found)
		}
	}
}

// TestMissedSignalIsFound: a goroutine that checks a condition before it waits for a
// channel misses a signal that is sent in between, in some orders.
func TestMissedSignalIsFound(t *testing.T) {
	missed := 0
	var set Bool
	runs(t, 400, func() {
		set.v.Store(false)
		signal := make(chan struct{})
		Go("waits", func() {
			if set.Load() {
				return
			}
			Point("channel")
			select {
			case <-signal:
			case <-time.After(time.Second):
				missed++
			}
		})
		Go("signals", func() {
			set.Store(true)
			Point("channel")
			select {
			case signal <- struct{}{}:
			default:
			}
		})
	}, func(*Schedule) {})
	if missed == 0 || missed == 400 {
		t.Errorf("the signal is missed in %d of 400 orders", missed)
	}
}

// TestSeedRepeats: a seed gives the same order each time, and different seeds give
// different orders.
func TestSeedRepeats(t *testing.T) {
	digests := map[uint64]int{}
	for range 2 {
		var group WaitGroup
		var once Once
		runs(t, 20, func() {
			Go("starts", func() {
				for range 3 {
					group.Go(func() { once.Do(func() { Point("once") }) })
				}
				group.Wait()
			})
		}, func(s *Schedule) { digests[s.Digest()]++ })
	}
	for digest, n := range digests {
		if n%2 != 0 {
			t.Errorf("the order %x occurs %d times in two runs of each seed", digest, n)
		}
	}
	if len(digests) < 5 {
		t.Errorf("20 seeds give %d orders", len(digests))
	}
}

// TestSelectFollowsTheSeed: if several cases of a select are ready, the seed decides which
// one is taken.
func TestSelectFollowsTheSeed(t *testing.T) {
	var taken [2]string
	for i := range taken {
		runs(t, 40, func() {
			a, b := make(chan struct{}, 1), make(chan struct{})
			Go("selects", func() {
				a <- struct{}{}
				Close(b)
				Select(a, b)
				select {
				case <-Only(0, a):
					taken[i] += "a"
				case <-Only(1, b):
					taken[i] += "b"
				}
			})
		}, func(*Schedule) {})
	}
	if taken[0] != taken[1] || !strings.Contains(taken[0], "a") || !strings.Contains(taken[0], "b") {
		t.Errorf("taken: %v", taken)
	}
}

// TestWaitForEverIsReported: goroutines that wait for each other end the run, which says
// for what they wait. Here a reader takes a lock twice, and a writer comes in between.
func TestWaitForEverIsReported(t *testing.T) {
	waits := 0
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			s := Begin(seed, false)
			defer s.End()
			var mu RWMutex
			Go("reader", func() {
				mu.RLock()
				defer mu.RUnlock()
				mu.RLock()
				defer mu.RUnlock()
			})
			Go("writer", func() {
				mu.Lock()
				defer mu.Unlock()
				Point("writes")
			})
			if s.Run(time.Second) {
				return
			}
			if waits++; len(s.Waiting()) != 2 {
				t.Errorf("these wait: %v", s.Waiting())
			}
			mu.writers = 0 // lets the reader go on
			if !s.Run(time.Minute) {
				t.Fatal("the run does not end")
			}
		})
	}
	if waits == 0 || waits == 400 {
		t.Errorf("the goroutines wait for each other in %d of 400 orders", waits)
	}
}

// TestTimePassesOnlyWhenNothingElseCan: a timer fires only when no goroutine can go on.
func TestTimePassesOnlyWhenNothingElseCan(t *testing.T) {
	late := false
	var n Int32
	runs(t, 20, func() {
		n.number.v = 0
		Go("sleeps", func() {
			time.Sleep(time.Millisecond)
			late = late || n.Load() < 100
		})
		Go("works", func() {
			for range 100 {
				n.Add(1)
			}
		})
	}, func(*Schedule) {})
	if late {
		t.Error("a timer fired before the other goroutine had ended")
	}
}

// TestWithoutSchedule: without a Schedule a lock can be taken, but not waited for.
func TestWithoutSchedule(t *testing.T) {
	var mu Mutex
	mu.Lock()
	if mu.TryLock() {
		t.Error("a lock was taken twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("a wait without a Schedule is not reported")
		}
	}()
	mu.Lock()
}
