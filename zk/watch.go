package zk

import (
	"context"
	"errors"
	"sync"

	"bellwether/wire"
)

// Event holds what a watch reports. Zxid is the transaction that caused it, or -1 if the
// server does not say so (before 3.9). An event of type Reconnected, which only a Stream
// delivers, means that the connection was lost and is back: events after Zxid may have
// been missed, so the program must read the state again.
type Event struct {
	Type EventType
	Path string
	Zxid Zxid
}

// Watch waits for one event at one path. GetW, ExistsW and ChildrenW make it. It
// survives reconnects. It ends with the event, with Remove, with the session
// (ErrSessionExpired) or with the client (ErrClosed, ErrAuthFailed).
type Watch struct {
	c    *Client
	path string // in the server's form, with the chroot
	kind watchKind
	by   *Stream // the stream of Listen whose Since has set it; guarded by Client.mu
	done chan struct{}
	// event and err are set before done is closed.
	event Event
	err   error
}

// newWatch makes a watch that is not registered yet, neither on the client nor on a
// server.
func (c *Client) newWatch(kind watchKind) *Watch {
	return &Watch{c: c, kind: kind, done: make(chan struct{})}
}

// end is called once, with Client.mu held, by the code that takes the watch out of the
// table.
func (w *Watch) end(e Event, err error) {
	w.event, w.err = e, err
	close(w.done)
}

// Done returns a channel that is closed when the watch has ended, so that Wait returns at
// once.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Wait returns the event, or the reason why none will come. If the context ends, only
// this wait ends, not the watch.
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

// Remove ends the watch: on the client at once, and then on the server if no other watch
// of this client needs it there. Wait then returns ErrNoWatcher. Without a connection
// there is nothing to remove on a server.
func (w *Watch) Remove(ctx context.Context) error {
	if !w.drop() {
		return nil
	}
	return w.tell(ctx)
}

// drop ends the watch on the client. It reports whether the server may still have the
// watch.
func (w *Watch) drop() bool {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	stood := c.watches.dropWatch(w)
	if stood {
		w.end(Event{}, wire.ErrNoWatcher)
	}
	return stood && c.link != nil
}

// tell asks the server to end the watch too.
func (w *Watch) tell(ctx context.Context) error {
	return w.c.removeWatches(ctx, w.path, w.removedAs())
}

// removedAs returns the kind of watches that a removeWatches names to remove this watch.
func (w *Watch) removedAs() wire.WatcherType {
	if w.kind == childWatch {
		return wire.WatcherChildren
	}
	return wire.WatcherData
}

// removersMax is how many watches are removed at once.
const removersMax = 32

// RemoveWatches removes many watches, as Watch.Remove removes one. It removes all of
// them from the client at once, and then from the server, several at a time, until the
// server cannot remove one. The first is sent alone: servers before 3.5 cannot remove
// watches and are not asked again.
func RemoveWatches(ctx context.Context, watches ...*Watch) error {
	var left []*Watch
	for _, w := range watches {
		if w.drop() {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		return nil
	}
	if err := left[0].tell(ctx); err != nil {
		return err
	}
	next := make(chan *Watch) // unbuffered, so that a remover only takes what it sends
	errs := make(chan error, removersMax)
	for range removersMax {
		go func() {
			var err error
			for w := range next {
				if err == nil {
					err = w.tell(ctx)
				}
			}
			errs <- err
		}()
	}
	for _, w := range left[1:] {
		next <- w
	}
	close(next)
	var all []error
	for range removersMax {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// Stream is a watch that stays: it delivers every event from the call of AddWatch to
// Close, in order. Only one goroutine at a time may call Next.
type Stream struct {
	c     *Client
	path  string // in the server's form, with the chroot
	shown string // in the caller's form
	mode  WatchMode
	local bool // made by Listen: the server does not know it
	max   int
	more  chan struct{} // capacity 1: something has changed

	recheck *recheck // the running Since; guarded by Client.mu

	mu     sync.Mutex
	events []Event // events that Next has not returned yet
	err    error   // why no more events follow
	last   Zxid
}

// AddWatch watches a path, which need not exist, for every event. With WatchPersistent
// these are the events of the znode and the creation and deletion of its children; with
// WatchPersistentRecursive the creation, deletion and change of every znode of the
// subtree. Servers before 3.6 give ErrUnsupported. Servers before 3.9 keep one mode for
// each path, the last one that a client asked for.
func (c *Client) AddWatch(ctx context.Context, path string, mode WatchMode) (*Stream, error) {
	full, err := c.abs(path, false)
	if err == nil && mode != wire.WatchPersistent && mode != wire.WatchPersistentRecursive {
		err = ErrBadArguments
	}
	if err != nil {
		return nil, opError(wire.OpAddWatch, path, err)
	}
	s := c.newStream(full, path, mode)
	k := c.newCall(wire.OpAddWatch)
	k.path, k.stream = full, s
	if err := c.do(ctx, k, path, &wire.AddWatchRequest{Path: full, Mode: mode}, nil); err != nil {
		return nil, err
	}
	k.free()
	return s, nil
}

// wants reports whether the stream delivers an event. The server may have sent the event
// for another watch of the connection. at is the path at which the stream is registered:
// the path of the event or one above it.
func (s *Stream) wants(e wire.WatcherEvent, at string) bool {
	if s.local {
		return true
	}
	if s.mode == wire.WatchPersistentRecursive {
		return e.Type != wire.EventNodeChildrenChanged
	}
	return at == e.Path
}

// push appends an event. It returns false if the stream is over. Client.mu is held.
func (s *Stream) push(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && len(s.events) >= s.max {
		s.err, s.last = &OverflowError{Max: s.max}, s.c.zxidAnswered
	}
	if s.err == nil {
		s.events = append(s.events, e)
	}
	s.signal()
	return s.err == nil
}

// end closes the stream; events that it holds can still be read. Client.mu is held.
func (s *Stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err, s.last = err, s.c.zxidAnswered
	}
	s.signal()
}

func (s *Stream) signal() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// take returns the oldest event that is not delivered.
func (s *Stream) take() (e Event, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == 0 {
		return e, false, s.err
	}
	e = s.events[0]
	if s.events = s.events[1:]; len(s.events) == 0 {
		s.events = nil
	}
	if len(s.events) > 0 || s.err != nil {
		s.signal()
	}
	return e, true, nil
}

// Next waits for the next event. An error other than the context's is final
// and comes after all the events before it: the stream was closed (ErrClosed),
// overflowed (*OverflowError), its session expired (ErrSessionExpired), or
// the server now connected does not know persistent watches (ErrUnsupported).
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		e, ok, err := s.take()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Ready returns a channel that has a value when there is something for Next. It is for
// select statements: call Next once for each value received.
func (s *Stream) Ready() <-chan struct{} { return s.more }

// Close ends the stream: on the client at once, and then on the server if no other watch
// of this client needs it there. For a stream of Listen it removes the watches that its
// Since has set.
func (s *Stream) Close(ctx context.Context) error {
	c := s.c
	c.mu.Lock()
	stood := c.watches.dropStream(s)
	s.end(ErrClosed)
	linked := c.link != nil
	assumed := c.watches.assumed(s)
	c.mu.Unlock()
	switch {
	case s.local:
		return RemoveWatches(ctx, assumed...)
	case !stood || !linked:
		return nil
	}
	return c.removeWatches(ctx, s.path, wire.WatcherAny)
}

// removal returns a removeWatches for whose answer nobody waits. Client.mu is held.
func (c *Client) removal(path string, typ wire.WatcherType) *call {
	k := c.ownCall(wire.OpRemoveWatches, &wire.WatchesRequest{Path: path, Type: typ}, func(*call) {})
	k.path, k.removes = path, typ
	return k
}

// removeWatches asks the server to remove watches, if nothing else relies on them by
// then. An answer that it has no such watch, or does not know how to remove one, counts
// as success.
func (c *Client) removeWatches(ctx context.Context, path string, typ wire.WatcherType) error {
	k := c.newCall(wire.OpRemoveWatches)
	k.path, k.removes = path, typ
	err := c.do(ctx, k, c.rel(path), &wire.WatchesRequest{Path: path, Type: typ}, nil)
	if err == nil {
		k.free()
		return nil
	}
	if errors.Is(err, wire.ErrNoWatcher) || errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}
