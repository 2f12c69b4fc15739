package zk

import (
	"context"
	"errors"
	"time"

	"bellwether/wire"
)

// CreateOption says what kind of znode to create: a Mode, a TTL or ACLs. By default a
// znode is persistent and open to everybody.
type CreateOption interface{ applyTo(*createSpec) }

// Mode is a kind of znode. Ephemeral and Sequential may be combined.
type Mode uint8

// The modes.
const (
	// Persistent znodes stay until they are deleted.
	Persistent Mode = 0
	// Ephemeral znodes are deleted when the session ends.
	Ephemeral Mode = 1
	// Sequential znodes get a number appended to their names, which grows with every
	// child created.
	Sequential Mode = 2
	// Container znodes are deleted some time after their last child was deleted. Servers
	// before 3.5.1 do not know them.
	Container Mode = 4
)

// TTL makes a persistent znode that is deleted when it has had no children and no change
// for this long. The servers must have TTLs switched on; those before 3.5.3 do not know
// them.
type TTL time.Duration

// ACLs is an access-control list. It is also an option of Create.
type ACLs []ACL

// createSpec holds the options of one create.
type createSpec struct {
	mode Mode
	ttl  int64 // ms
	acl  []ACL
}

func (m Mode) applyTo(s *createSpec) { s.mode |= m }
func (t TTL) applyTo(s *createSpec)  { s.ttl = max(time.Duration(t).Milliseconds(), 1) }
func (a ACLs) applyTo(s *createSpec) { s.acl = a }

// openACL is shared by all creates without an ACL; nobody changes it.
var openACL = wire.OpenACL()

func specOf(opts []CreateOption) createSpec {
	s := createSpec{acl: openACL}
	for _, o := range opts {
		o.applyTo(&s)
	}
	return s
}

// request fills req and returns the operation code. It returns false if the options
// exclude each other.
func (s *createSpec) request(path string, data []byte, req *wire.CreateTTLRequest) (OpCode, bool) {
	req.CreateRequest = wire.CreateRequest{Path: path, Data: data, ACL: s.acl, Flags: int32(s.mode)}
	req.TTL = s.ttl
	switch {
	case s.mode > Container, s.ttl > 0 && s.mode&^Sequential != 0:
		return 0, false
	case s.ttl > 0:
		req.Flags = wire.FlagPersistentTTL
		if s.mode == Sequential {
			req.Flags = wire.FlagPersistentSequentialTTL
		}
		return wire.OpCreateTTL, true
	case s.mode == Container:
		return wire.OpCreateContainer, true
	}
	return wire.OpCreate2, true
}

// createRecord returns the part of req that a request of op contains.
func createRecord(op OpCode, req *wire.CreateTTLRequest) wire.Record {
	if op == wire.OpCreateTTL {
		return req
	}
	return &req.CreateRequest
}

// Create makes a znode and returns its path, with the number appended for Sequential,
// and its Stat. It does not keep data after it returns. Its errors are ErrNodeExists,
// ErrNoNode (no parent), ErrNoAuth, ErrInvalidACL, ErrNoChildrenForEphemerals,
// ErrQuotaExceeded and ErrUnsupported. With servers before 3.5 the Stat comes from a
// second request, and is empty if that one fails.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, Stat, error) {
	spec := specOf(opts)
	return c.create(ctx, path, data, &spec)
}

func (c *Client) create(ctx context.Context, path string, data []byte, spec *createSpec) (string, Stat, error) {
	full, err := c.abs(path, spec.mode&Sequential != 0)
	k := c.newCall(wire.OpCreate2)
	op, ok := spec.request(full, data, &k.creation)
	if err == nil && !ok {
		err = ErrBadArguments
	}
	if err != nil {
		k.free()
		return "", Stat{}, opError(wire.OpCreate, path, err)
	}
	k.op, k.path = op, full
	err = c.do(ctx, k, path, createRecord(op, &k.creation), &k.created)
	if op == wire.OpCreate2 && errors.Is(err, ErrUnsupported) {
		return c.createOld(ctx, path, full, data, spec)
	}
	if err != nil {
		return "", Stat{}, err
	}
	made, stat := c.rel(k.created.Path), k.created.Stat
	k.free()
	return made, stat, nil
}

// createOld is like create, but for servers before 3.5, whose answer has no Stat.
func (c *Client) createOld(ctx context.Context, path, full string, data []byte, spec *createSpec) (string, Stat, error) {
	var resp wire.PathResponse
	k := c.newCall(wire.OpCreate)
	k.path = full
	spec.request(full, data, &k.creation)
	if err := c.do(ctx, k, path, &k.creation.CreateRequest, &resp); err != nil {
		return "", Stat{}, err
	}
	k.free()
	made := c.rel(resp.Path)
	stat, _, err := c.Exists(ctx, made)
	if err != nil {
		c.opt.Logger.Debug("the znode was created, but its stat could not be read", "path", made, "err", err)
	}
	return made, stat, nil
}
