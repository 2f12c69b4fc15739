package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// unwatchTime is how long who leaves tries to tell the server of it.
const unwatchTime = time.Second

// currentSession waits for a session and returns it.
func currentSession(ctx context.Context, c *zk.Client) (wire.SessionID, error) {
	for {
		s := c.State()
		if s.State == zk.Connected {
			return s.Session, nil
		}
		if err := c.Err(); err != nil {
			return 0, err
		}
		if _, err := s.Next(ctx); err != nil {
			return 0, err
		}
	}
}

// isPassing: the error says no more than that the connection or the session
// was lost, and the client goes on, so that trying again makes sense.
func isPassing(c *zk.Client, err error) bool {
	return (errors.Is(err, zk.ErrConnectionLoss) || errors.Is(err, zk.ErrSessionExpired)) && c.Err() == nil
}

// persist tries again while replies are lost; what is tried must take it that
// it has been done already.
func persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, zk.ErrConnectionLoss) || ctx.Err() != nil {
			return err
		}
	}
}

// absent takes a missing znode as deleted.
func absent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// sweep removes an ephemeral znode that the session has made, or may have. It
// is waited for a while, as the context may have ended; what is left goes on
// in the background until it is done or the session ends.
func sweep(ctx context.Context, c *zk.Client, session wire.SessionID, path string) {
	in := zk.InSession(context.WithoutCancel(ctx), session)
	inBackground(func() { _ = persist(in, func() error { return c.Delete(in, path, zk.AnyVersion) }) }, cleanUpDefault)
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
	defer cancel()
	_ = w.Remove(ctx) // the server forgets it with the connection at the latest
}
