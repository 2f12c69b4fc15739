package recipe

import (
	"context"
	"slices"
	"sync"

	"bellwether/internal/claim"
)

// takeAll is one Lock of a MultiLock: it carries out what a claim.Several wants.
// The goroutine of run steps that; the others tell it what has come of theirs.
type takeAll struct {
	locks []*Lock
	try   bool

	m      *claim.Several
	h      *MultiHold
	stop   context.CancelFunc // of the lock that is being taken
	unhook []func() bool      // of holds, by whose end it is woken
	told   chan tellAll       // unbuffered
	woken  chan struct{}      // one of the holds is over

	threads sync.WaitGroup
}

// tellAll is what another goroutine has to tell, and the hold that was taken.
type tellAll struct {
	ev   claim.Event
	hold *Hold
}

func (m *MultiLock) acquire(ctx context.Context, try bool) (*MultiHold, error) {
	var paths []string
	for _, l := range m.locks {
		paths = append(paths, l.cfg.Parent)
	}
	t := &takeAll{locks: m.locks, try: try, m: claim.NewSeveral(paths), told: make(chan tellAll), woken: make(chan struct{}, 1)}
	t.h = &MultiHold{m: t.m}
	return t.run(ctx)
}

// run ends when all are held, or the state machine is over: nobody is left then
// who would tell it something.
func (t *takeAll) run(ctx context.Context) (*MultiHold, error) {
	defer t.threads.Wait()
	for t.duties(ctx); !t.m.Held() && !t.m.Over(); t.duties(ctx) {
		select {
		case x := <-t.told:
			t.hear(x)
		case <-t.woken:
			t.look()
		}
	}
	t.forget()
	if t.m.Over() {
		return nil, t.m.Err()
	}
	t.h.join()
	return t.h, nil
}

// hear steps an event, and before it that a hold is lost, of which it may be the consequence.
func (t *takeAll) hear(x tellAll) {
	if x.hold != nil {
		t.h.holds = append(t.h.holds, x.hold)
		t.unhook = append(t.unhook, context.AfterFunc(x.hold.ctx, t.wake))
	}
	t.look()
	t.m.Step(x.ev)
}

func (t *takeAll) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// look steps that a hold is lost, where one is that is not given back.
func (t *takeAll) look() {
	for _, one := range t.h.holds {
		if one.Lost() != nil {
			t.m.Step(claim.LockLost{Path: one.g.h.t.b.cfg.Parent})
		}
	}
}

// forget is not woken by its holds any more.
func (t *takeAll) forget() {
	for _, unhook := range t.unhook {
		unhook()
	}
}

func (t *takeAll) duties(ctx context.Context) {
	for _, d := range t.m.Duties() {
		switch d.Do {
		case claim.DoTake:
			t.take(ctx, d.Path)
		case claim.DoStopTaking:
			t.stop()
		case claim.DoGiveBack:
			t.giveBack(ctx, d.Path)
		}
	}
}

func (t *takeAll) take(ctx context.Context, path string) {
	lock := t.locks[slices.IndexFunc(t.locks, func(l *Lock) bool { return l.cfg.Parent == path })]
	ctx, t.stop = context.WithCancel(ctx)
	stop := t.stop
	t.threads.Go(func() {
		defer stop()
		hold, err := lock.acquire(ctx, t.try)
		if err != nil {
			t.told <- tellAll{ev: claim.LockRefused{Path: path, Err: err}}
		} else {
			t.told <- tellAll{claim.LockTaken{Path: path}, hold}
		}
	})
}

// giveBack ends a hold. That its bid is gone is waited for within a while; what
// is left goes on in the background.
func (t *takeAll) giveBack(ctx context.Context, path string) {
	hold := t.h.at(path)
	t.h.holds = slices.DeleteFunc(t.h.holds, func(one *Hold) bool { return one == hold })
	hold.drop()
	bye, cancel := whileAnswered(ctx, t.locks[0].c, t.locks[0].opt.CleanUp)
	t.threads.Go(func() {
		defer cancel()
		_ = hold.Release(bye)
		t.told <- tellAll{ev: claim.LockGone{Path: path}}
	})
}
