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
	State() commit.State
}

// application calls the functions of the application when the machine asks for it.
//
// Invariants: at most one call runs at a time, and no call begins once over is true. Only the driver's loop uses
// calling. failed is read only after all calls have ended.
type application struct {
	prepare func(context.Context, Tx) error
	decided func(context.Context, Tx, Decision) error

	d       *driver
	path    string
	m       txMachine
	calling bool
	calls   sync.WaitGroup // counts the running calls of the application

	mu     sync.Mutex // guards the fields below
	over   bool
	known  Decision
	failed []error // the errors that the application's calls returned
}

// commit drives the machine until it is over. When the context ends, the machine resigns:
// it removes the znodes for which others would wait. commit waits at most cleanUp for the
// removal, which then continues in the background. All calls of the application end
// before commit returns.
func (a *agent) commit(ctx context.Context, path string, m txMachine, act *application) (d Decision, err error) {
	start, event := time.Now(), "commit"
	if _, site := m.(*commit.Site); site {
		event = "join"
	}
	defer func() { a.observed(event, path, start, err) }()
	calls, stop := context.WithCancel(ctx)
	act.d, act.path, act.m = a.newDriver(m), path, m
	act.d.afterStep = func(_ context.Context, ev claim.Event) { act.stepped(calls, ev) }
	ended := act.d.runAside(ctx)
	act.end(stop)
	select {
	case err := <-ended:
		d, err := act.result(ctx, err)
		return d, act.verdict(ctx, err)
	default: // the machine continues in the background
		act.mu.Lock()
		defer act.mu.Unlock()
		return act.known, act.verdict(ctx, ctx.Err())
	}
}

// verdict joins err with the errors of the application that err does not wrap. It leaves out errors that say only
// that the context ended. All calls of the application must have ended.
func (a *application) verdict(ctx context.Context, err error) error {
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

// result returns the result of the machine after run has returned err.
func (a *application) result(ctx context.Context, err error) (Decision, error) {
	s := a.m.State()
	switch {
	case err != nil:
	case s.Err != nil:
		err = &zk.OpError{Op: "commit", Path: a.path, Err: s.Err}
	case s.Withdrawn:
		err = ctx.Err()
	}
	return s.Decision, err
}

// end cancels the calls of the application and waits for them.
func (a *application) end(stop context.CancelFunc) {
	stop()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.calls.Wait()
}

// stepped starts a call of the application if the machine asks for one and none is running.
func (a *application) stepped(ctx context.Context, ev claim.Event) {
	switch ev.(type) {
	case commit.Prepared, commit.Carried:
		a.calling = false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.m.State()
	a.known = s.Decision
	if !a.calling && !a.over && s.Due() {
		a.calling = true
		a.calls.Go(func() { a.perform(ctx, s) })
	}
}

// perform calls the application. An error of prepare is a vote to abort. An error of decided ends the
// machine; the decision must then be carried out later.
func (a *application) perform(ctx context.Context, s commit.State) {
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
func (a *application) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed, err)
}
