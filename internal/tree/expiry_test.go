package tree

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bellwether/wire"
)

// check returns an error for the first invariant of Expiry that does not hold.
func (e *Expiry) check() error {
	listed := 0
	for at, bucket := range e.buckets {
		if at < e.next || at%e.tick != 0 || len(bucket) == 0 {
			return fmt.Errorf("bucket %d with %d sessions, next is %d", at, len(bucket), e.next)
		}
		for id := range bucket {
			if d := e.sessions[id]; d == nil || d.at != at {
				return fmt.Errorf("session %v is in bucket %d, its deadline is %+v", id, at, d)
			}
			listed++
		}
	}
	if listed != len(e.sessions) {
		return fmt.Errorf("%d sessions in buckets, %d known", listed, len(e.sessions))
	}
	return nil
}

// TestExpiryMatchesModel compares an Expiry with a map of deadlines over random
// calls, and checks its invariants after each.
func TestExpiryMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tick = 100
		type session struct {
			timeout, deadline int64
			assumed           bool
		}
		e, model, now := NewExpiry(tick), map[wire.SessionID]session{}, int64(0)
		rounded := func(at int64) int64 { return (at/tick + 1) * tick }
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now += rapid.Int64Range(0, 150).Draw(t, "ms")
			id := wire.SessionID(rapid.IntRange(1, 8).Draw(t, "session"))
			s, known := model[id]
			if timeout, assumed := e.Timeout(id); int64(timeout) != s.timeout || assumed != s.assumed {
				t.Fatalf("timeout %d, assumed %v, want %+v", timeout, assumed, s)
			}
			switch rapid.IntRange(0, 3).Draw(t, "call") {
			case 0:
				timeout := rapid.Int64Range(0, 1000).Draw(t, "timeout")
				add, assumed := e.Add, rapid.Bool().Draw(t, "assumed")
				if assumed {
					add = e.Assume
				}
				add(id, int32(timeout), now)
				model[id] = session{timeout, rounded(now + timeout), assumed}
			case 1:
				heard := now - rapid.Int64Range(0, 200).Draw(t, "ago")
				if e.Touch(id, heard) != known {
					t.Fatalf("touched %v, known %v", id, known)
				}
				if known {
					model[id] = session{s.timeout, max(s.deadline, rounded(heard+s.timeout)), s.assumed}
				}
			case 2:
				e.Remove(id)
				delete(model, id)
			default:
				due := slices.DeleteFunc(slices.Collect(maps.Keys(model)), func(id wire.SessionID) bool { return model[id].deadline > now })
				slices.SortFunc(due, func(a, b wire.SessionID) int {
					if d := model[a].deadline - model[b].deadline; d != 0 {
						return int(d)
					}
					return int(a - b)
				})
				var want []Overdue
				for _, id := range due {
					want = append(want, Overdue{id, int32(model[id].timeout), model[id].assumed})
					delete(model, id)
				}
				if got := e.Due(now); !slices.Equal(got, want) {
					t.Fatalf("due %v, want %v", got, want)
				}
			}
			if err := e.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestShortestTick: ticks are 1 ms at least, and with ticks of 1 ms a session expires in the ms after its timeout.
func TestShortestTick(t *testing.T) {
	for _, tick := range []int64{-1, 0, 1} {
		e := NewExpiry(tick)
		e.Add(alice, 10, 100)
		if at := e.bucket(100, 10); at != 111 {
			t.Errorf("tick %d: expires at %d", tick, at)
		}
	}
}
