package recipe

import (
	"context"
	"errors"
	"strings"

	"bellwether/zk"
)

// makeDirs creates what is missing of a path, as persistent znodes.
func makeDirs(ctx context.Context, c *zk.Client, path string, acl zk.ACLs) error {
	return makeDir(ctx, c, path, nil, acl)
}

// makeDir is makeDirs with data for the last of the znodes, should it be missing.
func makeDir(ctx context.Context, c *zk.Client, path string, data []byte, acl zk.ACLs) error {
	if path == "/" {
		return nil
	}
	var opts []zk.CreateOption
	if acl != nil {
		opts = append(opts, acl)
	}
	_, _, err := c.Create(ctx, path, data, opts...)
	if errors.Is(err, zk.ErrNoNode) {
		if err = makeDirs(ctx, c, dirOf(path), acl); err == nil {
			_, _, err = c.Create(ctx, path, data, opts...)
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// dirOf is the path of the parent.
func dirOf(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 1)] }
