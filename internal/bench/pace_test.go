package bench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenLoopCountsFromDue shows that operations which wait because an earlier one is slow
// have latencies that include the wait, that the load does not slow down with the server, and
// that a closed loop would hide the wait.
func TestOpenLoopCountsFromDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p := oneWorker(t, 10, 10*time.Second, func(i int) {
			if i == 20 {
				time.Sleep(4 * time.Second)
			}
		})
		if n := b.whole.h.TotalCount(); n != 100 || p.unsent != 0 {
			t.Errorf("%d operations, %d unsent", n, p.unsent)
		}
		// The slow operation and the 40 that were due meanwhile waited for 2 s on average.
		slow := 0
		for _, bar := range b.whole.h.Distribution() {
			if time.Duration(bar.From) > 50*time.Millisecond {
				slow += int(bar.Count)
			}
		}
		if slow != 40 {
			t.Errorf("%d operations were slow, want 40", slow)
		}
		if p.lateness() > time.Millisecond {
			t.Errorf("timers were late by %v", p.lateness())
		}
		closed, _ := oneWorker(t, 0, 10*time.Second, func(i int) {
			if time.Sleep(100 * time.Millisecond); i == 20 {
				time.Sleep(4 * time.Second)
			}
		})
		if closed.whole.at(95) > time.Second {
			t.Error("the closed loop has several slow operations")
		}
	})
}

// TestUnsentOperations shows that operations that were never sent are counted, and count as
// slow.
func TestUnsentOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, p := oneWorker(t, 100, time.Second, func(int) { time.Sleep(100 * time.Millisecond) })
		if n := b.whole.h.TotalCount(); n != 100 || p.unsent < 75 || p.unsent > 85 {
			t.Errorf("%d operations, %d unsent", n, p.unsent)
		}
		if b.whole.at(50) < time.Second {
			t.Errorf("median %v", b.whole.at(50))
		}
	})
}

// TestPaceEndsWithContext shows that a worker which waits for its operation ends with the
// context.
func TestPaceEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		p := newPace(1, time.Hour, time.Now())
		taken := 0
		for ; ; taken++ {
			if _, ok := p.take(ctx); !ok {
				break
			}
		}
		if taken != 2 {
			t.Errorf("%d operations in 1.5 s", taken)
		}
	})
}

// oneWorker lets one worker carry out operations at a pace.
func oneWorker(t *testing.T, rate int, d time.Duration, operate func(i int)) (*book, *pace) {
	b, p := newBook(0), newPace(rate, d, time.Now())
	for i := 0; ; i++ {
		due, ok := p.take(t.Context())
		if !ok {
			break
		}
		operate(i)
		b.whole.record(time.Since(due))
	}
	p.settle(b)
	return b, p
}
