package recipe

import (
	"context"
	"errors"
	"path"

	"bellwether/zk"
)

// makeDirs creates what is missing of a path, as persistent znodes.
func makeDirs(ctx context.Context, c *zk.Client, at string, acl zk.ACLs) error {
	return makeDir(ctx, c, at, nil, acl)
}

// makeDir is makeDirs with data for the last of the znodes, should it be missing.
func makeDir(ctx context.Context, c *zk.Client, at string, data []byte, acl zk.ACLs) error {
	if at == "/" {
		return nil
	}
	var opts []zk.CreateOption
	if acl != nil {
		opts = append(opts, acl)
	}
	_, _, err := c.Create(ctx, at, data, opts...)
	if errors.Is(err, zk.ErrNoNode) {
		if err = makeDirs(ctx, c, path.Dir(at), acl); err == nil {
			_, _, err = c.Create(ctx, at, data, opts...)
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
