package zk

import (
	"context"
	"slices"

	"bellwether/wire"
)

// AnyVersion, given as a version, makes a write unconditional.
const AnyVersion int32 = -1

// Set replaces a znode's data if its version is version or version is AnyVersion;
// otherwise it returns ErrBadVersion. It does not keep data after it returns.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (stat Stat, err error) {
	full, err := c.abs(path, false)
	if err != nil {
		return stat, opError(wire.OpSetData, path, err)
	}
	k := c.newCall(wire.OpSetData)
	k.path = full
	k.setData = wire.SetDataRequest{Path: full, Data: data, Version: version}
	if err := c.do(ctx, k, path, &k.setData, &k.stat); err != nil {
		return stat, err
	}
	stat = k.stat.Stat
	k.free()
	return stat, nil
}

// Delete removes a znode that has no children, if its version is version or version is
// AnyVersion.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	full, err := c.abs(path, false)
	if err != nil {
		return opError(wire.OpDelete, path, err)
	}
	k := c.newCall(wire.OpDelete)
	k.path = full
	k.pathVersion = wire.PathVersionRequest{Path: full, Version: version}
	if err := c.do(ctx, k, path, &k.pathVersion, nil); err != nil {
		return err
	}
	k.free()
	return nil
}

// SetACL replaces a znode's access-control list if its Aversion is version or version is
// AnyVersion.
func (c *Client) SetACL(ctx context.Context, path string, acl ACLs, version int32) (Stat, error) {
	var resp wire.StatResponse
	err := c.simple(ctx, wire.OpSetACL, path, func(full string) wire.Record {
		return &wire.SetACLRequest{Path: full, ACL: acl, Version: version}
	}, &resp)
	return resp.Stat, err
}

// Check compares the version of a znode; with AnyVersion it only checks that the znode
// exists. It goes through the leader, as a Multi of one operation.
func (c *Client) Check(ctx context.Context, path string, version int32) error {
	_, err := c.Multi(ctx, CheckOp(path, version))
	return err
}

// AddAuth adds an identity to this connection and, once the server has accepted it, to
// every later one. If the server refuses it, AddAuth returns ErrAuthFailed and the
// connection ends; the session goes on.
func (c *Client) AddAuth(ctx context.Context, a Auth) error {
	a.Data = slices.Clone(a.Data)
	k := c.newCall(wire.OpAuth)
	k.cred = &a
	req := wire.AuthRequest{Scheme: wire.Text(a.Scheme), Auth: a.Data}
	if err := c.do(ctx, k, "", &req, nil); err != nil {
		return err
	}
	k.free()
	return nil
}

// Reconfig changes the ensemble's members and returns the new configuration. Empty lists
// are left out. Version is the version of the configuration that must be current, or -1
// for any. If members, the whole new membership, is given, the servers ignore joining
// and leaving.
func (c *Client) Reconfig(ctx context.Context, joining, leaving, members string, version int64) ([]byte, Stat, error) {
	var resp wire.DataResponse
	req := wire.ReconfigRequest{
		Joining: textOrNull(joining), Leaving: textOrNull(leaving), Members: textOrNull(members), ConfigID: version,
	}
	k := c.newCall(wire.OpReconfig)
	if err := c.do(ctx, k, configPath, &req, &resp); err != nil {
		return nil, resp.Stat, err
	}
	k.free()
	return resp.Data, resp.Stat, nil
}

func textOrNull(s string) wire.NullString { return wire.NullString{String: s, Valid: s != ""} }
