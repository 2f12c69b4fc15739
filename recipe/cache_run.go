package recipe

import (
	"cmp"
	"context"
	"errors"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/zk"
)

// run drives the machine until it is over, and then removes the watches.
func (k *Cache) run(ctx context.Context) {
	defer close(k.gone)
	_ = k.driver.run(ctx) // the machine holds the error
	if k.stream != nil || len(k.oneShot) > 0 {
		k.closeStream(ctx)
	}
}

// publish gives the events of a step to the feeds. driver.mu is held, so that a reader who has an event finds its
// znode in the Cache.
func (k *Cache) publish(claim.Moment, claim.Event) {
	for _, e := range k.tree.Events() {
		k.feed(e)
		if e.Type == cache.Current && !k.loaded() {
			k.observe("load", nil)
			close(k.ready)
		}
	}
	if k.tree.Over() && k.err == nil {
		k.end()
	}
}

func (k *Cache) loaded() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

// observe reports an event that began at Cache.began and ends now. driver.mu is held.
func (k *Cache) observe(event string, err error) {
	k.observed(event, k.path, k.began, err)
	k.began = time.Now()
}

// end sets the error of the Cache and of all feeds. driver.mu is held.
func (k *Cache) end() {
	switch k.err = k.tree.Err(); {
	case errors.Is(k.err, cache.ErrFull):
		k.err = &CacheFullError{Root: k.path, NodesMax: k.opt.NodesMax, BytesMax: k.opt.BytesMax}
	case k.err == nil || errors.Is(k.err, zk.ErrClosed):
		k.err = cmp.Or(k.c.Err(), error(&closedError{"cache", k.path}))
	}
	if k.loaded() {
		k.observe("follow", k.err)
	} else {
		k.observe("load", k.err)
	}
	for f := range k.feeds {
		if f.err == nil {
			f.err = k.err
		}
		f.signal()
	}
}
