package bench

import (
	"context"
	"strconv"

	"bellwether/zk"
)

// A filled tree is created by transactions of at most fillOps creates and about fillBytes bytes, of which fillWidth
// are in flight.
const (
	fillOps   = 200
	fillBytes = 256 << 10
	fillWidth = 16
)

// createBytes is about what a create takes in a transaction besides its data.
const createBytes = 100

// Fill creates a root with n keys of some size, for loads on a filled tree: [Load.Filled] and [Watches.Filled]. It needs
// much less time than single creates. Nothing deletes them.
func Fill(ctx context.Context, c *zk.Client, root string, n, size int) error {
	if _, _, err := c.Create(ctx, root, nil); err != nil {
		return err
	}
	if err := makeShards(ctx, c, root, n); err != nil {
		return err
	}
	return fill(ctx, c, n, size, func(i int) string { return key(root, i) })
}

// FillFlat creates a root with n children of some size, for [List] and [Ephemerals] on a filled tree. Nothing deletes
// them.
func FillFlat(ctx context.Context, c *zk.Client, root string, n, size int) error {
	if _, _, err := c.Create(ctx, root, nil); err != nil {
		return err
	}
	return makeChildren(ctx, c, root, n, size)
}

// makeChildren creates n children of the root.
func makeChildren(ctx context.Context, c *zk.Client, root string, n, size int) error {
	return fill(ctx, c, n, size, func(i int) string { return root + "/" + strconv.Itoa(i) })
}

// fill creates n znodes, many in one transaction.
func fill(ctx context.Context, c *zk.Client, n, size int, path func(i int) string) error {
	data := make([]byte, size)
	batch := max(1, min(fillOps, fillBytes/(size+createBytes)))
	return inFlight((n+batch-1)/batch, fillWidth, func(b int) error {
		ops := make([]zk.Op, 0, batch)
		for i := b * batch; i < min(n, (b+1)*batch); i++ {
			ops = append(ops, zk.CreateOp(path(i), data))
		}
		_, err := c.Multi(ctx, ops...)
		return err
	})
}
