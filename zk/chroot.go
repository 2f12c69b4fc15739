package zk

import (
	"context"
	"errors"

	"bellwether/wire"
)

// ErrNoChroot says that the path behind the server list, which is the root of all the
// client's paths, does not exist. Connect does not create it; Client.EnsurePath of "/"
// does. The error is also an ErrNoNode.
var ErrNoChroot = errors.New("missing chroot")

// noChrootError is an ErrNoChroot that names the path.
type noChrootError struct{ chroot string }

func (e *noChrootError) Error() string   { return ErrNoChroot.Error() + " " + e.chroot }
func (e *noChrootError) Unwrap() []error { return []error{ErrNoChroot, ErrNoNode} }

// chrootError returns an ErrNoChroot instead of err if err is an ErrNoNode because the
// chroot is missing. For a create whose parent is not "/", it asks the server whether the
// chroot exists. Other operations on paths other than "/" keep their ErrNoNode.
func (c *Client) chrootError(ctx context.Context, op OpCode, path string, err error) error {
	if c.chroot == "" || !errors.Is(err, ErrNoNode) {
		return err
	}
	missing := path == "/" || isCreate(op) && parentOf(path) == "/"
	if !missing && isCreate(op) {
		_, found, e := c.Exists(ctx, "/")
		missing = e == nil && !found
	}
	if missing {
		return &noChrootError{c.chroot}
	}
	return err
}

func isCreate(op OpCode) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return true
	}
	return false
}
