package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/zk"
)

// unwatchTime is how long a call that ends tries to remove its watches.
const unwatchTime = time.Second

// absent takes a missing znode as deleted.
func absent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// whileAnswered is a context for what has to be removed from the servers after the
// caller's context has ended: it ends after most, or as soon as the client has no connection,
// without which nothing can be removed.
func whileAnswered(ctx context.Context, c *zk.Client, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	go func() {
		defer cancel()
		for s := c.State(); s.State == zk.Connected; {
			var err error
			if s, err = s.Next(ctx); err != nil {
				return
			}
		}
	}()
	return ctx, cancel
}

// awaitTidy waits until done is closed, while waiting makes sense: see whileAnswered.
func awaitTidy(ctx context.Context, c *zk.Client, done <-chan struct{}, most time.Duration) {
	ctx, cancel := whileAnswered(ctx, c, most)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// unwatch gives a watch up, so that it costs no event later.
func unwatch(ctx context.Context, c *zk.Client, w *zk.Watch) {
	if w == nil {
		return
	}
	ctx, cancel := whileAnswered(ctx, c, unwatchTime)
	defer cancel()
	_ = w.Remove(ctx) // the server forgets it with the connection at the latest
}
