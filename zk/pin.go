package zk

import (
	"context"

	"bellwether/wire"
)

type pinKey struct{}

// InSession binds every call made with the context to one session: when that
// is over, the call fails with ErrSessionExpired instead of being carried out
// by the session that follows. Who relies on an ephemeral znode needs it: one
// that is created by a later session outlives what its creator knows of.
func InSession(ctx context.Context, id wire.SessionID) context.Context {
	return context.WithValue(ctx, pinKey{}, id)
}

// pinned is the session of InSession, 0 for none.
func pinned(ctx context.Context) wire.SessionID {
	id, _ := ctx.Value(pinKey{}).(wire.SessionID)
	return id
}
