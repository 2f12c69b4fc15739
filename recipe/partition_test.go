package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// owners records which member owns which part. It fails the test if a part has two owners.
type owners struct {
	t  *testing.T
	mu sync.Mutex
	of map[string]string
}

// own returns a function for Run. The function owns its part until its context ends.
func (o *owners) own(id string) func(context.Context, string, *Handle) error {
	return func(ctx context.Context, part string, h *Handle) error {
		o.mu.Lock()
		if other := o.of[part]; other != "" {
			o.t.Errorf("%s belongs to %s and %s", part, other, id)
		}
		o.of[part] = id
		o.mu.Unlock()
		<-ctx.Done()
		o.mu.Lock()
		delete(o.of, part)
		o.mu.Unlock()
		return ctx.Err()
	}
}

// check fails the test unless all n parts are owned and no member has more than its even share.
func (o *owners) check(n int, members ...string) {
	o.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	load := map[string]int{}
	for part, id := range o.of {
		if !slices.Contains(members, id) {
			o.t.Errorf("%s belongs to %s", part, id)
		}
		load[id]++
	}
	if len(o.of) != n {
		o.t.Errorf("%d of %d parts have an owner: %v", len(o.of), n, o.of)
	}
	for id, k := range load {
		if k > (n+len(members)-1)/len(members) {
			o.t.Errorf("%s has %d of %d parts among %d", id, k, n, len(members))
		}
	}
}

type runningMember struct {
	c    *zk.Client
	stop context.CancelFunc
	done chan error
}

func partition(t *testing.T, s *fakeServer, o *owners, id string, parts []string) runningMember {
	t.Helper()
	return partitionBy(t, s.connect(zk.Options{}), o, id, parts)
}

func partitionBy(t *testing.T, c *zk.Client, o *owners, id string, parts []string) runningMember {
	t.Helper()
	m := runningMember{c: c, done: make(chan error, 1)}
	p, err := NewPartitioner(m.c, "/app/shares", id, parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.stop = cancel
	go func() { m.done <- p.Run(ctx, o.own(id)) }()
	return m
}

// TestPartitionerSharesWithoutOverlap lets members come, leave, and lose their sessions. All parts find an
// owner again, and none ever has two.
func TestPartitionerSharesWithoutOverlap(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		var parts []string
		for i := range 12 {
			parts = append(parts, fmt.Sprint("p", i))
		}
		o := &owners{t: t, of: map[string]string{}}
		a := partition(t, s, o, "a", parts)
		time.Sleep(time.Minute)
		o.check(12, "a")
		b := partition(t, s, o, "b", parts)
		c := partition(t, s, o, "c", parts)
		time.Sleep(time.Minute)
		o.check(12, "a", "b", "c")
		s.cut(a.c)
		time.Sleep(time.Minute)
		o.check(12, "a", "b", "c")
		s.setAway(true)
		for _, m := range []runningMember{a, b, c} {
			s.cut(m.c)
		}
		time.Sleep(15 * time.Second) // all sessions expire
		o.check(0)
		s.setAway(false)
		time.Sleep(time.Minute)
		o.check(12, "a", "b", "c")
		b.stop()
		if err := <-b.done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		time.Sleep(time.Minute)
		o.check(12, "a", "c")
		for _, m := range []runningMember{a, c} {
			m.stop()
			<-m.done
		}
		o.check(0)
		if left := s.bids("/app/shares/members"); len(left) != 0 {
			t.Errorf("members left over: %v", left)
		}
	})
}

// TestPartitionerEndsWithItsFunction also checks that invalid names are refused.
func TestPartitionerEndsWithItsFunction(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		p, err := NewPartitioner(c, "/app/shares", "a", []string{"x", "y"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		err = p.Run(t.Context(), func(ctx context.Context, part string, _ *Handle) error {
			if part == "x" {
				return broken
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, broken) {
			t.Errorf("Run: %v", err)
		}
		if _, err := NewPartitioner(c, "/app/shares", "a", []string{"x/y"}, nil); err == nil {
			t.Error("a part x/y")
		}
	})
}

// TestPartitionerWhoseOwnersFailTogether checks that Run returns the error of its functions if all of them fail
// at the same time, while the client has no connection.
func TestPartitionerWhoseOwnersFailTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		var parts []string
		for i := range 50 {
			parts = append(parts, fmt.Sprint("p", i))
		}
		p := made(NewPartitioner(c, "/app/shares", "a", parts, nil))
		broken := errors.New("broken")
		go func() {
			time.Sleep(time.Minute)
			s.setAway(true)
			s.cut(c)
		}()
		err := p.Run(t.Context(), func(context.Context, string, *Handle) error {
			time.Sleep(time.Minute + time.Second)
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestWorkIsDoneOnce has three members and 30 tasks. One member dies during a task, which another member
// begins again. Each task is finished once.
func TestWorkIsDoneOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		w := made(NewWork(s.connect(zk.Options{}), "/app/work", nil))
		for i := range 30 {
			if err := w.Submit(t.Context(), fmt.Sprint("t", i), []byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Submit(t.Context(), "t0", nil); !errors.Is(err, zk.ErrNodeExists) {
			t.Errorf("submitted again: %v", err)
		}
		var mu sync.Mutex
		finished, doing := map[string]int{}, map[string]bool{}
		for _, id := range []string{"a", "b", "c"} {
			c := s.connect(zk.Options{})
			died := false
			go func() {
				_ = made(NewWork(c, "/app/work", nil)).Run(t.Context(), id, func(ctx context.Context, task Task, _ *Handle) error {
					mu.Lock()
					if doing[task.ID] {
						t.Errorf("%s is done by two", task.ID)
					}
					doing[task.ID] = true
					die := id == "b" && !died && len(finished) > 5
					mu.Unlock()
					defer func() { mu.Lock(); delete(doing, task.ID); mu.Unlock() }()
					if die {
						died = true
						go c.Close(context.Background())
						<-ctx.Done()
						return ctx.Err()
					}
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
						return ctx.Err()
					}
					mu.Lock()
					finished[task.ID]++
					mu.Unlock()
					return nil
				})
			}()
		}
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(finished) != 30 || len(s.bids("/app/work/tasks")) != 0 {
			t.Errorf("%d tasks finished, left over: %v", len(finished), s.bids("/app/work/tasks"))
		}
		if left := s.bids("/app/work/parts"); len(left) > 1 { // the closed member may leave one election behind
			t.Errorf("elections left over: %v", left)
		}
		for id, n := range finished {
			if n != 1 {
				t.Errorf("%s was finished %d times", id, n)
			}
		}
	})
}

// TestTaskThatIsReplaced replaces a task while a member does it, and the member learns of both changes at
// once. The member must stop, and the new task must be done.
func TestTaskThatIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		w := made(NewWork(c, "/app/work", nil))
		if err := w.Submit(t.Context(), "job", []byte("old")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		var done []string
		go func() {
			ended <- w.Run(ctx, "a", func(ctx context.Context, task Task, _ *Handle) error {
				if done = append(done, string(task.Data)); string(task.Data) == "old" {
					<-ctx.Done()
				}
				return ctx.Err()
			})
		}()
		synctest.Wait()
		s.setAway(true)
		s.cut(c)
		s.delete("/app/work/tasks/job")
		s.put("/app/work/tasks/job", "new")
		s.setAway(false)
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if left := s.bids("/app/work/tasks"); len(left) > 0 || !slices.Equal(done, []string{"old", "new"}) {
			t.Errorf("done: %q, left: %v", done, left)
		}
	})
}

// TestTaskIsDoneOnlyWithoutError checks that an error of do is never taken for a result about the znode of
// the task, whatever it wraps.
func TestTaskIsDoneOnlyWithoutError(t *testing.T) {
	for _, failure := range []error{Stop(&zk.UnknownOutcomeError{Err: context.DeadlineExceeded}), zk.ErrNoNode, ErrNotLeader} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			w := made(NewWork(s.connect(zk.Options{}), "/app/work", nil))
			if err := w.Submit(t.Context(), "job", nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := w.Run(ctx, "a", func(context.Context, Task, *Handle) error { return fmt.Errorf("not done: %w", failure) })
			if !errors.Is(err, failure) {
				t.Errorf("%v: Run ended with %v", failure, err)
			}
			if _, _, ok := s.node("/app/work/tasks/job"); !ok {
				t.Errorf("%v: the task is gone, and was not done", failure)
			}
		})
	}
}

// TestPartitionerIsStoppedBeforeItBegins checks that Run ends and leaves nothing.
func TestPartitionerIsStoppedBeforeItBegins(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		p, err := NewPartitioner(s.connect(zk.Options{}), "/app/shares", "a", []string{"p"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, early := range []time.Duration{0, time.Millisecond} { // before its first request, and after it
			ctx, cancel := context.WithTimeout(t.Context(), early)
			defer cancel()
			err := p.Run(ctx, func(ctx context.Context, _ string, _ *Handle) error { <-ctx.Done(); return ctx.Err() })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run: %v", err)
			}
			time.Sleep(time.Minute)
			if left := s.bids("/app/shares/members"); len(left) != 0 {
				t.Errorf("members left over: %v", left)
			}
		}
	})
}
