package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

const jobs = "/app/jobs"

func (s *fakeServer) queue(o *QueueOptions) *Queue {
	q, err := NewQueue(s.connect(zk.Options{}), jobs, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

func (s *fakeServer) work(o *QueueOptions) *WorkQueue {
	q, err := NewWorkQueue(s.connect(zk.Options{}), jobs+"/work", o)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

// TestLimitOfRepliesIsNamed checks that an operation of a queue names the limit that kept it from reading a reply, once
// and on one line, even if its outcome is unknown.
func TestLimitOfRepliesIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		full := s.work(nil)
		for range 20 {
			if err := full.Put(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		q, err1 := NewQueue(s.connect(zk.Options{ReplyMax: 60}), "/app/other", nil)
		w, err2 := NewWorkQueue(s.connect(zk.Options{ReplyMax: 500}), jobs+"/work", nil)
		if err := errors.Join(err1, err2, s.queue(nil).Put(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{"Put": q.Put(t.Context(), nil), "Take": second(w.Take(t.Context()))} {
			var limit *zk.TooLargeError
			if !errors.As(err, &limit) || !limit.Answer {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if n := strings.Count(err.Error(), "exceeds the limit"); n != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s says %d times:\n%v", name, n, err)
			}
			var unknown *zk.UnknownOutcomeError
			if is := errors.As(err, &unknown); is != (name == "Put") {
				t.Errorf("%s: the outcome is unknown: %v: %v", name, is, err)
			}
		}
	})
}

// TestQueueOrder checks the order by priority and then by age, for each naming.
func TestQueueOrder(t *testing.T) {
	for _, n := range []QueueNaming{OwnItems, KazooItems} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			q := s.queue(&QueueOptions{Naming: n})
			err := errors.Join(q.PutPriority(t.Context(), []byte("low"), 200), q.Put(t.Context(), []byte("first")),
				s.queue(&QueueOptions{Naming: PlainItems}).Put(t.Context(), []byte("second")), q.PutPriority(t.Context(), []byte("urgent"), 1))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := q.Len(t.Context()); n != 4 || err != nil {
				t.Errorf("%d items, %v", n, err)
			}
			for _, want := range []string{"urgent", "first", "second", "low"} {
				if got, err := q.Take(t.Context()); string(got) != want || err != nil {
					t.Errorf("%s, %v, want %s", got, err, want)
				}
			}
			if left := s.bids(jobs + ".line"); len(left) > 0 {
				t.Errorf("left in the line: %v", left)
			}
			if q.PutPriority(t.Context(), nil, 1000) != ErrPriority {
				t.Error("a priority of 1000")
			}
		})
	}
}

// TestQueueWakesFew checks that the watch events of an item do not depend on the number of waiting
// consumers.
func TestQueueWakesFew(t *testing.T) {
	const items = 20
	for _, consumers := range sizes() {
		for kind, most := range map[string]int{"taken": 2, "acknowledged": 4} {
			bubble(t, func(t *testing.T, s *fakeServer) {
				var mu sync.Mutex
				var got []string
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				put := s.queue(nil).Put
				if kind == "acknowledged" {
					put = s.work(nil).Put
				}
				for range consumers {
					all.Go(func() {
						s.consume(ctx, kind, func(item []byte) { mu.Lock(); got = append(got, string(item)); mu.Unlock() })
					})
				}
				synctest.Wait()
				before, asked := s.eventCount(), s.asked()
				for i := range items {
					if err := put(t.Context(), fmt.Append(nil, i)); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				}
				mu.Lock()
				slices.Sort(got)
				if len(slices.Compact(got)) != items {
					t.Errorf("%d of %d items: %v", len(got), items, got)
				}
				mu.Unlock()
				events := s.eventCount() - before
				t.Logf("%s, %d consumers: %.1f events, %.1f requests an item", kind, consumers, float64(events)/items, float64(s.asked()-asked)/items)
				if requests := s.asked() - asked; requests > 6*most*items {
					t.Errorf("%s, %d consumers: %d requests for %d items", kind, consumers, requests, items)
				}
				if events > most*items {
					t.Errorf("%s, %d consumers: %d events for %d items", kind, consumers, events, items)
				}
				stop()
				all.Wait()
			})
		}
	}
}

// consume takes items until the context ends.
func (s *fakeServer) consume(ctx context.Context, kind string, got func([]byte)) {
	if kind == "taken" {
		q := s.queue(nil)
		for {
			item, err := q.Take(ctx)
			if err != nil {
				return
			}
			got(item)
		}
	}
	q := s.work(nil)
	for {
		w, err := q.Take(ctx)
		if err != nil {
			return
		}
		got(w.Data)
		if err := w.Ack(ctx); err != nil {
			s.t.Error(err)
		}
	}
}

// TestQueueLosesReplies checks that lost replies neither lose nor duplicate an item.
func TestQueueLosesReplies(t *testing.T) {
	for _, naming := range []QueueNaming{OwnItems, KazooItems} {
		for _, f := range []fate{dropReply, dropAll} {
			bubble(t, func(t *testing.T, s *fakeServer) {
				q, w := s.queue(&QueueOptions{Naming: naming}), s.work(&QueueOptions{Naming: naming})
				for _, path := range []string{q.items, q.line, w.items, w.claims, w.line} {
					if r := q.b.carryPlain(t.Context(), claim.Op{Kind: claim.OpParents, Path: path}); r.Err != nil {
						t.Fatal(r.Err)
					}
				}
				n := 0
				s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
					if op == wire.OpCreate || op == wire.OpCreate2 || op == wire.OpMulti {
						if n++; n%2 == 1 {
							return f
						}
					}
					return normal
				})
				for i := range 5 {
					want := fmt.Sprint(i)
					if err := errors.Join(q.Put(t.Context(), []byte(want)), w.Put(t.Context(), []byte(want))); err != nil {
						t.Fatal(err)
					}
				}
				for i := range 5 {
					want := fmt.Sprint(i)
					if got, err := q.Take(t.Context()); string(got) != want || err != nil {
						t.Errorf("took %s, %v, want %s", got, err, want)
					}
					work, err := w.Take(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := work.Ack(t.Context()); string(work.Data) != want || err != nil {
						t.Errorf("acknowledged %s, %v, want %s", work.Data, err, want)
					}
				}
				for _, parent := range []string{q.items, q.line, w.items, w.claims} {
					if left := slices.DeleteFunc(s.bids(parent), func(n string) bool { return strings.HasPrefix(n, "work") }); len(left) > 0 {
						t.Errorf("left in %s: %v", parent, left)
					}
				}
			})
		}
	}
}

// TestItemComesBackOnce checks that another consumer gets the item of a dead consumer, and that an
// acknowledgement of the dead one changes nothing.
func TestItemComesBackOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.work(nil), s.work(nil)
		if err := a.Put(t.Context(), []byte("job")); err != nil {
			t.Fatal(err)
		}
		first, err := a.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if left := s.bids(a.items); first.Session() != a.b.c.State().Session || len(left) != 1 || first.Path() != a.items+"/"+left[0] {
			t.Errorf("taken in session %v at %s, of %v", first.Session(), first.Path(), left)
		}
		type taken struct {
			*Item
			error
		}
		out := make(chan taken, 2)
		for range 2 {
			go func() {
				w, err := b.Take(context.Background())
				out <- taken{w, err}
			}()
		}
		synctest.Wait()
		if len(out) > 0 {
			t.Fatal("taken twice")
		}
		s.expire(a.b.c.Session().ID)
		got := <-out
		if got.error != nil || string(got.Data) != "job" {
			t.Fatalf("%+v", got)
		}
		time.Sleep(time.Second)
		if err := first.Ack(t.Context()); !errors.Is(err, ErrTaken) {
			t.Errorf("the dead one's acknowledgement: %v", err)
		}
		if err := first.Release(t.Context()); !errors.Is(err, ErrTaken) {
			t.Errorf("the dead one's release: %v", err)
		}
		if err := got.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := <-out
		if err := again.Ack(t.Context(), zk.CreateOp("/app/result", []byte("42"))); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := s.node("/app/result"); !ok {
			t.Error("the result was not written")
		}
		if err := again.Ack(t.Context()); !errors.Is(err, ErrTaken) {
			t.Errorf("a second acknowledgement: %v", err)
		}
		if n, err := b.Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d items left, %v", n, err)
		}
	})
}

// TestQueueSurvivesExpiryWhileWaiting also checks that a cancelled Take leaves no bid in the line.
func TestQueueSurvivesExpiryWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.queue(nil), s.work(nil)
		outA := after(func() error { _, err := a.Take(context.Background()); return err })
		outB := after(func() error { _, err := b.Take(context.Background()); return err })
		s.expire(a.b.c.Session().ID)
		s.expire(b.b.c.Session().ID)
		time.Sleep(time.Second)
		still(t, outA)
		still(t, outB)
		if err := errors.Join(a.Put(t.Context(), nil), b.Put(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		returned(t, outA)
		returned(t, outB)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		if left := s.bids(jobs + ".line"); len(left) > 0 {
			t.Errorf("left in the line: %v", left)
		}
	})
}

// TestCancelledTakeLeavesNoPlace checks that no bid is left in the line, also if the connection comes
// back late. A bid that belongs to no consumer would block the queue.
func TestCancelledTakeLeavesNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.queue(nil), s.queue(nil)
		ctx, cancel := context.WithCancel(t.Context())
		out := after(func() error { _, err := a.Take(ctx); return err })
		still(t, out)
		s.setAway(true)
		s.cut(a.b.c)
		cancel()
		time.Sleep(5 * time.Second)
		select {
		case err := <-out:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		default:
			t.Error("cancelled, and waits for a connection")
		}
		s.setAway(false)
		time.Sleep(2 * time.Second)
		if left := s.bids(jobs + ".line"); len(left) > 0 {
			t.Errorf("left in the line: %v", left)
		}
		if err := b.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Take(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestCancelledPutReturns checks that Put returns if its mark cannot be removed now.
func TestCancelledPutReturns(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.queue(&QueueOptions{Naming: KazooItems})
		if err := q.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.silence()
		ctx, cancel := context.WithCancel(t.Context())
		out := after(func() error { return q.Put(ctx, nil) })
		still(t, out)
		cancel()
		time.Sleep(3 * time.Second)
		select {
		case err := <-out:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		default:
			t.Error("cancelled, and waits for a server that does not answer")
		}
	})
}

// TestTakeWhosePlaceIsDeleted checks that a consumer whose bid is deleted waits in the line again.
func TestTakeWhosePlaceIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.queue(nil)
		out := after(func() error { _, err := q.Take(context.Background()); return err })
		still(t, out)
		for _, name := range s.bids(jobs + ".line") {
			s.delete(jobs + ".line/" + name)
		}
		asked := s.asked()
		s.hook(func(*peer, wire.OpCode, string) fate {
			if s.asked() > asked+50 {
				return swallow
			}
			return normal
		})
		if err := q.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-out:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the item is not taken")
		}
	})
}

// TestAckThatMayHaveBeenCarriedOut checks that Ack reports an unknown outcome if its answer is lost and
// its session has ended.
func TestAckThatMayHaveBeenCarriedOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(nil)
		w := takeOne(t, q)
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpMulti {
				go s.expire(w.d.session)
				return dropReply
			}
			return normal
		})
		err := w.Ack(t.Context())
		var lost *zk.UnknownOutcomeError
		if errors.Is(err, ErrTaken) || !errors.As(err, &lost) {
			t.Errorf("it was acknowledged, and Ack says %v", err)
		}
	})
}

// TestAckOfAnItemThatIsGone checks that Ack reports the missing item, carries out none of the other
// operations, and gives up the claim.
func TestAckOfAnItemThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(nil)
		if err := q.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		item, err := q.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.delete(item.Path())
		if err := item.Ack(t.Context(), zk.CreateOp("/app/result", nil)); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("acknowledged: %v", err)
		}
		if _, _, done := s.node("/app/result"); done {
			t.Error("an operation of the failed acknowledgement was carried out")
		}
		if left := s.bids(q.claims); len(left) > 0 {
			t.Errorf("claims left: %v", left)
		}
	})
}

// takeOne puts an item into a queue and takes it.
func takeOne(t *testing.T, q *WorkQueue) *Item {
	t.Helper()
	if err := q.Put(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	item, err := q.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// TestTakeToPutsBack checks that an item that could not be delivered is put back at its old place, even if
// the context has ended, and that no other item moves.
func TestTakeToPutsBack(t *testing.T) {
	for _, n := range []QueueNaming{OwnItems, KazooItems, PlainItems} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			q := s.queue(&QueueOptions{Naming: n})
			if err := errors.Join(q.Put(t.Context(), []byte("first")), q.Put(t.Context(), []byte("second"))); err != nil {
				t.Fatal(err)
			}
			before := s.bids(jobs)
			slices.Sort(before)
			full := errors.New("no room")
			ctx, cancel := context.WithCancel(t.Context())
			err := q.TakeTo(ctx, func(data []byte) error {
				cancel()
				if string(data) != "first" {
					t.Errorf("took %s", data)
				}
				return full
			})
			if !errors.Is(err, full) {
				t.Errorf("%v", err)
			}
			after := s.bids(jobs)
			if slices.Sort(after); !slices.Equal(before, after) {
				t.Errorf("items were %v, are %v", before, after)
			}
			for _, want := range []string{"first", "second"} {
				if err := q.TakeTo(t.Context(), func(data []byte) error {
					if string(data) != want {
						t.Errorf("took %s, want %s", data, want)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
