package zk

import (
	"errors"
	"fmt"

	"bellwether/wire"
)

// Errors of an operation on the tree.
const (
	// ErrNoNode says that the znode, or the parent of one to be created, does not exist.
	ErrNoNode = wire.ErrNoNode
	// ErrNodeExists says that there is a znode at the path already.
	ErrNodeExists = wire.ErrNodeExists
	// ErrBadVersion says that the znode has another version than the one given.
	ErrBadVersion = wire.ErrBadVersion
	// ErrNotEmpty says that a znode with children cannot be deleted.
	ErrNotEmpty = wire.ErrNotEmpty
	// ErrNoAuth says that the ACL of the znode does not allow the operation.
	ErrNoAuth = wire.ErrNoAuth
	// ErrInvalidACL says that the ACL given is empty or not well-formed.
	ErrInvalidACL = wire.ErrInvalidACL
	// ErrNoChildrenForEphemerals says that the parent is an ephemeral znode, which cannot
	// have children.
	ErrNoChildrenForEphemerals = wire.ErrNoChildrenForEphemerals
	// ErrBadArguments says that a path, flag or TTL is not allowed.
	ErrBadArguments = wire.ErrBadArguments
	// ErrQuotaExceeded says that the write would exceed a quota of the subtree.
	ErrQuotaExceeded = wire.ErrQuotaExceeded
	// ErrNotReadOnly says that the connected server has no quorum and accepts only
	// reads.
	ErrNotReadOnly = wire.ErrNotReadOnly
)

// Errors of the session, the connection or the server.
const (
	// ErrSessionExpired says that the session is over: its ephemeral znodes are deleted,
	// or are about to be. The client does not use that session again. An
	// UnknownOutcomeError can wrap it; test for that first.
	ErrSessionExpired = wire.ErrSessionExpired
	// ErrAuthFailed says that the servers refuse the client's credentials. The client
	// has ended.
	ErrAuthFailed = wire.ErrAuthFailed
	// ErrConnectionLoss says that the connection ended before the answer came. See
	// UnknownOutcomeError.
	ErrConnectionLoss = wire.ErrConnectionLoss
	// ErrClosed says that Close or Detach was called.
	ErrClosed = wire.ErrClosing
	// ErrUnsupported says that the server does not know the operation or has it switched
	// off. The client does not send the operation again to a server that does not know
	// it.
	ErrUnsupported = wire.ErrUnimplemented
)

// ErrQueueFull says that Options.QueueMax calls wait for an answer already.
var ErrQueueFull = errors.New("too many calls wait for an answer (Options.QueueMax)")

// OpError is the type of every error that a call returns. Err is, or wraps, the reason:
// a code of the protocol, an *UnknownOutcomeError, a *TooLargeError or the context's
// error.
type OpError struct {
	Op   string // name of the operation in the protocol: create, getData, …
	Path string // the path that the caller gave; empty if there is none
	Err  error
}

func (e *OpError) Error() string {
	if e.Path == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + " " + e.Path + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// UnknownOutcomeError says that a write was sent and that its answer will not come,
// because the connection was lost or the caller stopped waiting. The write may have been
// carried out, or may still be carried out. Read what it would have changed before you
// try again; CreateProtected does so for creates. The error is also an
// ErrConnectionLoss.
type UnknownOutcomeError struct {
	// Session is the session in which the write was sent.
	Session SessionID
	// Err is the reason: the failure of the connection or the context's error.
	Err error
}

func (e *UnknownOutcomeError) Error() string { return "outcome unknown: " + e.Err.Error() }

// Unwrap returns ErrConnectionLoss and the reason.
func (e *UnknownOutcomeError) Unwrap() []error { return []error{ErrConnectionLoss, e.Err} }

// TooLargeError says that a request or an answer exceeds its limit. The client does not
// send such a request. It skips such an answer, and the connection stays open.
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

// OverflowError ends a Stream that holds Max events which nobody has read.
type OverflowError struct{ Max int }

func (e *OverflowError) Error() string {
	return fmt.Sprintf("more than %d events wait to be read (Options.StreamMax): read the state again", e.Max)
}
