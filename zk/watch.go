package zk

import (
	"context"

	"bellwether/wire"
)

// Event is what a watch tells. Zxid is the transaction that caused it, -1
// where the server does not say (before 3.9). In a Stream an event of type
// wire.EventNone means that the connection was lost and is back: events
// since may have been missed, so the state must be read again.
type Event struct {
	Type wire.EventType
	Path string
	Zxid wire.Zxid
}

// Watch waits for one event at one path. It is made by GetW, ExistsW and
// ChildrenW, survives reconnects, and ends by the event, by Remove, with the
// session (ErrSessionExpired) or with the client (ErrClosed).
type Watch struct {
	c    *Client
	path string
	done chan struct{}
	// Set before done is closed.
	event Event
	err   error
}

// Done is closed when Wait will return at once.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Wait returns the event, or why there will be none. The end of the context
// ends this wait alone, not the watch.
func (w *Watch) Wait(ctx context.Context) (Event, error) {
	select {
	case <-w.done:
		return w.event, w.err
	default:
	}
	select {
	case <-w.done:
		return w.event, w.err
	case <-ctx.Done():
		return Event{}, ctx.Err()
	}
}

// Remove ends the watch, here at once and then on the server if no other
// watch of this client needs it there. A waiting Wait returns ErrNoWatcher.
func (w *Watch) Remove(ctx context.Context) error { return w.c.removeWatch(ctx, w) }

// Stream is a watch that stays: every event from the moment of AddWatch to
// Close, in order. One goroutine at a time may call Next.
type Stream struct {
	c    *Client
	path string
	mode wire.AddWatchMode
}

// Next waits for the next event. An error other than the context's is final: the
// stream was closed (ErrClosed), overflowed (*OverflowError, after all the
// events before it), its session expired (ErrSessionExpired), or the
// server now connected does not know persistent watches (ErrUnsupported).
func (s *Stream) Next(ctx context.Context) (Event, error) { return s.next(ctx) }

// Close ends the stream, here at once and then on the server if no other
// watch of this client needs it there.
func (s *Stream) Close(ctx context.Context) error { return s.c.closeStream(ctx, s) }

// AddWatch watches a path, which need not exist, for every event: its own and
// those of its direct children's coming and going, or with
// wire.WatchPersistentRecursive the creation, deletion and change of the
// whole subtree. Servers before 3.6 give ErrUnsupported.
func (c *Client) AddWatch(ctx context.Context, path string, mode wire.AddWatchMode) (*Stream, error) {
	return c.addWatch(ctx, path, mode)
}
