package view

import (
	"sync"
	"time"
)

// cached holds a value that is expensive to compute, so that many viewers cost as much as one.
type cached[T any] struct {
	mu      sync.Mutex
	value   T
	made    time.Time     // zero: no value yet
	pending chan struct{} // closed when the running computation has ended; nil: none runs
}

// get returns the value if it is not older than age, and computes it otherwise. While one caller
// computes it, the others wait for its result.
func (c *cached[T]) get(age time.Duration, compute func() T) T {
	for {
		c.mu.Lock()
		if !c.made.IsZero() && time.Since(c.made) < age {
			defer c.mu.Unlock()
			return c.value
		}
		if wait := c.pending; wait != nil {
			c.mu.Unlock()
			<-wait
			continue
		}
		done := make(chan struct{})
		c.pending = done
		c.mu.Unlock()
		return c.fill(done, compute)
	}
}

func (c *cached[T]) fill(done chan struct{}, compute func() T) (value T) {
	ok := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pending = nil; ok {
			c.value, c.made = value, time.Now()
		}
		close(done)
	}()
	value = compute()
	ok = true
	return value
}
