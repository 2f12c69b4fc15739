package recipe

import (
	"context"
	"iter"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// CacheEventType says what a CacheEvent tells.
type CacheEventType int

// The types.
const (
	NodeAdded    CacheEventType = iota // also one that was deleted and made anew, after its NodeRemoved
	NodeChanged                        // its data was set
	NodeRemoved                        // children before parents
	CacheCurrent                       // all that was there when Events was called has been told, or a gap is closed
)

func (t CacheEventType) String() string {
	return [...]string{"added", "changed", "removed", "current"}[t]
}

// CacheEvent is a change of a Cache.
type CacheEvent struct {
	Type CacheEventType
	Node Node // as it is now; as it was, for NodeRemoved
	Old  Node // as it was, for NodeChanged
}

// cacheFeed is what one reader of Events has not read. Cache.mu guards it.
type cacheFeed struct {
	events []CacheEvent
	err    error // comes after the events
	more   chan struct{}
}

// Events yields every znode as NodeAdded, then CacheCurrent, and then each
// change, in the order in which the Cache saw them: when an event has
// come, Get knows of it. Changes of one znode in quick succession may come as one. The
// second value is an error that ends it: the context's, that of an ended
// Cache, or a *zk.OverflowError when more than CacheOptions.EventsMax were
// unread; Events may then be called again.
func (k *Cache) Events(ctx context.Context) iter.Seq2[CacheEvent, error] {
	return func(yield func(CacheEvent, error) bool) {
		f, events := k.subscribe()
		defer k.unsubscribe(f)
		for err := error(nil); ; events, err = k.take(f) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err == nil && len(events) == 0 {
				select {
				case <-f.more:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if err != nil {
				yield(CacheEvent{}, err)
				return
			}
		}
	}
}

// subscribe makes a feed, and the events of what is there now.
func (k *Cache) subscribe() (*cacheFeed, []CacheEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &cacheFeed{more: make(chan struct{}, 1), err: k.err}
	k.feeds[f] = true
	all := k.m.All()
	first := make([]CacheEvent, 0, len(all)+1)
	for _, n := range all {
		first = append(first, CacheEvent{Type: NodeAdded, Node: Node(*n)})
	}
	return f, append(first, CacheEvent{Type: CacheCurrent})
}

func (k *Cache) unsubscribe(f *cacheFeed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.feeds, f)
}

// take empties a feed. An error comes when all before it were taken.
func (k *Cache) take(f *cacheFeed) ([]CacheEvent, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	events := f.events
	f.events = nil
	if len(events) > 0 {
		return events, nil
	}
	return nil, f.err
}

// tell gives an event to all feeds. Cache.mu is held.
func (k *Cache) tell(e claim.CacheEvent) {
	k.told++
	for f := range k.feeds {
		switch {
		case f.err != nil:
			continue
		case len(f.events) >= k.opt.EventsMax:
			f.err = &zk.OverflowError{Max: k.opt.EventsMax}
		default:
			f.events = append(f.events, CacheEvent{Type: CacheEventType(e.Type), Node: nodeOf(e.Node), Old: nodeOf(e.Old)})
		}
		f.signal()
	}
}

func (f *cacheFeed) signal() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}
