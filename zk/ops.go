package zk

import (
	"context"

	"bellwether/wire"
)

// AnyVersion as a version makes a write unconditional.
const AnyVersion int32 = -1

// Get returns a znode's data, which is the caller's, and its Stat.
func (c *Client) Get(ctx context.Context, path string) ([]byte, wire.Stat, error) {
	return c.get(ctx, path, nil)
}

// GetW is Get with a watch for the next change or deletion of the znode.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, wire.Stat, *Watch, error) {
	w := c.newWatch(path)
	data, stat, err := c.get(ctx, path, w)
	return data, stat, w.unless(err), err
}

// Exists returns a znode's Stat and true, or false where there is none.
func (c *Client) Exists(ctx context.Context, path string) (wire.Stat, bool, error) {
	return c.exists(ctx, path, nil)
}

// ExistsW is Exists with a watch for the next creation, change or deletion.
func (c *Client) ExistsW(ctx context.Context, path string) (wire.Stat, bool, *Watch, error) {
	w := c.newWatch(path)
	stat, ok, err := c.exists(ctx, path, w)
	return stat, ok, w.unless(err), err
}

// Children returns the names of a znode's children, in no order, and its Stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, wire.Stat, error) {
	return c.children(ctx, path, nil)
}

// ChildrenW is Children with a watch for the next child that comes or goes,
// or the deletion of the znode itself.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, wire.Stat, *Watch, error) {
	w := c.newWatch(path)
	names, stat, err := c.children(ctx, path, w)
	return names, stat, w.unless(err), err
}

// Set replaces a znode's data where version is its own or AnyVersion, else
// ErrBadVersion. The data is not kept after the return.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (wire.Stat, error) {
	return c.set(ctx, path, data, version)
}

// Delete removes a znode that has no children, where version is its own or AnyVersion.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	return c.delete(ctx, path, version)
}

// GetACL returns a znode's access-control list. Digest hashes are hidden from
// those who may not change it.
func (c *Client) GetACL(ctx context.Context, path string) (ACLs, wire.Stat, error) {
	return c.getACL(ctx, path)
}

// SetACL replaces a znode's list where version is its Aversion or AnyVersion.
func (c *Client) SetACL(ctx context.Context, path string, acl ACLs, version int32) (wire.Stat, error) {
	return c.setACL(ctx, path, acl, version)
}

// Sync waits until the connected server has caught up with the leader; a
// read that follows sees every write acknowledged before. The path has no influence.
func (c *Client) Sync(ctx context.Context, path string) error { return c.sync(ctx, path) }

// Check compares a znode's version, AnyVersion for mere existence. It goes
// through the leader, as a Multi of one.
func (c *Client) Check(ctx context.Context, path string, version int32) error {
	_, err := c.Multi(ctx, CheckOp(path, version))
	return err
}

// Ephemerals returns the paths of this session's ephemeral znodes that begin
// with prefix; "/" for all (3.6).
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	return c.ephemerals(ctx, prefix)
}

// CountDescendants is the number of all znodes below a path (3.6).
func (c *Client) CountDescendants(ctx context.Context, path string) (int, error) {
	return c.countDescendants(ctx, path)
}

// WhoAmI returns the identities of this connection (3.7).
func (c *Client) WhoAmI(ctx context.Context) ([]wire.ClientInfo, error) { return c.whoAmI(ctx) }

// AddAuth adds an identity to this connection and, once accepted, to every
// later one. A refused one gives ErrAuthFailed and costs the connection, not
// the session.
func (c *Client) AddAuth(ctx context.Context, a Auth) error { return c.addAuth(ctx, a) }

// Config returns the ensemble's configuration text, whatever the chroot is.
func (c *Client) Config(ctx context.Context) ([]byte, wire.Stat, error) { return c.config(ctx) }

// Reconfig changes the ensemble's members and returns the new configuration.
// Empty lists are left out; version is that of the configuration that must be
// current, or -1. With members the other two must be empty.
func (c *Client) Reconfig(ctx context.Context, joining, leaving, members string, version int64) ([]byte, wire.Stat, error) {
	return c.reconfig(ctx, joining, leaving, members, version)
}
