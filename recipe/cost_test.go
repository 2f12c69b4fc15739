package recipe

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// These tests count at the server what recipes cost with 10, 100 and 1,000 participants. The costs of
// locks, semaphores and queues are counted in their own tests. docs/recipes.md has a table of all.

// sizes are the numbers of participants.
func sizes() []int {
	if raceDetector {
		return []int{10, 100}
	}
	return []int{10, 100, 1000}
}

// eachSize runs a test with each number of participants.
func eachSize(t *testing.T, test func(t *testing.T, s *fakeServer, n int)) {
	for _, n := range sizes() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) { test(t, s, n) })
		})
	}
}

// costs fails the test unless the function do causes exactly this many events and requests.
// Pings do not count.
func (s *fakeServer) costs(what string, events, requests int, do func()) {
	s.t.Helper()
	e, r := s.eventCount(), s.asked()
	do()
	synctest.Wait()
	e, r = s.eventCount()-e, s.asked()-r
	if e != events || r != requests {
		s.t.Errorf("%s: %d events and %d requests, want %d and %d", what, e, r, events, requests)
	}
}

// TestElectionWakesOne checks that each departure wakes one candidate. The departure of a leader costs
// three requests: the delete of its bid and of LEADER, a read by the next leader, and the new LEADER. That
// of a candidate in the middle costs four: the removal of its watch and of its bid, a read and the next
// watch. A leader that departs before it was published costs two: its delete and the read.
func TestElectionWakesOne(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		leader := s.elect("0", nil)
		campaign(t, leader)
		var line []*Election
		var waiting []<-chan later
		for i := range n {
			line = append(line, s.elect(fmt.Sprint(i+1), nil))
			waiting = append(waiting, campaignLater(t.Context(), line[i]))
		}
		s.costs("one in the middle resigns", 1, 4, func() { _ = line[n/2].Resign(t.Context()) })
		for i, next := range line {
			if i == n/2 {
				continue
			}
			requests := 2 + i%2
			s.costs(fmt.Sprint("departure ", i), 1, requests, func() {
				_ = leader.Resign(t.Context())
				won(t, waiting[i])
				time.Sleep(time.Duration(i%2) * 2 * time.Millisecond) // until LEADER is created
			})
			if leader = next; t.Failed() {
				return
			}
		}
	})
}

// TestReadersAndWritersCost checks that a departure costs one event for each client that waited for it,
// and none if nobody waited.
func TestReadersAndWritersCost(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		writer := acquire(t, s.readWrite(nil).Lock)
		var readers []<-chan held
		for range n {
			readers = append(readers, acquireLater(t.Context(), s.readWrite(nil).RLock))
		}
		behind := acquireLater(t.Context(), s.readWrite(nil).Lock)
		s.costs("the writer leaves, for readers", n, 1+n, func() { release(t, writer) })
		s.costs("the others of the readers leave", 0, n-1, func() {
			for _, r := range readers[:n-1] {
				h := <-r
				release(t, h.h)
			}
		})
		s.costs("the reader before a writer leaves", 1, 2, func() { release(t, got(t, readers[n-1])) })
		got(t, behind)
	})
}

// TestBarrierCosts checks that opening a barrier costs each waiting client one event, a sync and a read.
func TestBarrierCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		a, err := NewBarrier(s.connect(zk.Options{}), gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var outs []<-chan error
		for range n {
			b, _ := NewBarrier(s.connect(zk.Options{}), gate, nil)
			outs = append(outs, after(func() error { return b.Wait(context.Background()) }))
		}
		s.costs("the barrier opens", n, 1+2*n, func() {
			if err := a.Open(t.Context()); err != nil {
				t.Error(err)
			}
			for _, out := range outs {
				returned(t, out)
			}
		})
	})
}

// TestDoubleBarrierCosts checks that entering costs n-1 events and leaving at most 2(n-1), and that the
// requests of a member do not grow with the number of members.
func TestDoubleBarrierCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		var members []*DoubleBarrier
		for range n {
			members = append(members, s.double(n, nil))
		}
		round := func(what string, most int, step func(*DoubleBarrier) error) {
			events, asked := s.eventCount(), s.asked()
			var outs []<-chan error
			for _, m := range members {
				outs = append(outs, after(func() error { return step(m) }))
			}
			for _, out := range outs {
				returned(t, out)
			}
			e, r := s.eventCount()-events, s.asked()-asked
			t.Logf("%s, %d: %d events, %.1f requests each", what, n, e, float64(r)/float64(n))
			if e > most || r > 10*n {
				t.Errorf("%s: %d events, %d requests of %d", what, e, r, n)
			}
		}
		round("to begin", n-1, func(m *DoubleBarrier) error { return m.Enter(context.Background()) })
		round("to end", 2*(n-1), func(m *DoubleBarrier) error { return m.Leave(context.Background()) })
	})
}

// TestGroupCosts checks that a change costs one event for each watcher, and one read if a member has
// joined.
func TestGroupCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		s.put("/app", "")
		s.put(groupPath, "")
		for range n {
			g := made(NewGroup(s.connect(zk.Options{}), groupPath, nil))
			go func() {
				for _, err := range g.Watch(t.Context()) {
					if err != nil {
						return
					}
				}
			}()
		}
		synctest.Wait()
		events, reads := s.eventCount(), s.readCount()
		a := join(t, s, "a", nil)
		synctest.Wait()
		if e, r := s.eventCount()-events, s.readCount()-reads; e != n || r != n+1 { // the member reads itself
			t.Errorf("%d events and %d reads for a member that came", e, r)
		}
		events, reads = s.eventCount(), s.readCount()
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if e, r := s.eventCount()-events, s.readCount()-reads; e != n+1 || r != 1 {
			t.Errorf("%d events and %d reads for a member that left", e, r)
		}
	})
}
