package zk

import (
	"context"
)

type pinKey struct{}

// InSession binds every call made with the context to one session: when that
// is over, the call fails with ErrSessionExpired instead of being carried out
// by the session that follows. Who relies on an ephemeral znode needs it: one
// that is created by a later session outlives what its creator knows of.
func InSession(ctx context.Context, id SessionID) context.Context {
	return context.WithValue(ctx, pinKey{}, id)
}

type queuedKey struct{}

// Queued returns a context for one call: queued is called as soon as the call
// stands in line, after everything asked before. What is asked from then on is
// sent behind it, without waiting for its answer, and is carried out whatever
// becomes of it. Queued is not called for a call that fails before.
func Queued(ctx context.Context, queued func()) context.Context {
	return context.WithValue(ctx, queuedKey{}, queued)
}

// tellQueued calls what Queued was given.
func tellQueued(ctx context.Context) {
	if queued, ok := ctx.Value(queuedKey{}).(func()); ok {
		queued()
	}
}

// pinned is the session of InSession, 0 for none.
func pinned(ctx context.Context) SessionID {
	id, _ := ctx.Value(pinKey{}).(SessionID)
	return id
}
