package recipe

import (
	"context"
	"iter"

	"bellwether/internal/claim/cache"
)

// CacheEventType says what a CacheEvent reports.
type CacheEventType int

// The types.
const (
	// NodeAdded: the znode was created. A znode that was deleted and created again gives
	// a NodeRemoved first.
	NodeAdded CacheEventType = iota
	// NodeChanged: the data of the znode was set.
	NodeChanged
	// NodeRemoved: the znode was deleted. Children come before parents.
	NodeRemoved
	// CacheCurrent: all events are told of what existed when Events was called, or of
	// what had changed during a lost connection.
	CacheCurrent
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

// cacheFeed is what one reader of Events has not read. driver.mu guards it.
type cacheFeed struct {
	news cacheNews
	err  error // comes after the news
	more chan struct{}
}

// Events yields every znode as NodeAdded, then CacheCurrent, and then the changes in the
// order in which the Cache saw them. When an event has come, Get returns its result. A
// reader may be slow: unread changes of one znode come as one event, and a znode that
// was created and deleted meanwhile gives none, so the memory for a reader is bounded by
// what it was told and what exists. The second value is the error that ends the
// iteration: the context's, or that of an ended Cache.
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

// batches is Events, as many at a time as there are. An error comes by itself.
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

// subscribe makes a feed, and the events of what is there now.
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

// take empties a feed. An error comes when all before it was taken.
func (k *Cache) take(f *cacheFeed) ([]CacheEvent, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if events := f.news.take(k.tree.Stale()); len(events) > 0 {
		return events, nil
	}
	return nil, f.err
}

// feed gives an event to all feeds. driver.mu is held.
func (k *Cache) feed(e cache.CacheEvent) {
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
