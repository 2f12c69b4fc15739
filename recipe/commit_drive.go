package recipe

import (
	"context"

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
}

// drive runs the state machine until it is over, or the context is.
func (b *bidder) drive(ctx context.Context, path string, m txMachine, act actor) (Decision, error) {
	act.d, act.path, act.m = b.newDrive(m, func() bool { return m.State().Phase == claim.TxOver }), path, m
	act.d.stepped = act.stepped
	err := act.d.run(ctx)
	s := m.State()
	if err == nil && s.Err != nil {
		err = &zk.OpError{Op: "commit", Path: path, Err: s.Err}
	}
	return s.Decision, err
}

// stepped has the application do what is its turn now.
func (a *actor) stepped(ctx context.Context, ev claim.Event) {
	switch ev.(type) {
	case claim.Prepared, claim.Carried:
		a.acting = false
	}
	s := a.m.State()
	if !a.acting && (s.Phase == claim.TxPrepare || s.Phase == claim.TxDecided && !s.Carried) {
		a.acting = true
		a.d.threads.Go(func() { a.perform(ctx, s) })
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
