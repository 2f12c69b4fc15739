package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/zk"
)

// unwatchTime limits how long a call that ends tries to remove its watches.
const unwatchTime = time.Second

// ignoreNoNode returns nil for zk.ErrNoNode, and any other error unchanged.
func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// whileConnected returns a context for removals from the servers after the
// caller's context has ended. It ends after most, or as soon as the client has no connection,
// because nothing can be removed then.
func whileConnected(ctx context.Context, c *zk.Client, most time.Duration) (context.Context, context.CancelFunc) {
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

// awaitCleanUp waits until done is closed, for most at the longest, and only while the client has a connection.
func awaitCleanUp(ctx context.Context, c *zk.Client, done <-chan struct{}, most time.Duration) {
	ctx, cancel := whileConnected(ctx, c, most)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// unwatch removes a watch, so that it causes no event later.
func unwatch(ctx context.Context, c *zk.Client, w *zk.Watch) {
	if w == nil {
		return
	}
	ctx, cancel := whileConnected(ctx, c, unwatchTime)
	defer cancel()
	_ = w.Remove(ctx) // if the request fails, the server drops the watch when the connection ends
}
