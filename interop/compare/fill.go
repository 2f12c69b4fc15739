package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"bellwether/zk"
)

// The shape of the tree that fill creates.
const (
	perParent = 1000 // children of one node
	inFlight  = 500  // outstanding creates
	size      = 100  // bytes of each node
)

// fill creates n znodes below top, or below the root if top is "".
func fill(ctx context.Context, addr, top string, n int) error {
	c, err := zk.Connect(ctx, addr, nil)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	for parent := range (n + perParent - 1) / perParent {
		if _, _, err := c.Create(ctx, fmt.Sprintf("%s/%06d", top, parent), nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			data := make([]byte, size)
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				path := fmt.Sprintf("%s/%06d/%06d", top, i/perParent, i%perParent)
				if _, _, err := c.Create(ctx, path, data); err != nil {
					cancel(fmt.Errorf("create %s: %w", path, err))
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
