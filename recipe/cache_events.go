package recipe

import (
	"context"
	"iter"

	"bellwether/internal/claim/cache"
)

// CacheEventType says what a CacheEvent reports.
type CacheEventType int

// The types of a CacheEvent.
const (
	// NodeAdded: the znode was created. For a znode that was deleted and created again, a
	// NodeRemoved comes first.
	NodeAdded CacheEventType = iota
	// NodeChanged: the data of the znode was set.
	NodeChanged
	// NodeRemoved: the znode was deleted. The events of children come before those of their parents.
	NodeRemoved
	// CacheCurrent: the reader has received an event for everything that existed when Events was called. After a lost
	// connection it means that the reader has received all changes that happened meanwhile.
	CacheCurrent
)

func (t CacheEventType) String() string {
	return [...]string{"added", "changed", "removed", "current"}[t]
}

// CacheEvent is a change of a Cache.
type CacheEvent struct {
	Type CacheEventType
	Node Node // the new state; for NodeRemoved the last state
	Old  Node // the state before a NodeChanged
}

// cacheFeed holds the events that one reader of Events has not read yet. driver.mu guards it.
type cacheFeed struct {
	news cacheNews
	err  error // reported after all news was read
	more chan struct{}
}

// Events yields every znode as NodeAdded, then CacheCurrent, and then the changes in the
// order in which the Cache saw them. After an event, Get returns a state that includes it. A
// reader may be slow: unread changes of one znode are merged into one event, and a znode that
// was created and deleted before the reader read it gives no event. So the unread events of a
// reader are at most as many as the znodes that it knows and those that exist. The second value is the error
// that ends the iteration: the context's, or the one with which the Cache has ended.
func (k *Cache) Events(ctx context.Context) iter.Seq2[CacheEvent, error] {
	return func(yield func(CacheEvent, error) bool) {
		for events, err := range k.batches(ctx) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(CacheEvent{}, err)
				return
			}
		}
	}
}

// batches yields the same events as Events, in slices of all that are ready. An error comes with no events.
func (k *Cache) batches(ctx context.Context) iter.Seq2[[]CacheEvent, error] {
	return func(yield func([]CacheEvent, error) bool) {
		f, events := k.subscribe()
		defer k.unsubscribe(f)
		for {
			if len(events) > 0 && !yield(events, nil) {
				return
			}
			err := ctx.Err()
			if err == nil {
				events, err = k.take(f)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(events) == 0 {
				select {
				case <-f.more:
				case <-ctx.Done():
				}
			}
		}
	}
}

// subscribe makes a feed. It also returns the events that describe the current state.
func (k *Cache) subscribe() (*cacheFeed, []CacheEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &cacheFeed{more: make(chan struct{}, 1), err: k.err}
	k.feeds[f] = true
	all := k.tree.All()
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

// take removes and returns all events of a feed. It returns the feed's error once no event is left.
func (k *Cache) take(f *cacheFeed) ([]CacheEvent, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if events := f.news.take(k.tree.Stale()); len(events) > 0 {
		return events, nil
	}
	return nil, f.err
}

// feed adds an event to all feeds. driver.mu is held.
func (k *Cache) feed(e cache.Event) {
	k.n++
	for f := range k.feeds {
		if f.err == nil {
			f.news.add(e)
			f.signal()
		}
	}
}

func (f *cacheFeed) signal() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}
