package recipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// jumpVersion is the version before -1, which as a condition means any.
// Servers before ZOOKEEPER-4743 do not jump over it themselves.
const jumpVersion = -2

// ErrOutcome: a change was sent, its answer was lost, and its session ended
// before the outcome could be learned. It was carried out once or not at all.
var ErrOutcome = errors.New("it is not known whether the change was carried out")

// Value is the data of a znode, changed by compare and set. It counts nothing
// twice: what tells whether a change whose answer was lost was carried out is a mark,
// an ephemeral child of the znode that is set in the same transaction.
// Its methods may be called from any goroutine.
type Value struct {
	c       *zk.Client
	path    string
	initial []byte
	acl     zk.ACLs
	name    string // of the mark

	turn    turn // one change at a time; guards what follows
	session wire.SessionID
	changes int
}

// turn lets one pass at a time, as a mutex whose wait ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }

// ValueOptions are the settings of a Value; nil is all defaults.
type ValueOptions struct {
	// Initial is the data with which the znode is made when it is changed first.
	// Until then Get returns it.
	Initial []byte
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs
}

// NewValue prepares a Value at path. The client stays the caller's.
func NewValue(c *zk.Client, path string, o *ValueOptions) (*Value, error) {
	v := &Value{c: c, path: path, name: "_m_" + nonce(), turn: newTurn()}
	if o != nil {
		v.initial, v.acl = bytes.Clone(o.Initial), o.ACL
	}
	return v, checkPath("value", path)
}

// Get reads the value.
func (v *Value) Get(ctx context.Context) ([]byte, error) {
	data, _, err := v.c.Get(ctx, v.path)
	if errors.Is(err, zk.ErrNoNode) {
		return bytes.Clone(v.initial), nil
	}
	return data, err
}

// Update replaces the value by what change makes of it, and tries again when
// somebody else was first. Change may be called many times; an error of its
// own ends Update. ErrOutcome says that the outcome is unknown; after every
// other error nothing was changed, but for a context that ended, of which a
// *zk.LostError says so.
func (v *Value) Update(ctx context.Context, change func(old []byte) ([]byte, error)) ([]byte, error) {
	if err := v.turn.take(ctx); err != nil {
		return nil, err
	}
	defer v.turn.give()
	for {
		old, version, err := v.read(ctx)
		if err != nil {
			return nil, err
		}
		data, err := change(old)
		if err != nil {
			return nil, err
		}
		done, err := v.swap(ctx, data, version)
		if done || err != nil {
			return data, err
		}
	}
}

// CompareAndSet replaces the value if it is old. It reports whether it did.
func (v *Value) CompareAndSet(ctx context.Context, old, data []byte) (bool, error) {
	_, err := v.Update(ctx, func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, old) {
			return nil, errOther
		}
		return data, nil
	})
	if errors.Is(err, errOther) {
		return false, nil
	}
	return err == nil, err
}

var errOther = errors.New("the value is another")

// read makes the znode if it is missing.
func (v *Value) read(ctx context.Context) ([]byte, int32, error) {
	for {
		data, stat, err := v.c.Get(ctx, v.path)
		if !errors.Is(err, zk.ErrNoNode) {
			return data, stat.Version, err
		}
		if err = makeDirs(ctx, v.c, dirOf(v.path), v.acl); err == nil {
			_, _, err = v.c.Create(ctx, v.path, v.initial, v.options()...)
		}
		var lost *zk.LostError
		if err != nil && !errors.Is(err, zk.ErrNodeExists) && (!errors.As(err, &lost) || ctx.Err() != nil) {
			return nil, 0, err
		}
	}
}

func (v *Value) options(more ...zk.CreateOption) []zk.CreateOption {
	if v.acl != nil {
		more = append(more, v.acl)
	}
	return more
}

// swap sets the data if the version is still this one. It reports whether it did.
func (v *Value) swap(ctx context.Context, data []byte, version int32) (bool, error) {
	session := v.c.Session().ID
	switch {
	case version == zk.AnyVersion:
		return false, fmt.Errorf("value %s: its version is -1, which cannot be compared: set it once by hand", v.path)
	case session == 0:
		return false, nil // the next read waits for one
	}
	bound := zk.InSession(ctx, session)
	v.changes++
	mark := fmt.Appendf(nil, "%d", v.changes)
	_, err := v.c.Multi(bound, v.ops(data, version, mark, session)...)
	var lost *zk.LostError
	switch {
	case err == nil:
		v.session = session
		return true, nil
	case errors.As(err, &lost) && ctx.Err() == nil:
		return v.learn(ctx, session, data, version, mark)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrSessionExpired) && v.c.Err() == nil:
		return false, nil
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists):
		v.session = 0 // the mark is not as it was thought to be
		return false, v.dropMark(bound)
	}
	return false, err
}

// ops are the change and its mark.
func (v *Value) ops(data []byte, version int32, mark []byte, session wire.SessionID) []zk.Op {
	ops := []zk.Op{zk.SetOp(v.path, data, version)}
	if version == jumpVersion {
		ops = append(ops, zk.SetOp(v.path, data, zk.AnyVersion))
	}
	at := claim.Join(v.path, v.name)
	if v.session == session {
		return append(ops, zk.SetOp(at, mark, zk.AnyVersion))
	}
	return append(ops, zk.CreateOp(at, mark, v.options(zk.Ephemeral)...))
}

// dropMark removes what is left of a mark, for the next change to make it anew.
func (v *Value) dropMark(ctx context.Context) error {
	err := v.c.Delete(ctx, claim.Join(v.path, v.name), zk.AnyVersion)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrConnectionLoss) || errors.Is(err, zk.ErrSessionExpired) {
		return nil
	}
	return err
}

// learn finds out whether a change was carried out whose answer was lost. The
// sync comes after everything that the change can have done.
func (v *Value) learn(ctx context.Context, session wire.SessionID, data []byte, version int32, mark []byte) (bool, error) {
	bound := zk.InSession(ctx, session)
	for {
		err := v.c.Sync(bound, v.path)
		var found []byte
		if err == nil {
			found, _, err = v.c.Get(bound, claim.Join(v.path, v.name))
		}
		switch {
		case err == nil:
			v.session = session
			return bytes.Equal(found, mark), nil
		case errors.Is(err, zk.ErrNoNode) && v.session != session:
			return false, nil // it would have been made
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
			return v.guess(ctx, data, version)
		case errors.Is(err, zk.ErrConnectionLoss) && ctx.Err() == nil:
			continue
		}
		return false, fmt.Errorf("%w: %w", ErrOutcome, err)
	}
}

// guess is what can be said when the mark is gone, with its session or by hand: a value
// that was not changed, or to something else, tells enough.
func (v *Value) guess(ctx context.Context, data []byte, version int32) (bool, error) {
	v.session = 0
	err := v.c.Sync(ctx, v.path)
	var now []byte
	var stat wire.Stat
	if err == nil {
		now, stat, err = v.c.Get(ctx, v.path)
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrOutcome, err)
	case stat.Version == version, stat.Version == version+1 && !bytes.Equal(now, data):
		return false, nil
	}
	return false, ErrOutcome
}

// Close removes the mark, which else goes with the session.
func (v *Value) Close(ctx context.Context) error {
	if err := v.turn.take(ctx); err != nil {
		return err
	}
	defer v.turn.give()
	if v.session == 0 {
		return nil
	}
	return v.dropMark(zk.InSession(ctx, v.session))
}
