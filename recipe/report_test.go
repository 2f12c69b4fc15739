package recipe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/inorder"
	"bellwether/zk"
)

// recorder is an Observer and a slog.Handler that keep what they receive.
type recorder struct {
	mu     sync.Mutex
	events []Observation
	logs   []slog.Record
	stall  chan struct{} // nil: no wait; otherwise both methods wait until it is closed
}

func (r *recorder) observe(o Observation) {
	if r.stall != nil {
		<-r.stall
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, o)
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }

func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	if r.stall != nil {
		<-r.stall
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, rec)
	return nil
}

// saw returns the first observation of an event.
func (r *recorder) saw(event string) (Observation, bool) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.events {
		if o.Event == event {
			return o, true
		}
	}
	return Observation{}, false
}

// withReports sets Logger and Observer of any options.
func withReports[O any](o *O, r *recorder) *O {
	v := reflect.ValueOf(o).Elem()
	v.FieldByName("Logger").Set(reflect.ValueOf(slog.New(r)))
	v.FieldByName("Observer").Set(reflect.ValueOf(r.observe))
	return o
}

// TestEveryRecipeReports checks what each recipe reports to its Logger and its Observer.
func TestEveryRecipeReports(t *testing.T) {
	const path = "/app/x"
	for _, test := range []struct {
		recipe string
		events []string // events of observations without an error
		use    func(ctx context.Context, c *zk.Client, r *recorder) error
	}{
		{"election", []string{"campaign", "publish"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			e := made(NewElection(c, path, "a", withReports(&ElectionOptions{}, r)))
			h, err := e.Campaign(ctx)
			if err != nil {
				return err
			}
			return errors.Join(PublishConfig(ctx, h, "/app/config", nil, nil), e.Resign(ctx))
		}},
		{"lock", []string{"acquire"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			return holdOnce(ctx, made(NewLock(c, path, withReports(&LockOptions{}, r))).Lock)
		}},
		{"semaphore", []string{"acquire"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			return holdOnce(ctx, made(NewSemaphore(c, path, 1, withReports(&LockOptions{}, r))).Acquire)
		}},
		{"queue", []string{"put", "take"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			q := made(NewQueue(c, path, withReports(&QueueOptions{}, r)))
			_, err := q.Take(putInto(ctx, q.Put))
			return err
		}},
		{"queue", []string{"put", "take", "release", "ack"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			q := made(NewWorkQueue(c, path, withReports(&QueueOptions{}, r)))
			w, err := q.Take(putInto(ctx, q.Put))
			if err != nil {
				return err
			}
			if err = w.Release(ctx); err != nil {
				return err
			}
			if w, err = q.Take(ctx); err != nil {
				return err
			}
			return w.Ack(ctx)
		}},
		{"barrier", []string{"close", "open", "wait"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			b := made(NewBarrier(c, path, withReports(&BarrierOptions{}, r)))
			return errors.Join(b.Close(ctx), b.Open(ctx), b.Wait(ctx))
		}},
		{"barrier", []string{"enter", "leave"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			d := made(NewDoubleBarrier(c, path, 1, withReports(&BarrierOptions{}, r)))
			return errors.Join(d.Enter(ctx), d.Leave(ctx))
		}},
		{"registration", []string{"absent", "stands"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			return closed(Register(ctx, c, path, nil, withReports(&RegistrationOptions{}, r)))
		}},
		{"registration", []string{"absent", "stands"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			return closed(made(NewGroup(c, path, withReports(&GroupOptions{}, r))).Join(ctx, "a", nil))
		}},
		{"cache", []string{"load"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			k, err := OpenCache(ctx, c, path, withReports(&CacheOptions{}, r))
			if err == nil {
				k.Close()
			}
			return err
		}},
		{"value", []string{"change"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			n := made(NewCounter(c, path, withReports(&CounterOptions{}, r)))
			_, err := n.Add(ctx, 1)
			return err
		}},
		{"value", []string{"change"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			_, err := made(NewIDs(c, path, withReports(&IDsOptions{}, r))).Next(ctx)
			return err
		}},
		{"value", []string{"change"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			_, err := made(NewValue(c, path, withReports(&ValueOptions{}, r))).CompareAndSet(ctx, nil, []byte("x"))
			return err
		}},
		{"commit", []string{"commit", "join"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			o := withReports(&CommitOptions{}, r)
			co, site := made(NewCoordinator(c, path, o)), made(NewSite(c, path, "s", failing{}, o))
			tx := co.Path()
			joined := make(chan error, 1)
			go func() {
				time.Sleep(time.Second)
				_, err := site.Join(ctx, tx)
				joined <- err
			}()
			_, err := co.Commit(ctx, tx, []string{"s"}, nil, nil)
			return errors.Join(err, <-joined)
		}},
		{"registration", []string{"absent", "stands"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			return closed(made(NewDiscovery(c, path, withReports(&RegistrationOptions{}, r))).Register(ctx, Instance{Name: "web"}))
		}},
		{"cache", []string{"load"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			p, err := made(NewDiscovery(c, path, withReports(&RegistrationOptions{}, r))).Provider(ctx, "web", nil)
			if err == nil {
				p.Close()
			}
			return err
		}},
		{"lock", []string{"acquire"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			l := made(NewLock(c, path, withReports(&LockOptions{}, r)))
			return made(NewMultiLock(l)).Do(ctx, func(context.Context, *MultiHold) error { return nil })
		}},
		{"read lock", []string{"acquire"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			return holdOnce(ctx, made(NewReadWriteLock(c, path, withReports(&LockOptions{}, r))).RLock)
		}},
		{"config", []string{"news", "watch"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			e := made(NewElection(c, "/app/election", "a", nil))
			h, err := e.Campaign(ctx)
			if err != nil {
				return err
			}
			err = PublishConfig(ctx, h, path, nil, nil)
			for _, err = range WatchConfig(ctx, c, path, withReports(&ConfigOptions{}, r)) {
				break
			}
			return errors.Join(err, e.Resign(ctx))
		}},
		{"election", []string{"publish"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			e := made(NewElection(c, "/app/election", "a", nil))
			h, err := e.Campaign(ctx)
			if err != nil {
				return err
			}
			e.path = path
			return errors.Join(PublishConfig(ctx, h, path, nil, withReports(&ConfigOptions{}, r)), e.Resign(ctx))
		}},
		{"work", []string{"submit"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			o := &PartitionerOptions{Election: *withReports(&ElectionOptions{}, r)}
			return made(NewWork(c, path, o)).Submit(ctx, "t", nil)
		}},
		{"election", []string{"campaign"}, func(ctx context.Context, c *zk.Client, r *recorder) error {
			o := &PartitionerOptions{Election: *withReports(&ElectionOptions{}, r)}
			done := errors.New("done")
			err := made(NewPartitioner(c, path, "m", []string{"p"}, o)).Run(ctx, func(context.Context, string, *Handle) error { return done })
			if err == done {
				return nil
			}
			return err
		}},
	} {
		t.Run(fmt.Sprint(test.recipe, test.events), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.put("/app", "")
				var r recorder
				if err := test.use(t.Context(), s.connect(zk.Options{}), &r); err != nil {
					t.Fatal(err)
				}
				for _, event := range test.events {
					o, seen := r.saw(event)
					if !seen || o.Recipe != test.recipe || !strings.HasPrefix(o.Path, path) || o.Znode == "" || o.Err != nil || o.Took < 0 {
						t.Errorf("%s: %+v, %v", event, o, seen)
					}
				}
				if len(r.logs) < len(test.events) {
					t.Errorf("%d records", len(r.logs))
				}
			})
		})
	}
}

// putInto puts an item, and returns the context for the next call.
func putInto(ctx context.Context, put func(context.Context, []byte) error) context.Context {
	if err := put(ctx, nil); err != nil {
		panic(err)
	}
	return ctx
}

// TestTermIsObserved checks the length of a term and the reason of its end.
func TestTermIsObserved(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		var r recorder
		c := s.connect(zk.Options{})
		h, err := made(NewLock(c, "/app/lock", withReports(&LockOptions{}, &r))).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.expire(c.Session().ID)
		<-h.Context().Done()
		time.Sleep(time.Second)
		o, seen := r.saw("term")
		var lost *LostError
		if !seen || o.Took < time.Minute || o.Took > 2*time.Minute || !errors.As(o.Err, &lost) || lost.Reason != SessionExpired {
			t.Errorf("%+v, %v", o, seen)
		}
	})
}

// TestStuckReportsDelayNothing checks that neither the end of a term nor the removal of a bid waits for a
// Logger or an Observer that blocks, and that the number of waiting reports is bounded.
func TestStuckReportsDelayNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		r := recorder{stall: make(chan struct{})}
		l := made(NewLock(s.connect(zk.Options{}), "/app/lock", withReports(&LockOptions{}, &r)))
		h, err := l.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.setAway(true)
		s.cut(l.c)
		time.Sleep(9 * time.Second)
		if h.Context().Err() == nil {
			t.Error("the context outlives its deadline")
		}
		s.setAway(false)
		time.Sleep(5 * time.Second)
		for range inorder.Max {
			if err := holdOnce(t.Context(), l.Lock); err != nil {
				t.Fatal(err)
			}
		}
		if n := l.report.queue.Waiting(); n > inorder.Max {
			t.Errorf("%d reports wait", n)
		}
		if n := s.ephemerals(); n > 0 {
			t.Errorf("%d bids are left", n)
		}
		close(r.stall)
		synctest.Wait()
		if last := r.logs[len(r.logs)-1]; last.Level != slog.LevelWarn {
			t.Errorf("the last record is %v: it does not say that others were left out", last.Message)
		}
	})
}

// TestCloseWithinAnObserver checks that an Observer, or the handler of a Logger, may close the client.
func TestCloseWithinAnObserver(t *testing.T) {
	for name, end := range map[string]func(c *zk.Client){
		"Close":  func(c *zk.Client) { _ = c.Close(context.Background()) },
		"Detach": func(c *zk.Client) { c.Detach() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.put("/app", "")
				c := s.connect(zk.Options{})
				ended := make(chan struct{})
				l := made(NewLock(c, "/app/lock", &LockOptions{Observer: func(o Observation) {
					if o.Event == "acquire" {
						end(c)
						close(ended)
					}
				}}))
				h, err := l.Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				<-ended
				var lost *LostError
				if !errors.As(h.Lost(), &lost) || lost.Reason != SessionClosed || c.State().State != zk.Closed {
					t.Errorf("%v, %v", h.Lost(), c.State().State)
				}
			})
		})
	}
}
