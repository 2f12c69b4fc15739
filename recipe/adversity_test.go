package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// These tests do the same harm to every recipe, at each of its steps. Each time the recipe must succeed,
// return a typed error, or wait until its context ends. It must leave nothing ephemeral behind.

// uses holds one use of each recipe, from its constructor to its end.
var uses = []struct {
	name string
	use  func(ctx context.Context, c *zk.Client) error
}{
	{"election", useElection},
	{"lock", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewLock(c, "/app/lock", nil)
		return holdOnce(ctx, l.Lock)
	}},
	{"read lock", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewReadWriteLock(c, "/app/rw", nil)
		return holdOnce(ctx, l.RLock)
	}},
	{"write lock", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewReadWriteLock(c, "/app/rw", nil)
		return holdOnce(ctx, l.Lock)
	}},
	{"semaphore", func(ctx context.Context, c *zk.Client) error {
		m, _ := NewSemaphore(c, "/app/semaphore", 2, nil)
		return holdOnce(ctx, m.Acquire)
	}},
	{"several locks", useMultiLock},
	{"barrier", func(ctx context.Context, c *zk.Client) error {
		b, _ := NewBarrier(c, "/app/barrier", nil)
		return errors.Join(b.Close(ctx), b.Open(ctx), b.Wait(ctx))
	}},
	{"double barrier", func(ctx context.Context, c *zk.Client) error {
		b, _ := NewDoubleBarrier(c, "/app/double", 1, nil)
		if err := b.Enter(ctx); err != nil {
			return err
		}
		return b.Leave(ctx)
	}},
	{"queue", func(ctx context.Context, c *zk.Client) error {
		q, _ := NewQueue(c, "/app/queue", nil)
		if err := q.Put(ctx, nil); err != nil {
			return err
		}
		_, err := q.Take(ctx)
		return err
	}},
	{"work queue", useWorkQueue},
	{"registration", func(ctx context.Context, c *zk.Client) error {
		r, err := Register(ctx, c, "/app/registration", nil, nil)
		return closed(r, err)
	}},
	{"group", func(ctx context.Context, c *zk.Client) error {
		g, _ := NewGroup(c, "/app/group", nil)
		r, err := g.Join(ctx, "a", nil)
		return closed(r, err)
	}},
	{"discovery", func(ctx context.Context, c *zk.Client) error {
		d, _ := NewDiscovery(c, "/app/services", nil)
		r, err := d.Register(ctx, Instance{Name: "web", ID: "a"})
		return closed(r, err)
	}},
	{"cache", func(ctx context.Context, c *zk.Client) error {
		k, err := OpenCache(ctx, c, "/app", nil)
		if err == nil {
			k.Close()
		}
		return err
	}},
	{"value", func(ctx context.Context, c *zk.Client) error {
		v, _ := NewValue(c, "/app/value", nil)
		_, err := v.Update(ctx, func([]byte) ([]byte, error) { return []byte("x"), nil })
		return errors.Join(err, v.Close(context.WithoutCancel(ctx)))
	}},
	{"counter", func(ctx context.Context, c *zk.Client) error {
		n, _ := NewCounter(c, "/app/counter", nil)
		_, err := n.Add(ctx, 1)
		return errors.Join(err, n.Close(context.WithoutCancel(ctx)))
	}},
	{"ids", func(ctx context.Context, c *zk.Client) error {
		d, _ := NewIDs(c, "/app/ids", nil)
		_, err := d.Next(ctx)
		return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}},
	{"partitioner", usePartitioner},
	{"work", useWork},
	{"configuration", useConfig},
	{"transaction", func(ctx context.Context, c *zk.Client) error { return useCommit(ctx, c, false) }},
	{"transaction, plain", func(ctx context.Context, c *zk.Client) error { return useCommit(ctx, c, true) }},
	{"election, in line", useElections},
	{"lock, in line", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewLock(c, "/app/lock", nil)
		return inTurn(ctx, l.Lock)
	}},
	{"write lock, in line", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewReadWriteLock(c, "/app/rw", nil)
		return inTurn(ctx, l.Lock)
	}},
	{"semaphore, in line", func(ctx context.Context, c *zk.Client) error {
		m, _ := NewSemaphore(c, "/app/semaphore", 1, nil)
		return inTurn(ctx, m.Acquire)
	}},
	{"barrier, closed", func(ctx context.Context, c *zk.Client) error {
		b, _ := NewBarrier(c, "/app/barrier", nil)
		if err := b.Close(ctx); err != nil {
			return err
		}
		return meanwhile(func() error { return b.Wait(ctx) }, func() error { return b.Open(ctx) })
	}},
	{"double barrier, of two", useDoubleBarriers},
	{"queue, empty", func(ctx context.Context, c *zk.Client) error {
		q, _ := NewQueue(c, "/app/queue", nil)
		take := func() error { _, err := q.Take(ctx); return err }
		return meanwhile(take, func() error { return q.Put(ctx, nil) })
	}},
	{"work queue, empty", useEmptyWorkQueue},
	{"work queue, delayed", useDelayedItem},
	{"read lock, in line", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewReadWriteLock(c, "/app/rw", nil)
		w, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		return meanwhile(func() error { return holdOnce(ctx, l.RLock) }, func() error { return w.Release(ctx) })
	}},
	{"several locks, in line", useLockedMultiLock},
	{"election, observed", useObservers},
	{"group, watched", useGroupWatch},
	{"discovery, looked up", useProvider},
	{"transaction, recovered", useRecovery},
	{"election, led", useLead},
	{"lock, done", func(ctx context.Context, c *zk.Client) error {
		l, _ := NewLock(c, "/app/lock", nil)
		return l.Do(ctx, func(ctx context.Context, h *Hold) error { return second(h.Do(ctx, zk.CheckOp("/", zk.AnyVersion))) })
	}},
	{"lock, tried", useTries},
	{"queue, taken to", func(ctx context.Context, c *zk.Client) error {
		q, _ := NewQueue(c, "/app/queue", nil)
		if err := q.Put(ctx, nil); err != nil {
			return err
		}
		return q.TakeTo(ctx, func([]byte) error { return nil })
	}},
	{"registration, set", func(ctx context.Context, c *zk.Client) error {
		r, err := Register(ctx, c, "/app/registration", nil, nil)
		if err == nil {
			err = r.Set(ctx, []byte("x"))
			err = errors.Join(err, closed(r, nil))
		}
		return err
	}},
	{"value, compared", func(ctx context.Context, c *zk.Client) error {
		v, _ := NewValue(c, "/app/value", nil)
		_, err := v.CompareAndSet(ctx, nil, []byte("x"))
		_, gets := v.Get(ctx)
		return errors.Join(err, gets, v.Close(context.WithoutCancel(ctx)))
	}},
	{"cache, followed", useCacheEvents},
}

// useLead leads until an operation of its handle has succeeded, and reads who leads.
func useLead(ctx context.Context, c *zk.Client) error {
	e, _ := NewElection(c, "/app/election", "a", nil)
	err := e.Lead(ctx, func(ctx context.Context, h *Handle) error {
		if _, err := h.Do(ctx, zk.CheckOp("/", zk.AnyVersion)); err != nil {
			return err
		}
		if _, err := e.Leader(ctx); err != nil && !errors.Is(err, ErrNoLeader) {
			return err
		}
		return h.Resign(ctx)
	})
	if errors.Is(err, ErrResigned) {
		return nil
	}
	return err
}

// useTries tries once to take each kind of lock.
func useTries(ctx context.Context, c *zk.Client) error {
	l, _ := NewLock(c, "/app/lock", nil)
	rw, _ := NewReadWriteLock(c, "/app/rw", nil)
	m, _ := NewSemaphore(c, "/app/semaphore", 2, nil)
	var errs []error
	for _, try := range []func(context.Context) (*Hold, error){l.TryLock, rw.TryLock, rw.TryRLock, m.TryAcquire} {
		if err := holdOnce(ctx, try); !errors.Is(err, ErrHeld) { // the previous bid of this client may still exist
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// useCacheEvents reads the events of a cache until the cache is current.
func useCacheEvents(ctx context.Context, c *zk.Client) error {
	k, err := OpenCache(ctx, c, "/app", nil)
	if err != nil {
		return err
	}
	defer k.Close()
	for ev, err := range k.Events(ctx) {
		if err != nil || ev.Type == CacheCurrent {
			return err
		}
	}
	return ctx.Err()
}

func useLockedMultiLock(ctx context.Context, c *zk.Client) error {
	l, _ := NewLock(c, "/app/lock-b", nil)
	h, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	return meanwhile(func() error { return useMultiLock(ctx, c) }, func() error { return h.Release(ctx) })
}

// useObservers observes an election from a vacancy to a leader.
func useObservers(ctx context.Context, c *zk.Client) error {
	e, _ := NewElection(c, "/app/election", "a", nil)
	observed := func() error {
		for l, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			if !l.Vacant() {
				break
			}
		}
		_, err := e.Candidates(ctx)
		return err
	}
	return meanwhile(observed, func() error {
		_, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		time.Sleep(time.Second)
		return e.Resign(context.WithoutCancel(ctx))
	})
}

func useGroupWatch(ctx context.Context, c *zk.Client) error {
	g, _ := NewGroup(c, "/app/group", nil)
	watched := func() error {
		for in, err := range g.Watch(ctx) {
			if err != nil || len(in) > 0 {
				return err
			}
		}
		return ctx.Err()
	}
	return meanwhile(watched, func() error {
		r, err := g.Join(ctx, "a", nil)
		if err == nil {
			_, err = g.Members(ctx)
			time.Sleep(time.Second)
			err = errors.Join(err, closed(r, nil))
		}
		return err
	})
}

func useProvider(ctx context.Context, c *zk.Client) error {
	d, _ := NewDiscovery(c, "/app/services", nil)
	p, err := d.Provider(ctx, "web", nil)
	if err != nil {
		return err
	}
	defer p.Close()
	r, err := d.Register(ctx, Instance{Name: "web", ID: "a"})
	if err != nil {
		return err
	}
	for _, any := p.Pick(); !any && ctx.Err() == nil; _, any = p.Pick() {
		time.Sleep(time.Second)
	}
	_, err = d.Names(ctx)
	return errors.Join(err, closed(r, nil))
}

// useRecovery recovers the outcome of a transaction that never began.
func useRecovery(ctx context.Context, c *zk.Client) error {
	co, _ := NewCoordinator(c, txRoot, nil)
	site, _ := NewSite(c, txRoot, "s", &ledger{}, nil)
	tx := co.Path()
	d, err := co.Recover(ctx, tx, nil)
	if err == nil && d != Abort {
		return fmt.Errorf("recovered as %v", d)
	}
	_, serr := site.Recover(ctx, tx)
	return errors.Join(err, serr, co.Forget(ctx, tx))
}

// meanwhile runs a function one second later, while another call waits for it.
func meanwhile(waits, does func() error) error {
	out := make(chan error, 1)
	go func() { out <- waits() }()
	time.Sleep(time.Second)
	return errors.Join(does(), <-out)
}

// inTurn acquires once, and then a second time. The second call waits until the first Hold is released.
func inTurn(ctx context.Context, acquire func(context.Context) (*Hold, error)) error {
	first, err := acquire(ctx)
	if err != nil {
		return err
	}
	return meanwhile(func() error { return holdOnce(ctx, acquire) }, func() error { return first.Release(ctx) })
}

func useElections(ctx context.Context, c *zk.Client) error {
	a, _ := NewElection(c, "/app/election", "a", nil)
	b, _ := NewElection(c, "/app/election", "b", nil)
	if _, err := a.Campaign(ctx); err != nil {
		return err
	}
	second := func() error {
		_, err := b.Campaign(ctx)
		if err != nil {
			return err
		}
		return b.Resign(ctx)
	}
	return meanwhile(second, func() error { return a.Resign(ctx) })
}

func useDoubleBarriers(ctx context.Context, c *zk.Client) error {
	pass := func() error {
		b, _ := NewDoubleBarrier(c, "/app/double", 2, nil)
		if err := b.Enter(ctx); err != nil {
			return err
		}
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return b.Leave(later)
	}
	return meanwhile(pass, pass)
}

// useDelayedItem takes an item that is not due at first and that has been delivered too often. It then
// takes the dead letter.
func useDelayedItem(ctx context.Context, c *zk.Client) error {
	q, _ := NewWorkQueue(c, "/app/jobs", &QueueOptions{DeliveriesMax: 1})
	take := func() error {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		if err = item.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		over, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if item, err = q.Take(over); err == nil { // the first delivery was not counted, because the item had to be created again
			return item.Release(context.WithoutCancel(ctx))
		}
		if over.Err() != nil && ctx.Err() == nil {
			return nil
		}
		return err
	}
	put := func() error { return q.PutAt(ctx, nil, 7, time.Now().Add(2*time.Second)) }
	if err := meanwhile(take, put); err != nil {
		return err
	}
	_, err := q.Len(ctx)
	return err
}

func useEmptyWorkQueue(ctx context.Context, c *zk.Client) error {
	q, _ := NewWorkQueue(c, "/app/jobs", nil)
	take := func() error {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		if err = item.Ack(ctx); err != nil {
			_ = item.Release(context.WithoutCancel(ctx))
		}
		return err
	}
	return meanwhile(take, func() error { return q.Put(ctx, nil) })
}

// useCommit runs a site and a coordinator over one client.
func useCommit(ctx context.Context, c *zk.Client, plain bool) error {
	o := &CommitOptions{Plain: plain, Patience: 10 * time.Second}
	site, _ := NewSite(c, txRoot, "s", &ledger{}, o)
	co, _ := NewCoordinator(c, txRoot, o)
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- site.Serve(serving) }()
	_, err := co.Commit(ctx, co.Path(), []string{"s"}, nil, nil)
	time.Sleep(time.Minute) // by then the site has ended the transaction, even without the coordinator
	cancel()
	if serr := <-served; !errors.Is(serr, context.Canceled) {
		err = errors.Join(err, serr)
	}
	return err
}

func holdOnce(ctx context.Context, acquire func(context.Context) (*Hold, error)) error {
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	_, err = h.Do(ctx, zk.CheckOp("/", zk.AnyVersion))
	return errors.Join(err, h.Release(ctx))
}

func closed(r *Registration, err error) error {
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.Close(ctx)
}

func useElection(ctx context.Context, c *zk.Client) error {
	e, _ := NewElection(c, "/app/election", "a", nil)
	h, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	_, err = h.Do(ctx, zk.CheckOp("/", zk.AnyVersion))
	return errors.Join(err, e.Resign(ctx))
}

func useMultiLock(ctx context.Context, c *zk.Client) error {
	a, _ := NewLock(c, "/app/lock-a", nil)
	b, _ := NewLock(c, "/app/lock-b", nil)
	m, _ := NewMultiLock(a, b)
	h, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	_, err = h.Do(ctx, zk.CheckOp("/", zk.AnyVersion))
	return errors.Join(err, h.Release(ctx))
}

func useWorkQueue(ctx context.Context, c *zk.Client) error {
	q, _ := NewWorkQueue(c, "/app/jobs", nil)
	if err := q.Put(ctx, nil); err != nil {
		return err
	}
	item, err := q.Take(ctx)
	if err != nil {
		return err
	}
	if err = item.Ack(ctx); err != nil {
		_ = item.Release(context.WithoutCancel(ctx)) // a consumer that cannot acknowledge an item gives it back
	}
	return err
}

func usePartitioner(ctx context.Context, c *zk.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, _ := NewPartitioner(c, "/app/parts", "a", []string{"one"}, nil)
	return unlessDone(p.Run(ctx, func(context.Context, string, *Handle) error { return errDone }))
}

// errDone ends a Run whose work is done.
var errDone = errors.New("done")

func unlessDone(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

func useWork(ctx context.Context, c *zk.Client) error {
	w, _ := NewWork(c, "/app/work", nil)
	if err := w.Submit(ctx, "task", nil); err != nil {
		return err
	}
	return unlessDone(w.Run(ctx, "a", func(context.Context, Task, *Handle) error { return errDone }))
}

func useConfig(ctx context.Context, c *zk.Client) error {
	e, _ := NewElection(c, "/app/election", "a", nil)
	h, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	err = PublishConfig(ctx, h, "/app/config", []byte("x"), nil)
	if err == nil {
		for _, err = range WatchConfig(ctx, c, "/app/config", nil) {
			break
		}
	}
	return errors.Join(err, e.Resign(ctx))
}

// typed reports whether the error is one that a caller can tell apart from others.
func typed(err error) bool {
	var code wire.Code
	var lost *zk.UnknownOutcomeError
	var ended *LostError
	var owned *OwnedError
	var foreign *DataError
	return errors.As(err, &code) || errors.As(err, &lost) || errors.As(err, &ended) || errors.As(err, &owned) || errors.As(err, &foreign) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrNotLeader) ||
		errors.Is(err, ErrTaken) || errors.Is(err, ErrNoParent)
}

// suffers runs a use while a fault harms it. It fails the test unless the use ends in one of the allowed
// ways and leaves nothing behind afterwards. If stays is set, it is an error with which the server
// refuses a removal, and what could not be removed may stay.
func suffers(t *testing.T, s *fakeServer, name string, use func(context.Context, *zk.Client) error, stays error) {
	t.Helper()
	c := s.connect(zk.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := make(chan error, 1)
	go func() { out <- use(ctx, c) }()
	var err error
	select {
	case err = <-out:
	case <-time.After(3 * time.Minute):
		t.Errorf("%s: has not returned two minutes after its context ended", name)
		s.hook(nil)
		<-out
	}
	if err != nil && !typed(err) {
		t.Errorf("%s: %T is not typed: %v", name, err, err)
	}
	s.hook(nil)
	time.Sleep(time.Minute)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, n := range s.nodes {
		if n.stat.EphemeralOwner != 0 && (stays == nil || !errors.Is(err, stays)) {
			t.Errorf("%s: %s is left over of session %v after: %v", name, path, n.stat.EphemeralOwner, err)
		}
	}
}

// harmfulOps are the requests that a test refuses. Servers check no ACL for others.
var harmfulOps = []wire.OpCode{wire.OpCreate2, wire.OpMulti, wire.OpMultiRead, wire.OpGetData, wire.OpGetChildren2, wire.OpSetData,
	wire.OpAddWatch}

// TestEveryRecipeMayBeRefused checks each recipe against ACLs that forbid one kind of request after the
// other, and against quotas that are reached.
func TestEveryRecipeMayBeRefused(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			for _, code := range []wire.Code{wire.ErrNoAuth, wire.ErrQuotaExceeded} {
				for _, op := range harmfulOps {
					bubble(t, func(t *testing.T, s *fakeServer) {
						s.put("/app", "")
						s.refusal = code
						s.hook(func(_ *peer, did wire.OpCode, _ string) fate {
							if did == op {
								return deny
							}
							return normal
						})
						var stays error
						if op == wire.OpMulti {
							stays = code // the server also refuses the requests that remove the znode
						}
						if op == wire.OpGetData && u.name == "transaction" {
							stays = code // a vote is a promise, and stays
						}
						suffers(t, s, fmt.Sprintf("%v answered with %v", op, code), u.use, stays)
					})
				}
			}
		})
	}
}

// TestRefusedRemovalIsReported checks that a caller that gives up learns from the error that
// something could not be removed.
func TestRefusedRemovalIsReported(t *testing.T) {
	told := map[string]bool{"lock": true, "read lock": true, "write lock": true, "semaphore": true, "several locks": true,
		"registration": true, "group": true, "discovery": true, "value": true, "counter": true, "ids": true}
	for _, u := range uses {
		if !told[u.name] {
			continue // removing what this recipe creates takes more than a delete
		}
		bubble(t, func(t *testing.T, s *fakeServer) {
			s.put("/app", "")
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpDelete {
					return deny
				}
				return normal
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := u.use(ctx, s.connect(zk.Options{})); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("%s: %v", u.name, err)
			}
		})
	}
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		campaign(t, e)
		published()
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpMulti {
				return deny
			}
			return normal
		})
		if err := e.Resign(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("election: %v", err)
		}
	})
}

// harms are the faults that the tests cause instead of a request, or directly before it.
var harms = []struct {
	name string
	do   func(s *fakeServer, p *peer) fate
}{
	{"its parents are deleted", func(s *fakeServer, _ *peer) fate { s.clear("/app"); return normal }},
	{"its session is over", func(s *fakeServer, p *peer) fate { s.expire(p.session); return dropAll }},
	{"the answer is lost", func(*fakeServer, *peer) fate { return dropReply }},
	{"the request is lost", func(*fakeServer, *peer) fate { return dropAll }},
	{"the answer comes late", func(*fakeServer, *peer) fate { time.Sleep(4 * time.Second); return normal }},
	{"the answer comes too late", func(*fakeServer, *peer) fate { time.Sleep(20 * time.Second); return dropAll }},
	{"the request is throttled", func(s *fakeServer, _ *peer) fate { return throttle }},
	{"the answer comes twice", func(*fakeServer, *peer) fate { return answerTwice }},
}

// stepsMax is larger than the number of requests that any entry of uses makes.
const stepsMax = 100

// TestEveryRecipeAtEachStep causes each fault at each request of each recipe.
func TestEveryRecipeAtEachStep(t *testing.T) {
	for _, u := range uses {
		for _, h := range harms {
			t.Run(u.name+"/"+h.name, func(t *testing.T) {
				for step, reached := int32(1), true; reached && step < stepsMax; step++ {
					bubble(t, func(t *testing.T, s *fakeServer) {
						s.put("/app", "")
						var n atomic.Int32
						s.hook(func(p *peer, op wire.OpCode, _ string) fate {
							if op == wire.OpPing || op == wire.OpCloseSession || n.Add(1) != step {
								return normal
							}
							return h.do(s, p)
						})
						suffers(t, s, fmt.Sprint("step ", step), u.use, nil)
						reached = n.Load() >= step
					})
				}
			})
		}
	}
}

// clear removes a znode and everything below it, as an operator would.
func (s *fakeServer) clear(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid++
	s.removeAll(path)
}

func (s *fakeServer) removeAll(path string) {
	for name := range s.nodes {
		if len(name) > len(path) && name[:len(path)+1] == path+"/" {
			s.removeAll(name)
		}
	}
	if s.nodes[path] != nil {
		s.remove(path)
	}
}
