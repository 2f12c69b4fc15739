package recipe

import (
	"context"
	"iter"

	"bellwether/internal/claim"
)

// CacheEventType says what a CacheEvent tells.
type CacheEventType int

// The types.
const (
	NodeAdded    CacheEventType = iota // also one that was deleted and made anew, after its NodeRemoved
	NodeChanged                        // its data was set
	NodeRemoved                        // children before parents
	CacheCurrent                       // all that there is has been told: what was there when Events was called, or what a gap had hidden
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
	news cacheNews
	err  error // comes after the news
	more chan struct{}
}

// Events yields every znode as NodeAdded, then CacheCurrent, and then the
// changes, in the order in which the Cache saw them: when an event has
// come, Get knows of it. A reader may take its time: changes of one znode that are
// unread come as one, and one that came and went meanwhile not at all, so that no
// more is kept for a reader than what it was told and what there is. The second value
// is an error that ends it: the context's, or that of an ended Cache.
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

// take empties a feed. An error comes when all before it was taken.
func (k *Cache) take(f *cacheFeed) ([]CacheEvent, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if events := f.news.take(k.m.Stale()); len(events) > 0 {
		return events, nil
	}
	return nil, f.err
}

// tell gives an event to all feeds. Cache.mu is held.
func (k *Cache) tell(e claim.CacheEvent) {
	k.told++
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
