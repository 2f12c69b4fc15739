package wire

import "strconv"

// Code is an error code of the protocol. Its values are errors: compare them
// with errors.Is. OK is not an error; [Code.Err] turns it into nil.
type Code int32

// OK is success.
const OK Code = 0

// Errors of the server, or of the request as such.
const (
	ErrSystem               Code = -1  // marks the range of these codes; ZooKeeper never sends it
	ErrRuntimeInconsistency Code = -2  // the result of an operation that follows the failed one in a multi
	errDataInconsistency    Code = -3  // never on the wire
	ErrConnectionLoss       Code = -4  // used only by clients: the connection ended before the answer
	ErrMarshalling          Code = -5  // the request could not be decoded
	ErrUnimplemented        Code = -6  // the server does not know the operation
	ErrOperationTimeout     Code = -7  // used only by clients
	ErrBadArguments         Code = -8  // a path, flag or TTL is not allowed
	errInvalidState         Code = -9  // made only by the C client
	errUnknownSession       Code = -12 // never on the wire
	ErrNewConfigNoQuorum    Code = -13 // reconfig: the new members do not form a quorum
	ErrReconfigInProgress   Code = -14 // reconfig: another one is under way
)

// Errors of an operation on the tree.
const (
	errAPI                     Code = -100 // marks the range of these codes; ZooKeeper never sends it
	ErrNoNode                  Code = -101
	ErrNoAuth                  Code = -102 // the ACL does not permit the operation to these identities
	ErrBadVersion              Code = -103
	ErrNoChildrenForEphemerals Code = -108
	ErrNodeExists              Code = -110
	ErrNotEmpty                Code = -111
	ErrInvalidACL              Code = -114
	ErrNoWatcher               Code = -121
	ErrQuotaExceeded           Code = -125
)

// Errors of the session or the connection.
const (
	ErrSessionExpired           Code = -112
	errInvalidCallback          Code = -113 // used only by clients
	ErrAuthFailed               Code = -115 // the server then closes the connection
	ErrClosing                  Code = -116 // used only by clients
	errNothing                  Code = -117 // made only by the C client: no answer to process
	ErrSessionMoved             Code = -118 // never in a reply: the connection is closed
	ErrNotReadOnly              Code = -119 // a write on a read-only server
	ErrEphemeralOnLocalSession  Code = -120
	errRequestTimeout           Code = -122 // used only by clients
	ErrReconfigDisabled         Code = -123
	ErrSessionClosedRequireAuth Code = -124 // enforced authentication; the server closes the connection
	ErrThrottledOp              Code = -127
)

var codeNames = map[Code]string{
	OK:                          "ok",
	ErrSystem:                   "system error",
	ErrRuntimeInconsistency:     "not executed, an earlier operation of the multi failed",
	errDataInconsistency:        "data inconsistency",
	ErrConnectionLoss:           "connection lost",
	ErrMarshalling:              "request could not be decoded",
	ErrUnimplemented:            "operation not known to the server",
	ErrOperationTimeout:         "operation timed out",
	ErrBadArguments:             "bad arguments",
	errInvalidState:             "invalid client state",
	errUnknownSession:           "unknown session",
	ErrNewConfigNoQuorum:        "no quorum of the new configuration is connected",
	ErrReconfigInProgress:       "another reconfiguration is in progress",
	errAPI:                      "error of the API",
	ErrNoNode:                   "node does not exist",
	ErrNoAuth:                   "not permitted by the ACL",
	ErrBadVersion:               "version conflict",
	ErrNoChildrenForEphemerals:  "ephemeral nodes have no children",
	ErrNodeExists:               "node exists",
	ErrNotEmpty:                 "node has children",
	ErrSessionExpired:           "session expired",
	errInvalidCallback:          "invalid callback",
	ErrInvalidACL:               "invalid ACL",
	ErrAuthFailed:               "authentication failed",
	ErrClosing:                  "client is closing",
	errNothing:                  "no response to process",
	ErrSessionMoved:             "session moved to another server",
	ErrNotReadOnly:              "server is read-only",
	ErrEphemeralOnLocalSession:  "ephemeral node on a local session",
	ErrNoWatcher:                "no such watch",
	errRequestTimeout:           "request timed out",
	ErrReconfigDisabled:         "reconfiguration is disabled",
	ErrSessionClosedRequireAuth: "server requires authentication",
	ErrQuotaExceeded:            "quota exceeded",
	ErrThrottledOp:              "operation throttled",
}

// Error returns the code in words; an unknown code prints its number.
func (e Code) Error() string {
	if s, ok := codeNames[e]; ok {
		return s
	}
	return "zookeeper error " + strconv.Itoa(int(e))
}

// Err returns the code as an error, nil for OK.
func (e Code) Err() error {
	if e == OK {
		return nil
	}
	return e
}

// Code encodes or decodes the code as an int.
func (e *Code) Code(c *Coder) { c.Int32((*int32)(e)) }
