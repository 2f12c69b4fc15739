package zk

import (
	"context"
	"log/slog"
	"time"

	"bellwether/internal/inorder"
)

// queuedHandler is a slog.Handler that puts its records into a queue. So a handler that
// blocks does not delay the client, and a handler may itself close the client.
type queuedHandler struct {
	slog.Handler
	queue *inorder.Queue
}

func (h queuedHandler) Handle(ctx context.Context, r slog.Record) error {
	ctx = context.WithoutCancel(ctx)
	r = r.Clone()
	h.queue.Add(func() { _ = h.Handler.Handle(ctx, r) })
	return nil
}

func (h queuedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queuedHandler{h.Handler.WithAttrs(attrs), h.queue}
}

func (h queuedHandler) WithGroup(name string) slog.Handler {
	return queuedHandler{h.Handler.WithGroup(name), h.queue}
}

// tellMissed returns a function that logs how many records were dropped because the queue
// was full.
func tellMissed(to slog.Handler) func(n int) {
	return func(n int) {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "log records were dropped: the Logger takes too long", 0)
		r.Add("records", n)
		_ = to.Handle(context.Background(), r)
	}
}
