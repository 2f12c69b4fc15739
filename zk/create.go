package zk

import (
	"context"
	"time"

	"bellwether/wire"
)

// CreateOption says what kind of znode to create: a Mode, a TTL or ACLs. The
// default is a persistent znode that is open to everybody.
type CreateOption interface{ applyTo(*createSpec) }

// Mode is a kind of znode; Ephemeral and Sequential may be given together.
type Mode uint8

// The modes.
const (
	Persistent Mode = 0
	Ephemeral  Mode = 1 // deleted when the session ends
	Sequential Mode = 2 // a number that only grows is appended to the name
	Container  Mode = 4 // deleted some time after its last child went (3.5.1)
)

// TTL makes a persistent znode that is deleted when it has no children and
// was not changed for this long. Servers must have it switched on (3.5.3).
type TTL time.Duration

// ACLs is an access-control list, as an option of Create too.
type ACLs []wire.ACL

// createSpec is what the options of a create add up to.
type createSpec struct {
	mode Mode
	ttl  time.Duration
	acl  []wire.ACL
}

func (m Mode) applyTo(s *createSpec) { s.mode |= m }
func (t TTL) applyTo(s *createSpec)  { s.ttl = time.Duration(t) }
func (a ACLs) applyTo(s *createSpec) { s.acl = a }

// Create makes a znode and returns its path, with the number appended for
// Sequential, and its Stat. The data is not kept after the return. Errors:
// ErrNodeExists, ErrNoNode (no parent), ErrNoAuth, ErrInvalidACL,
// ErrNoChildrenForEphemerals, ErrQuotaExceeded, ErrUnsupported.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, wire.Stat, error) {
	return c.create(ctx, path, data, opts)
}

// CreateProtected is Create that survives a lost answer. The last part of the path
// gets a random prefix of 32 hex digits and a dash, by which the client
// finds the znode again before it tries once more; for an ephemeral the owner is
// compared too. When the context ends while the outcome is unknown, the znode is removed
// in the background. A session that expires meanwhile gives
// ErrSessionExpired for an ephemeral.
func (c *Client) CreateProtected(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, wire.Stat, error) {
	return c.createProtected(ctx, path, data, opts)
}
