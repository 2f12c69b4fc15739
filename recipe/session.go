package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/zk"
)

// unwatchTime is how long who leaves tries to tell the server of it.
const unwatchTime = time.Second

// absent takes a missing znode as deleted.
func absent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// inBackground waits for f, but no longer than that.
func inBackground(f func(), most time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// unwatch gives a watch up, so that it costs no event later.
func unwatch(ctx context.Context, w *zk.Watch) {
	if w == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
	defer cancel()
	_ = w.Remove(ctx) // the server forgets it with the connection at the latest
}
