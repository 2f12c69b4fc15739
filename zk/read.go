package zk

import (
	"context"
	"errors"

	"bellwether/wire"
)

// Get returns a znode's data and its Stat. The caller may change the data.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	return c.get(ctx, path, nil)
}

// GetW is Get with a watch. The watch fires when the znode is changed or deleted.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	w := c.newWatch(dataWatch)
	data, stat, err := c.get(ctx, path, w)
	if err != nil {
		return nil, stat, nil, err
	}
	return data, stat, w, nil
}

func (c *Client) get(ctx context.Context, path string, w *Watch) (data []byte, stat Stat, err error) {
	k, err := c.pathCall(wire.OpGetData, path, w)
	if err != nil {
		return nil, stat, err
	}
	if err := c.do(ctx, k, path, &k.pathWatch, &k.data); err != nil {
		return nil, stat, err
	}
	data, stat = k.data.Data, k.data.Stat
	k.free()
	return data, stat, nil
}

// pathCall returns a call with a PathWatchRequest.
func (c *Client) pathCall(op OpCode, path string, w *Watch) (*call, error) {
	full, err := c.abs(path, false)
	if err != nil {
		return nil, opError(op, path, err)
	}
	k := c.newCall(op)
	k.path, k.watch = full, w
	k.pathWatch = wire.PathWatchRequest{Path: full, Watch: w != nil}
	if w != nil {
		w.path = full
	}
	return k, nil
}

// Exists returns a znode's Stat and true, or false if there is no such znode.
func (c *Client) Exists(ctx context.Context, path string) (Stat, bool, error) {
	return c.exists(ctx, path, nil)
}

// ExistsW is Exists with a watch. The watch fires when the znode is created, changed or
// deleted.
func (c *Client) ExistsW(ctx context.Context, path string) (Stat, bool, *Watch, error) {
	w := c.newWatch(dataWatch)
	stat, ok, err := c.exists(ctx, path, w)
	if err != nil {
		return stat, false, nil, err
	}
	return stat, ok, w, nil
}

func (c *Client) exists(ctx context.Context, path string, w *Watch) (stat Stat, ok bool, err error) {
	k, err := c.pathCall(wire.OpExists, path, w)
	if err != nil {
		return stat, false, err
	}
	err = c.do(ctx, k, path, &k.pathWatch, &k.stat)
	if errors.Is(err, ErrNoNode) {
		return stat, false, nil
	}
	if err != nil {
		return stat, false, err
	}
	stat = k.stat.Stat
	k.free()
	return stat, true, nil
}

// Children returns the names of a znode's children, in no particular order, and the
// znode's Stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	return c.children(ctx, path, nil)
}

// ChildrenW is Children with a watch. The watch fires when a child is created or
// deleted, or when the znode itself is deleted.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	w := c.newWatch(childWatch)
	names, stat, err := c.children(ctx, path, w)
	if err != nil {
		return nil, stat, nil, err
	}
	return names, stat, w, nil
}

func (c *Client) children(ctx context.Context, path string, w *Watch) ([]string, Stat, error) {
	var resp wire.ChildrenStatResponse
	k, err := c.pathCall(wire.OpGetChildren2, path, w)
	if err != nil {
		return nil, resp.Stat, err
	}
	if err := c.do(ctx, k, path, &k.pathWatch, &resp); err != nil {
		return nil, Stat{}, err
	}
	k.free()
	return resp.Children, resp.Stat, nil
}

// GetACL returns a znode's access-control list. The server hides the hashes of digest
// identities from clients that may not change the list.
func (c *Client) GetACL(ctx context.Context, path string) (ACLs, Stat, error) {
	var resp wire.ACLResponse
	err := c.simple(ctx, wire.OpGetACL, path, func(full string) wire.Record { return &wire.PathRequest{Path: full} }, &resp)
	return resp.ACL, resp.Stat, err
}

// Sync waits until the connected server has caught up with the leader: a read that
// follows sees every write that was acknowledged before. The path has no influence on
// the result.
func (c *Client) Sync(ctx context.Context, path string) error {
	return c.simple(ctx, wire.OpSync, path, func(full string) wire.Record { return &wire.NullPathRequest{Path: wire.Text(full)} }, nil)
}

// CountDescendants returns the number of all znodes below a path. It needs a server of
// version 3.6 or later.
func (c *Client) CountDescendants(ctx context.Context, path string) (int, error) {
	var resp wire.CountResponse
	err := c.simple(ctx, wire.OpGetAllChildrenNumber, path, func(full string) wire.Record { return &wire.PathRequest{Path: full} }, &resp)
	return int(resp.Count), err
}

// Ephemerals returns the paths of this session's ephemeral znodes that begin with
// prefix; "/" stands for all. With a chroot it returns those below the chroot. It needs
// a server of version 3.6 or later.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	var resp wire.EphemeralsResponse
	err := c.simple(ctx, wire.OpGetEphemerals, prefix, func(full string) wire.Record { return &wire.NullPathRequest{Path: wire.Text(full)} }, &resp)
	below := resp.Paths[:0]
	for _, p := range resp.Paths {
		if c.isBelow(p) {
			below = append(below, c.rel(p))
		}
	}
	return below, err
}

// simple carries out a call about one path, for operations that need not be fast.
func (c *Client) simple(ctx context.Context, op OpCode, path string, req func(full string) wire.Record, resp wire.Record) error {
	full, err := c.abs(path, false)
	if err != nil {
		return opError(op, path, err)
	}
	k := c.newCall(op)
	k.path = full
	if err := c.do(ctx, k, path, req(full), resp); err != nil {
		return err
	}
	k.free()
	return nil
}

// WhoAmI returns the identities of this connection. It needs a server of version 3.7 or
// later.
func (c *Client) WhoAmI(ctx context.Context) ([]ClientInfo, error) {
	var resp wire.WhoAmIResponse
	k := c.newCall(wire.OpWhoAmI)
	if err := c.do(ctx, k, "", nil, &resp); err != nil {
		return nil, err
	}
	k.free()
	return resp.Clients, nil
}

// Config returns the ensemble's configuration text, whatever the chroot is.
func (c *Client) Config(ctx context.Context) (data []byte, stat Stat, err error) {
	return c.config(ctx, nil)
}
