package zk

import (
	"context"
)

type pinKey struct{}

// InSession returns a context that binds every call made with it to one session. When
// that session is over, the call fails with ErrSessionExpired; it is not carried out in
// the session that follows. A program that relies on an ephemeral znode needs this: a
// znode that a later session creates outlives the session that the program knows of.
func InSession(ctx context.Context, id SessionID) context.Context {
	return context.WithValue(ctx, pinKey{}, id)
}

type queuedKey struct{}

// Queued returns a context for one call. The client calls queued as soon as the call is
// in the queue, behind all earlier calls. Later calls are sent behind it without waiting
// for its answer, and are carried out whether or not it succeeds. If the call fails
// before it is in the queue, the client does not call queued.
func Queued(ctx context.Context, queued func()) context.Context {
	return context.WithValue(ctx, queuedKey{}, queued)
}

// tellQueued calls the function that was given to Queued.
func tellQueued(ctx context.Context) {
	if queued, ok := ctx.Value(queuedKey{}).(func()); ok {
		queued()
	}
}

// pinned returns the session of InSession, 0 if there is none.
func pinned(ctx context.Context) SessionID {
	id, _ := ctx.Value(pinKey{}).(SessionID)
	return id
}
