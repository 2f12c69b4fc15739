package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// crash takes an item as a consumer that then dies.
func (s *fakeServer) crash(t *testing.T, o *QueueOptions) *Item {
	t.Helper()
	q := s.work(o)
	item, err := q.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.expire(item.Session())
	return item
}

// TestDeliveriesAreCounted checks the count over several consumers, also without a limit.
func TestDeliveriesAreCounted(t *testing.T) {
	for _, naming := range []QueueNaming{OwnItems, KazooItems, PlainItems} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			q := s.work(&QueueOptions{Naming: naming})
			if err := q.Put(t.Context(), []byte("job")); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if item := s.crash(t, nil); item.Deliveries != i+1 || string(item.Data) != "job" {
					t.Errorf("delivery %d: %d, %s", i+1, item.Deliveries, item.Data)
				}
			}
		})
	}
}

// TestPoisonedItemBecomesADeadLetter checks that an item becomes a dead letter after the limit of
// deliveries, with its data and priority. Other items are delivered meanwhile, and the dead letter can be
// taken from the other queue.
func TestPoisonedItemBecomesADeadLetter(t *testing.T) {
	for _, dead := range []string{"", "/app/graves"} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			var r recorder
			o := withReports(&QueueOptions{DeliveriesMax: 3, DeadLetters: dead}, &r)
			q := s.work(o)
			if err := errors.Join(q.PutPriority(t.Context(), []byte("poison"), 5), q.Put(t.Context(), []byte("good"))); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if item := s.crash(t, o); string(item.Data) != "poison" {
					t.Fatalf("took %s", item.Data)
				}
			}
			item, err := q.Take(t.Context())
			if err != nil || string(item.Data) != "good" || item.Deliveries != 1 {
				t.Fatalf("%+v, %v", item, err)
			}
			if o, seen := r.saw("dead letter"); !seen || o.Path != jobs+"/work" || !strings.Contains(o.Znode, "-entry-005-") {
				t.Errorf("observed %+v", o)
			}
			if dead == "" {
				dead = jobs + "/work.dead"
			}
			graves := made(NewWorkQueue(q.b.c, dead, nil))
			letter, err := graves.Take(t.Context())
			if err != nil || string(letter.Data) != "poison" || letter.Deliveries != 1 || !strings.Contains(letter.Path(), "-entry-005-") {
				t.Fatalf("%+v, %v", letter, err)
			}
		})
	}
}

// TestReleasedItemCounts checks that a delivery that ends by Release counts, and that an item that a
// consumer works on does not become a dead letter.
func TestReleasedItemCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(&QueueOptions{DeliveriesMax: 1})
		item := takeOne(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.work(&QueueOptions{DeliveriesMax: 1}).Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another consumer: %v", err)
		}
		if n, err := q.Len(t.Context()); n != 1 || err != nil {
			t.Errorf("%d items, %v: it was taken out while somebody worked on it", n, err)
		}
		if err := item.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if n, err := made(NewWorkQueue(q.b.c, jobs+"/work.dead", nil)).Len(t.Context()); n != 1 || err != nil {
			t.Errorf("%d dead letters, %v", n, err)
		}
	})
}

// TestItemThatMayNotBeWritten checks that an item that the consumer may not write is delivered without a
// count.
func TestItemThatMayNotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(&QueueOptions{DeliveriesMax: 1})
		if err := q.Put(t.Context(), []byte("job")); err != nil {
			t.Fatal(err)
		}
		s.guarded = true
		for range 3 {
			item, err := q.Take(t.Context())
			if err != nil || item.Deliveries != 0 || string(item.Data) != "job" {
				t.Fatalf("%+v, %v", item, err)
			}
			if err := item.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestItemIsDelayed checks that an item is delivered when it is due by the clock of the server, whatever
// the clocks of the clients say, and that it wakes a waiting consumer.
func TestItemIsDelayed(t *testing.T) {
	for _, naming := range []QueueNaming{OwnItems, KazooItems, PlainItems} {
		for _, ahead := range []time.Duration{0, -time.Hour, time.Hour} {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.ahead = ahead
				q := s.work(&QueueOptions{Naming: naming})
				var item *Item
				out := after(func() (err error) { item, err = q.Take(t.Context()); return err })
				still(t, out)
				due := time.Now().Add(ahead + 90*time.Minute)
				if err := q.PutAt(t.Context(), []byte("later"), 100, due); err != nil {
					t.Fatal(err)
				}
				if n, err := q.Len(t.Context()); n != 1 || err != nil {
					t.Errorf("%d items, %v", n, err)
				}
				if in := s.bids(q.items); len(in) > 0 {
					t.Errorf("consumers of other libraries see %v", in)
				}
				time.Sleep(89 * time.Minute)
				still(t, out)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				returned(t, out)
				if string(item.Data) != "later" || item.Deliveries != 1 {
					t.Errorf("%+v", item)
				}
				if err := item.Ack(t.Context()); err != nil {
					t.Error(err)
				}
				if n, err := q.Len(t.Context()); n != 0 || err != nil {
					t.Errorf("%d items left, %v", n, err)
				}
			})
		}
	}
}

// TestDueInThePastAndTheFarFuture checks that an item due in the past is delivered at once, and one due in
// the far future is not delivered.
func TestDueInThePastAndTheFarFuture(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(nil)
		past := []time.Time{{}, time.Unix(0, 0), time.Unix(-1e10, 0), time.Now().Add(-time.Hour)}
		for i, due := range past {
			if err := q.PutAt(t.Context(), fmt.Append(nil, i), 100, due); err != nil {
				t.Fatal(err)
			}
		}
		for _, due := range []time.Time{time.Now().AddDate(1000, 0, 0), time.Unix(1<<55, 0)} {
			if err := q.PutAt(t.Context(), []byte("never"), 0, due); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for range past {
			item, err := q.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(item.Data))
			if err := item.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, []string{"0", "1", "2", "3"}) {
			t.Errorf("took %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*24*time.Hour)
		defer cancel()
		if item, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v, %v", item, err)
		}
	})
}

// TestManyItemsDueAtOnce checks that of many items that become due together, each is delivered once,
// among items that were there before.
func TestManyItemsDueAtOnce(t *testing.T) {
	const n = 50
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(nil)
		due := time.Now().Add(time.Minute)
		for i := range n {
			if err := errors.Join(q.PutAt(t.Context(), fmt.Append(nil, "later ", i), 100, due), q.Put(t.Context(), fmt.Append(nil, "now ", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		seen := map[string]int{}
		consumers := []*WorkQueue{q, s.work(nil)}
		for i := range 2 * n {
			item, err := consumers[i%2].Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seen[string(item.Data)]++
			if err := item.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(seen) != 2*n {
			t.Errorf("%d of %d items, each once", len(seen), 2*n)
		}
	})
}

// TestQueueOptionsThatMakeNoSense checks that invalid options are refused.
func TestQueueOptionsThatMakeNoSense(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		for _, o := range []QueueOptions{{DeliveriesMax: -1}, {DeliveriesMax: 1, DeadLetters: jobs}, {DeliveriesMax: 1, DeadLetters: "graves"}} {
			if _, err := NewWorkQueue(c, jobs, &o); !errors.Is(err, zk.ErrBadArguments) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		if _, err := NewQueue(c, jobs, &QueueOptions{DeliveriesMax: 1}); !errors.Is(err, zk.ErrBadArguments) {
			t.Errorf("a queue without acknowledgement: %v", err)
		}
	})
}
