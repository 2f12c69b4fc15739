package recipe

import (
	"context"
	"errors"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/zk"
)

// txMachine is a commit.Site or a commit.Coordinator.
type txMachine interface {
	machine
	State() commit.CommitState
}

// actor calls the functions of the application when the machine asks for it.
//
// Invariants: at most one call runs at a time, and no call begins once over is true. The driver's loop alone uses
// acting. failed is read only after all calls have ended.
type actor struct {
	prepare func(context.Context, Tx) error
	decided func(context.Context, Tx, Decision) error

	d      *driver
	path   string
	m      txMachine
	acting bool
	calls  sync.WaitGroup // counts the running calls of the application

	mu     sync.Mutex // guards the fields below
	over   bool
	known  Decision
	failed []error // the errors that the application's calls returned
}

// outcome is the result of driving the machine.
type outcome struct {
	decision Decision
	err      error
}

// commit drives the machine until it is over. When the context ends, the machine resigns: it removes the znodes for
// which others would wait. commit waits for that for cleanUp at most, and the rest continues in the background. All
// calls of the application end before commit returns.
func (a *agent) commit(ctx context.Context, path string, m txMachine, act *actor) (d Decision, err error) {
	start, event := time.Now(), "commit"
	if _, site := m.(*commit.Site); site {
		event = "join"
	}
	defer func() { a.observed(event, path, start, err) }()
	calls, stop := context.WithCancel(ctx)
	act.d, act.path, act.m = a.newDriver(m), path, m
	act.d.resigns = true
	act.d.stepped = func(_ context.Context, ev claim.Event) { act.stepped(calls, ev) }
	ended := make(chan outcome, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := act.d.run(ctx)
		ended <- act.outcome(ctx, err)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		awaitTidy(ctx, a.c, done, a.cleanUp)
	}
	act.end(stop)
	select {
	case o := <-ended:
		return o.decision, act.verdict(ctx, o.err)
	default: // the machine continues in the background
		act.mu.Lock()
		defer act.mu.Unlock()
		return act.known, act.verdict(ctx, ctx.Err())
	}
}

// verdict joins err with the errors of the application that err does not wrap. It leaves out errors that say only
// that the context ended. All calls of the application must have ended.
func (a *actor) verdict(ctx context.Context, err error) error {
	for _, own := range a.failed {
		switch {
		case errors.Is(err, own), ctx.Err() != nil && errors.Is(own, ctx.Err()):
		case err == nil:
			err = own
		default:
			err = errors.Join(err, own)
		}
	}
	return err
}

// outcome returns the result of the machine after run has returned err.
func (a *actor) outcome(ctx context.Context, err error) outcome {
	s := a.m.State()
	switch {
	case err != nil:
	case s.Err != nil:
		err = &zk.OpError{Op: "commit", Path: a.path, Err: s.Err}
	case s.Withdrawn:
		err = ctx.Err()
	}
	return outcome{s.Decision, err}
}

// end cancels the calls of the application and waits for them.
func (a *actor) end(stop context.CancelFunc) {
	stop()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.calls.Wait()
}

// stepped starts a call of the application if the machine asks for one and none is running.
func (a *actor) stepped(ctx context.Context, ev claim.Event) {
	switch ev.(type) {
	case commit.Prepared, commit.Carried:
		a.acting = false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.m.State()
	a.known = s.Decision
	if !a.acting && !a.over && s.Due() {
		a.acting = true
		a.calls.Go(func() { a.perform(ctx, s) })
	}
}

// perform calls the application. An error of prepare is a vote to abort. An error of decided ends the
// machine; the decision must then be carried out later.
func (a *actor) perform(ctx context.Context, s commit.CommitState) {
	tx := Tx{Path: a.path, Sites: s.Tx.Sites, Data: s.Tx.Data}
	if s.Phase == commit.TxPrepare {
		vote := Commit
		if err := a.prepare(ctx, tx); err != nil {
			vote = Abort
			a.note(&PrepareError{Path: a.path, Err: err})
		}
		a.d.tell(ctx, commit.Prepared{Vote: vote})
		return
	}
	if err := a.decided(ctx, tx, s.Decision); err != nil {
		a.note(err)
		a.d.failed <- err
		return
	}
	a.d.tell(ctx, commit.Carried{})
}

// note records an error of the application, which verdict returns to the caller.
func (a *actor) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed, err)
}
