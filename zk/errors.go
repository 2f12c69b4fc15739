package zk

import (
	"errors"
	"fmt"

	"bellwether/wire"
)

// What the tree says about a request.
const (
	ErrNoNode                  = wire.ErrNoNode
	ErrNodeExists              = wire.ErrNodeExists
	ErrBadVersion              = wire.ErrBadVersion
	ErrNotEmpty                = wire.ErrNotEmpty
	ErrNoAuth                  = wire.ErrNoAuth
	ErrInvalidACL              = wire.ErrInvalidACL
	ErrNoChildrenForEphemerals = wire.ErrNoChildrenForEphemerals
	ErrBadArguments            = wire.ErrBadArguments
	ErrQuotaExceeded           = wire.ErrQuotaExceeded
	ErrNotReadOnly             = wire.ErrNotReadOnly
)

// What became of the session, the connection or the server.
const (
	// ErrSessionExpired: the session is over, its ephemerals are gone or going.
	ErrSessionExpired = wire.ErrSessionExpired
	// ErrAuthFailed: the servers refuse the credentials; the client is finished.
	ErrAuthFailed = wire.ErrAuthFailed
	// ErrConnectionLoss: the connection ended before the answer. See UnknownOutcomeError.
	ErrConnectionLoss = wire.ErrConnectionLoss
	// ErrClosed: Close or Detach was called.
	ErrClosed = wire.ErrClosing
	// ErrUnsupported: the server does not know the operation, or has it
	// switched off. It is not sent again to a server that does not know it.
	ErrUnsupported = wire.ErrUnimplemented
)

// ErrQueueFull: more calls than Options.QueueMax wait for an answer.
var ErrQueueFull = errors.New("too many calls wait for an answer")

// OpError is what every call returns. Err is, or wraps, the reason: a code of
// the protocol, an *UnknownOutcomeError, a *TooLargeError or the context's error.
type OpError struct {
	Op   string // as the protocol names it: create, getData, …
	Path string // as the caller gave it; empty where there is none
	Err  error
}

func (e *OpError) Error() string {
	if e.Path == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + " " + e.Path + ": " + e.Err.Error()
}

// Unwrap is Err.
func (e *OpError) Unwrap() error { return e.Err }

// UnknownOutcomeError: a write was sent and its answer will not come, since the
// connection was lost or the caller stopped waiting. It may have been carried
// out, or may be carried out yet. Read what it would have changed before trying again
// (CreateProtected does so for creates). It is also an ErrConnectionLoss.
type UnknownOutcomeError struct {
	// Session is the one in which the write was sent.
	Session SessionID
	// Err is why: the connection's failure or the context's error.
	Err error
}

func (e *UnknownOutcomeError) Error() string { return "outcome unknown: " + e.Err.Error() }

// Unwrap is ErrConnectionLoss and the reason.
func (e *UnknownOutcomeError) Unwrap() []error { return []error{ErrConnectionLoss, e.Err} }

// TooLargeError: a request or an answer exceeds the limit. An oversized
// request is never sent; an oversized answer is skipped and the connection lives.
type TooLargeError struct {
	Size, Max int // bytes of the frame's payload
	Answer    bool
}

func (e *TooLargeError) Error() string {
	what, option := "request", "FrameMax"
	if e.Answer {
		what, option = "answer", "ReplyMax"
	}
	return fmt.Sprintf("%s of %d bytes exceeds the limit of %d (Options.%s, jute.maxbuffer)", what, e.Size, e.Max, option)
}

// OverflowError ends a Stream that holds Max undelivered events.
type OverflowError struct{ Max int }

func (e *OverflowError) Error() string {
	return fmt.Sprintf("more than %d events wait to be read (Options.StreamMax): read the state again", e.Max)
}
