package embed

import (
	"context"
	"errors"
	"testing"
)

// TestClosedEnsemble shows that calls that wait for a server of an ensemble return ErrClosed when the ensemble
// is closed, and that no server can be started afterwards.
func TestClosedEnsemble(t *testing.T) {
	for _, o := range []Options{{}, {InMemory: true}} {
		e, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Server(1).Kill(); err != nil {
			t.Fatal(err)
		}
		waits := make(chan error, 2)
		go func() { _, err := e.Client(t.Context(), nil); waits <- err }()
		go func() { _, err := e.Leader(t.Context()); waits <- err }()
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		_, leader := e.Leader(t.Context())
		_, client := e.Client(t.Context(), nil)
		for _, err := range []error{<-waits, <-waits, leader, client, e.AwaitServing(t.Context()), e.Expire(t.Context(), 1), e.Server(1).Start()} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%+v: %v", o, err)
			}
		}
	}
}

// TestStartWithAnEndedContext shows that Start starts nothing if its context has ended.
func TestStartWithAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := Start(ctx, Options{}); err != context.Canceled {
		t.Errorf("started %v, %v", e, err)
	}
}
