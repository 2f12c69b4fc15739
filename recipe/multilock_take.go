package recipe

import (
	"context"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
)

// multiLockRun is one call of MultiLock.Lock or TryLock. It carries out the operations of a lines.MultiLock.
type multiLockRun struct {
	*driver
	locks []*Lock
	try   bool
	m     *lines.MultiLock
	h     *MultiHold
	stop  context.CancelFunc // cancels the lock that is being taken
}

// lockTaken is a lines.LockTaken with the hold.
type lockTaken struct {
	lines.LockTaken
	hold *Hold
}

// multiLockMachine is a lines.MultiLock with the holds that it has taken. Before each event it steps the losses of holds,
// because the event may be a consequence of a loss.
type multiLockMachine struct {
	*lines.MultiLock
	h *MultiHold
}

func (m multiLockMachine) Step(now claim.Moment, ev claim.Event) {
	if took, ok := ev.(lockTaken); ok {
		m.h.holds = append(m.h.holds, took.hold)
		ev = took.LockTaken
	}
	for _, one := range m.h.holds {
		if one.Lost() != nil {
			m.MultiLock.Step(now, lines.LockLost{Path: one.path()})
		}
	}
	m.MultiLock.Step(now, ev)
}

// acquire drives the machine until all locks are held or the machine is over.
func (m *MultiLock) acquire(ctx context.Context, try bool) (*MultiHold, error) {
	var paths []string
	for _, l := range m.locks {
		paths = append(paths, l.path)
	}
	t := &multiLockRun{locks: m.locks, try: try, m: lines.NewMultiLock(paths)}
	t.h = &MultiHold{m: t.m}
	t.driver = m.locks[0].newDriver(multiLockMachine{t.m, t.h})
	t.enough = t.m.Held
	t.start = func(driven context.Context, op claim.Op) { t.begin(ctx, driven, op) }
	_ = t.run(context.WithoutCancel(ctx)) // when ctx ends, the lock that is being taken fails, and the machine then gives back the others
	if t.m.Over() {
		return nil, t.m.Err()
	}
	t.h.join()
	return t.h, nil
}

// begin begins an operation. ctx is the context of Lock, and driven is the context of the
// driver.
func (t *multiLockRun) begin(ctx, driven context.Context, op claim.Op) {
	switch op.Kind {
	case claim.OpTake:
		t.take(ctx, driven, op.Path)
	case claim.OpStopTaking:
		t.stop()
	case claim.OpGiveBack:
		t.giveBack(ctx, driven, op.Path)
	}
}

// take takes one lock. When its hold ends, a Tick wakes the loop, so that the machine learns of the loss.
func (t *multiLockRun) take(ctx, driven context.Context, path string) {
	lock := t.locks[slices.IndexFunc(t.locks, func(l *Lock) bool { return l.path == path })]
	ctx, t.stop = context.WithCancel(ctx)
	stop := t.stop
	t.threads.Go(func() {
		defer stop()
		hold, err := lock.acquire(ctx, t.try)
		if err != nil {
			t.tell(driven, lines.LockRefused{Path: path, Err: err})
			return
		}
		context.AfterFunc(hold.ctx, func() { t.tell(driven, claim.Tick{}) })
		t.tell(driven, lockTaken{lines.LockTaken{Path: path}, hold})
	})
}

// giveBack releases a lock. It waits until the bid is gone, for cleanUp at most; the rest continues in the background.
func (t *multiLockRun) giveBack(ctx, driven context.Context, path string) {
	hold := t.h.at(path)
	t.h.holds = slices.DeleteFunc(t.h.holds, func(one *Hold) bool { return one == hold })
	hold.drop()
	bye, cancel := whileConnected(ctx, t.a.c, t.a.cleanUp)
	t.threads.Go(func() {
		defer cancel()
		_ = hold.Release(bye)
		t.tell(driven, lines.LockGone{Path: path})
	})
}
