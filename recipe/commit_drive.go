package recipe

import (
	"context"
	"sync"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// txMachine is a claim.Site or a claim.Coordinator.
type txMachine interface {
	stepper
	State() claim.CommitState
}

// actor does what the state machine leaves to the application.
type actor struct {
	prepare func(context.Context, Tx) error
	decided func(context.Context, Tx, Decision) error

	d      *drive
	path   string
	m      txMachine
	acting bool
	calls  sync.WaitGroup // of the application

	mu    sync.Mutex // guards what follows, and that no call begins when it is over
	over  bool
	known Decision
}

// outcome is what became of driving a state machine.
type outcome struct {
	decision Decision
	err      error
}

// drive runs the state machine until it is over. When the context ends it is
// given up: what others would wait for is taken away, which is waited for for a
// while, and goes on in the background after that. No call of the application
// outlasts it.
func (b *bidder) drive(ctx context.Context, path string, m txMachine, act *actor) (Decision, error) {
	calls, stop := context.WithCancel(ctx)
	defer act.end(stop)
	act.d, act.path, act.m = b.newDrive(m, func() bool { return m.State().Phase == claim.TxOver }), path, m
	act.d.ending = claim.Resign{}
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
		inBackground(func() { <-done }, b.opt.CleanUp)
	}
	select {
	case o := <-ended:
		return o.decision, o.err
	default:
		act.mu.Lock()
		defer act.mu.Unlock()
		return act.known, ctx.Err()
	}
}

// outcome is what became of it when run has returned err.
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

// end waits for the application.
func (a *actor) end(stop context.CancelFunc) {
	stop()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.calls.Wait()
}

// stepped has the application do what is its turn now.
func (a *actor) stepped(ctx context.Context, ev claim.Event) {
	switch ev.(type) {
	case claim.Prepared, claim.Carried:
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

// perform calls the application. Who cannot prepare votes to abort; who
// cannot carry out a decision has to do so later.
func (a *actor) perform(ctx context.Context, s claim.CommitState) {
	tx := Tx{Path: a.path, Sites: s.Tx.Sites, Data: s.Tx.Data}
	if s.Phase == claim.TxPrepare {
		vote := Commit
		if err := a.prepare(ctx, tx); err != nil {
			vote = Abort
		}
		a.d.tell(ctx, claim.Prepared{Vote: vote})
		return
	}
	if err := a.decided(ctx, tx, s.Decision); err != nil {
		a.d.failed <- err
		return
	}
	a.d.tell(ctx, claim.Carried{})
}
