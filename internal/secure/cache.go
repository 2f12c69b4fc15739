package secure

import (
	"context"
	"sync"
	"time"
)

// cache keeps values that were loaded over the network, by key. If several callers need the same value at
// the same time, one of them loads it and the others wait.
type cache[V any] struct {
	max   int           // most entries; when there are more, an arbitrary one is dropped
	age   time.Duration // time after which a value is loaded again
	retry time.Duration // time after which a load that failed, or returned no usable value, is repeated
	now   func() time.Time

	mu      sync.Mutex
	entries map[string]*entry[V]
}

// slowLoad is how long a load must have taken before its failure is kept if its caller has given up. A
// client that ends its connection at once must not make others believe that an address does not answer.
const slowLoad = time.Second

// entry is one value. loading is not nil while a caller loads the value; that caller closes it at the
// end.
type entry[V any] struct {
	value   V
	loaded  bool  // value is set, by the last load that succeeded
	err     error // error of the last load
	at      time.Time
	loading chan struct{}
}

// get returns the value of a key. If there is none, or it is too old, load returns a new one. If load
// fails, get returns the old value, provided that good accepts it. When ctx ends, get returns. If load
// fails because ctx has ended, and took less than slowLoad, the failure is not kept.
func (c *cache[V]) get(ctx context.Context, key string, good func(V) bool, load func(context.Context) (V, error)) (V, error) {
	for {
		c.mu.Lock()
		e := c.entry(key)
		if wait := e.loading; wait != nil {
			c.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				var none V
				return none, ctx.Err()
			}
		}
		usable := e.loaded && good(e.value)
		age := c.retry
		if usable && e.err == nil {
			age = c.age
		}
		if !e.at.IsZero() && c.now().Sub(e.at) < age {
			defer c.mu.Unlock()
			return e.result(usable)
		}
		e.loading = make(chan struct{})
		c.mu.Unlock()

		began := time.Now()
		v, err := load(ctx)

		c.mu.Lock()
		defer c.mu.Unlock()
		close(e.loading)
		e.loading = nil
		if err != nil && ctx.Err() != nil && time.Since(began) < slowLoad {
			// The caller has given up early, which says nothing about the address: the next caller loads the value.
			return v, err
		}
		e.err, e.at = err, c.now()
		if err == nil {
			e.value, e.loaded = v, true
		}
		return e.result(e.loaded && good(e.value))
	}
}

// outdate makes get load every value again when it is next asked for, as if each were too old.
func (c *cache[V]) outdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.at = time.Time{}
	}
}

// result returns the value if it is usable, and otherwise why there is none.
func (e *entry[V]) result(usable bool) (V, error) {
	if usable || e.err == nil {
		return e.value, nil // the caller reports what is wrong with a value that is not good
	}
	return e.value, e.err
}

// entry returns the entry of a key, and creates it if necessary. The caller holds the lock.
func (c *cache[V]) entry(key string) *entry[V] {
	if e := c.entries[key]; e != nil {
		return e
	}
	if c.entries == nil {
		c.entries = map[string]*entry[V]{}
	}
	for other, e := range c.entries {
		if len(c.entries) < c.max {
			break
		}
		if e.loading == nil {
			delete(c.entries, other)
		}
	}
	e := new(entry[V])
	c.entries[key] = e
	return e
}
