package recipe

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"

	"bellwether/wire"
	"bellwether/zk"
)

// Costs of recipes whose clients share values, members and parts, with 10, 100 and 1,000 participants.

// costsAtMost is like costs, but with upper bounds.
func (s *fakeServer) costsAtMost(what string, events, requests int, do func()) {
	s.t.Helper()
	e, r := s.eventCount(), s.asked()
	do()
	synctest.Wait()
	e, r = s.eventCount()-e, s.asked()-r
	if e > events || r > requests {
		s.t.Errorf("%s: %d events and %d requests, want %d and %d at most", what, e, r, events, requests)
	}
}

// TestMultiLockWakesOne checks that a release wakes one of the waiting clients, however many there are,
// because all wait in the line of the first lock. That client may get the first lock before the other
// locks are released; it then waits once for each of them.
func TestMultiLockWakesOne(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		paths := []string{"/app/x", "/app/y", "/app/z"}
		h, err := s.several(paths...).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var line []<-chan heldAll
		for range n {
			line = append(line, lockAllLater(t.Context(), s.several(paths...)))
		}
		// Three deletes; a read by the client that was woken; its bids for the other two locks, each with a read;
		// if it has to wait, a watch and a read.
		for i, next := range line {
			s.costsAtMost(fmt.Sprint("release ", i), 3, 3+1+2*(2+2), func() {
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
				got := <-next
				if h = got.h; got.err != nil {
					t.Fatal(got.err)
				}
			})
			if t.Failed() {
				return
			}
		}
	})
}

// TestValuesCost checks that a change costs two requests and no events.
func TestValuesCost(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		var counters []*Counter
		for range n {
			c := made(NewCounter(s.connect(zk.Options{}), "/app/hits", nil))
			counters = append(counters, c)
			if _, err := c.Add(t.Context(), 1); err != nil { // the first change also creates the mark
				t.Fatal(err)
			}
		}
		s.costs("each adds", 0, 2*n, func() {
			for i, c := range counters {
				if sum, err := c.Add(t.Context(), 1); sum != int64(n+i+1) || err != nil {
					t.Fatalf("sum %d, %v", sum, err)
				}
			}
		})
		s.costs("a session's mark goes", 0, 1, func() { _ = counters[0].Close(t.Context()) })
		ids := made(NewIDs(s.connect(zk.Options{}), "/app/ids", &IDsOptions{Block: n}))
		take := func() {
			for range n {
				if _, err := ids.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		take()
		s.costs("ids of one block", 0, 2, take)
	})
}

// TestRegistrationsCost checks that the deletion of a registration costs requests only of its owner.
func TestRegistrationsCost(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		for i := range n {
			r, err := Register(t.Context(), s.connect(zk.Options{}), fmt.Sprint("/app/r", i), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.cancel(); <-r.done })
		}
		synctest.Wait()
		s.costs("one is deleted", 1, 4, func() { s.delete("/app/r3") })
	})
}

// TestDiscoveryCosts checks that a change costs each client that looks for the service one event, and one
// read if an instance was added.
func TestDiscoveryCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		for range n {
			p, err := made(NewDiscovery(s.connect(zk.Options{}), "/app/services", nil)).Provider(t.Context(), "web", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
		}
		d := made(NewDiscovery(s.connect(zk.Options{}), "/app/services", nil))
		var r *Registration
		come := func() {
			var err error
			if r, err = d.Register(t.Context(), Instance{Name: "web", ID: "a", Address: "a.example", Port: 80}); err != nil {
				t.Fatal(err)
			}
		}
		come() // also creates the missing parents
		_ = r.Close(t.Context())
		synctest.Wait()
		s.costs("an instance comes", n, n+2, come)
		s.costs("it leaves", n+1, 3, func() { _ = r.Close(t.Context()) }) // one of the events goes to the instance itself
	})
}

// TestConfigCosts checks that a change costs each member one event and one read.
func TestConfigCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		h := campaign(t, s.elect("a", nil))
		for range n {
			c := s.connect(zk.Options{})
			go func() {
				for _, err := range WatchConfig(t.Context(), c, "/app/config", nil) {
					if err != nil {
						return
					}
				}
			}()
		}
		publish := func() {
			if err := PublishConfig(t.Context(), h, "/app/config", []byte("x"), nil); err != nil {
				t.Error(err)
			}
		}
		publish()
		synctest.Wait()
		s.costs("a leader publishes", n, n+2, publish)
	})
}

// joinAll connects n clients, m0 and so on, and makes all of them members at the same time. If they joined one
// after the other, each would receive an event for every later one: half a million events.
func (s *fakeServer) joinAll(parent string, n int) (all []*zk.Client) {
	for _, path := range []string{"/app", parent, parent + "/members"} {
		s.put(path, "")
	}
	for i := range n {
		c := s.connect(zk.Options{})
		s.mu.Lock()
		s.zxid++
		_, code := s.create(&peer{session: c.Session().ID}, &wire.CreateRequest{Path: fmt.Sprint(parent, "/members/m", i), Flags: wire.FlagEphemeral})
		s.mu.Unlock()
		if code != wire.OK {
			s.t.Fatal(code)
		}
		all = append(all, c)
	}
	return all
}

// TestPartitionerCosts checks that a change costs as much as in a group, and an election for each part
// that moves.
func TestPartitionerCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		var parts []string
		for i := range 10 {
			parts = append(parts, fmt.Sprint("p", i))
		}
		o := &owners{t: t, of: map[string]string{}}
		all := map[string]runningMember{}
		for i, c := range s.joinAll("/app/shares", n) {
			id := fmt.Sprint("m", i)
			all[id] = partitionBy(t, c, o, id, parts)
		}
		synctest.Wait()
		for i := range 3 {
			before := o.owned()
			moved := 0
			m := all[before[parts[i]]]
			events, asked := s.eventCount(), s.asked()
			m.stop()
			<-m.done
			synctest.Wait()
			for part, id := range o.owned() {
				if before[part] != id {
					moved++
				}
			}
			e, r := s.eventCount()-events, s.asked()-asked
			if moved == 0 || e > n-i+moved || r > 4+10*moved {
				t.Errorf("a member leaves, %d parts move: %d events and %d requests", moved, e, r)
			}
		}
	})
}

// owned returns which member owns which part.
func (o *owners) owned() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.of)
}

// TestWorkCosts checks that a task costs each member two events and one read. The member that does it also
// makes a bid in the election of the task.
func TestWorkCosts(t *testing.T) {
	eachSize(t, func(t *testing.T, s *fakeServer, n int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		did := make(chan string, 1)
		for i, c := range s.joinAll("/app/work", n) {
			w := made(NewWork(c, "/app/work", nil))
			go func() {
				_ = w.Run(ctx, fmt.Sprint("m", i), func(_ context.Context, task Task, _ *Handle) error {
					did <- task.ID
					return nil
				})
			}()
		}
		synctest.Wait()
		boss := made(NewWork(s.connect(zk.Options{}), "/app/work", nil))
		submit := func() {
			if err := boss.Submit(t.Context(), "t", nil); err != nil {
				t.Fatal(err)
			}
			<-did
		}
		submit() // also creates the missing parents
		synctest.Wait()
		s.costsAtMost("a task", 2*n, n+10, submit)
	})
}
