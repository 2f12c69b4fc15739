package zk

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bellwether/wire"
)

const (
	// subtreeTriesMax is how often EnsurePath and DeleteRecursive start again because
	// other clients change the same znodes or an answer was lost.
	subtreeTriesMax = 20
	// subtreeBatch is how many znodes DeleteRecursive reads in one request, and the
	// default of Batch.
	subtreeBatch = 128
)

// DeleteOption is an option of Client.DeleteRecursive: a Batch or a DeleteProgress.
type DeleteOption interface{ deletes(*deletion) }

// Batch is the number of znodes that Client.DeleteRecursive deletes in one transaction.
// The default is 128.
type Batch int

func (b Batch) deletes(d *deletion) { d.batch = max(int(b), 1) }

// DeleteProgress is called by Client.DeleteRecursive after each transaction, with the number
// of znodes that it has deleted and the number that it has found. If it has to start again,
// for example because other clients create znodes meanwhile, it counts from 0 again.
type DeleteProgress func(deleted, found int)

func (p DeleteProgress) deletes(d *deletion) { d.progress = p }

// deletion holds the options of one DeleteRecursive.
type deletion struct {
	batch    int
	progress DeleteProgress // nil: none
}

// EnsurePath creates a znode without data, and its parents, where they are missing. The
// options may be ACLs and Container; they apply to every znode that it creates. It
// survives lost answers, and other clients that create the same path. For "/" it creates
// the chroot; for another path below a missing chroot it returns ErrNoChroot.
func (c *Client) EnsurePath(ctx context.Context, path string, opts ...CreateOption) error {
	spec := specOf(opts)
	if !validPath(path, false) || spec.mode&^Container != 0 || spec.ttl != 0 {
		return opError(wire.OpCreate, path, ErrBadArguments)
	}
	if path == "/" {
		return c.ensureChroot(ctx, &spec)
	}
	var err error
	for range subtreeTriesMax {
		if err = c.ensure(ctx, path, &spec); !c.mayRetry(ctx, err) && (!errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoChroot)) {
			return err
		}
	}
	return err
}

// ensure creates the znode and its parents if they are missing. It reads before it creates,
// because a client without permission to create may still find the znode there.
func (c *Client) ensure(ctx context.Context, path string, spec *createSpec) error {
	if _, found, err := c.Exists(ctx, path); found || err != nil {
		return err
	}
	_, _, err := c.create(ctx, path, nil, spec)
	if errors.Is(err, ErrNoNode) && parentOf(path) != "/" && !errors.Is(err, ErrNoChroot) {
		if err = c.ensure(ctx, parentOf(path), spec); err == nil {
			_, _, err = c.create(ctx, path, nil, spec)
		}
	}
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return err
}

// ensureChroot creates the chroot and its parents.
func (c *Client) ensureChroot(ctx context.Context, spec *createSpec) (err error) {
	for at := 1; at <= len(c.chroot); at++ {
		if at < len(c.chroot) && c.chroot[at] != '/' {
			continue
		}
		req := wire.CreateRequest{Path: c.chroot[:at], ACL: spec.acl, Flags: int32(spec.mode)}
		op := wire.OpCreate
		if spec.mode == Container {
			op = wire.OpCreateContainer
		}
		for range subtreeTriesMax {
			k := c.newCall(op)
			k.path = req.Path
			if err = c.do(ctx, k, "/", &req, nil); err == nil {
				k.free()
			}
			if !c.mayRetry(ctx, err) {
				break
			}
		}
	}
	if _, found, e := c.Exists(ctx, "/"); found || e != nil {
		return e
	}
	return err
}

// mayRetry reports whether an operation that can be carried out twice is worth another try.
func (c *Client) mayRetry(ctx context.Context, err error) bool {
	return ctx.Err() == nil && c.Err() == nil && (errors.Is(err, ErrConnectionLoss) || errors.Is(err, ErrSessionExpired))
}

// DeleteRecursive deletes a znode and everything below it, children first, in
// transactions of many znodes. A znode that is missing counts as deleted. It also
// deletes what others create below the znode meanwhile; after many rounds it gives up
// with ErrNotEmpty. It is not one transaction: after an error a part of the subtree may
// be gone. It refuses the paths "/" and /zookeeper, and those below the latter, with
// ErrBadArguments.
func (c *Client) DeleteRecursive(ctx context.Context, path string, opts ...DeleteOption) error {
	d := deletion{batch: subtreeBatch}
	for _, o := range opts {
		o.deletes(&d)
	}
	full, err := c.abs(path, false)
	if err != nil || path == "/" || full == systemPath || strings.HasPrefix(full, systemPath+"/") {
		return opError(wire.OpDelete, path, ErrBadArguments)
	}
	for range subtreeTriesMax {
		err = c.deleteSubtree(ctx, path, &d)
		if !c.mayRetry(ctx, err) && !errors.Is(err, ErrNotEmpty) {
			return err
		}
	}
	return err
}

func (c *Client) deleteSubtree(ctx context.Context, path string, d *deletion) error {
	paths, err := c.subtree(ctx, path)
	if err != nil {
		return err
	}
	slices.Reverse(paths)
	for all := len(paths); len(paths) > 0; {
		n, size := 0, 0
		var ops []Op
		for n < len(paths) && n < d.batch && (n == 0 || size+len(c.chroot)+len(paths[n]) < c.opt.FrameMax/4) {
			size += len(c.chroot) + len(paths[n])
			ops = append(ops, DeleteOp(paths[n], AnyVersion))
			n++
		}
		if _, err := c.Multi(ctx, ops...); err != nil {
			if err := c.deleteEach(ctx, paths[:n]); err != nil {
				return err
			}
		}
		if paths = paths[n:]; d.progress != nil {
			d.progress(all-len(paths), all)
		}
	}
	return nil
}

// deleteEach deletes the znodes one by one, after a transaction for all of them has failed,
// for example because one was missing.
func (c *Client) deleteEach(ctx context.Context, paths []string) error {
	for _, path := range paths {
		if err := c.Delete(ctx, path, AnyVersion); err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return nil
}

// subtree lists a znode and everything below it, parents first.
func (c *Client) subtree(ctx context.Context, top string) ([]string, error) {
	paths := []string{top}
	for at := 0; at < len(paths); {
		var ops []Op
		size := 0
		for ; at < len(paths) && len(ops) < subtreeBatch && (len(ops) == 0 || size < c.opt.FrameMax/4); at++ {
			size += len(c.chroot) + len(paths[at])
			ops = append(ops, ChildrenOp(paths[at]))
		}
		results, err := c.MultiRead(ctx, ops...)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			if r.Err != nil && !errors.Is(r.Err, ErrNoNode) {
				return nil, opError(wire.OpGetChildren, ops[i].path, r.Err)
			}
			for _, name := range r.Children {
				paths = append(paths, ops[i].path+"/"+name)
			}
		}
	}
	return paths, nil
}
