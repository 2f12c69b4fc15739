package claim

import (
	"errors"
	"path"

	"bellwether/wire"
)

// OpKind is the kind of an [Op].
type OpKind uint8

// The kinds of operations. OpWatch and OpUnwatch also change the watches of the client's session.
// OpParents, OpAwait and OpWatch may take several requests of the protocol; see [Plan].
const (
	OpSync     OpKind = iota + 1 // bring the connected server up to date
	OpParents                    // create Path with Data, and its missing parents, as persistent znodes; succeeds if Path exists
	OpCreate                     // create a znode, ephemeral unless Persistent is set
	OpList                       // read the names of the children
	OpGet                        // read data and stat
	OpWatch                      // read data and stat, and watch for the deletion of the znode; leaves no watch if the znode is missing
	OpUnwatch                    // remove the watch; never fails
	OpDelete                     // delete the znode if it has the given version; AnyVersion matches all
	OpCheck                      // only in a multi: check that the znode exists
	OpMulti                      // carry out all of Ops or none
	OpWatchAll                   // read the names of the children, and watch for changes of them
	OpSet                        // replace the data
	OpAwait                      // read data and stat, and watch for any change; the watch also covers the creation of a missing znode
	OpExists                     // read the stat, with the same watch as OpAwait
	OpMore                       // only in a multi: further operations that the caller adds

	// Operations on a tree. After OpWatchTree or OpListen, the events of the tree arrive as TreeEvents until
	// TreeWatchOver.
	OpWatchTree // set a persistent watch for every change at Path and below; wire.ErrUnimplemented if the server does not support it
	OpListen    // receive the events of one-shot watches at Path and below; the server cannot refuse this
	OpSince     // report what changed since a zxid, without reading it
	OpStat      // read only the stat

	// Only in Ready.Start: long-running operations. Each comment names the events that the driver steps.
	OpRegister   // keep an ephemeral znode at Path: Registered when it exists, RegistrationOver when the server refuses it
	OpDeregister // end the registration: RegistrationOver
	OpFollow     // keep a Cache of Path and its children: Seen for changes, CacheOver at the end
	OpUnfollow   // end the Cache: CacheOver
	OpBid        // bid in the election at Path, and own the part during the term: BidOver
	OpResign     // end the bid: the driver tells the owner to stop, and resigns after the owner has returned
	OpTidy       // delete the election at Path unless it has bids: Tidied, whether it was deleted or not
	OpTake       // take the lock at Path: LockTaken or LockRefused, and LockLost if it is lost
	OpStopTaking // stop taking the lock: LockRefused, or LockTaken if it was taken first
	OpGiveBack   // give back the lock at Path, even if it is lost: LockGone
	OpJoin       // take part in the transaction at Path: SiteOver
)

var opNames = [...]string{"", "sync", "parents", "create", "list", "get", "watch", "unwatch", "delete", "check", "multi",
	"list and watch", "set", "await", "exists", "more", "watch tree", "listen", "since", "stat",
	"register", "deregister", "follow", "unfollow", "bid", "resign", "tidy", "take", "stop taking", "give back", "join"}

func (k OpKind) String() string { return opNames[k] }

// AnyVersion, as the version of a condition, matches every version of a znode.
const AnyVersion = -1

// Op is one operation of a [Request] or of [Ready].Start. The comment of a field names the kinds that use
// it.
type Op struct {
	Kind       OpKind
	Path       string
	Data       []byte // create, set, parents
	Sequential bool   // create
	Persistent bool   // create
	Like       string // create, in a multi: use the ACL of this znode
	Version    int32  // delete, set
	Strict     bool   // watch: fail if reading is not allowed, instead of setting the watch without reading
	Ops        []Op   // multi
	// Alone excludes a get or a list from being combined with neighbouring operations into one request of
	// the protocol.
	Alone bool
	Since *Since // since
}

// Sync, Get, List, Unwatch and MakeParents return an OpSync, OpGet, OpList, OpUnwatch and OpParents.
func Sync(path string) Op        { return Op{Kind: OpSync, Path: path} }
func Get(path string) Op         { return Op{Kind: OpGet, Path: path} }
func List(path string) Op        { return Op{Kind: OpList, Path: path} }
func Unwatch(path string) Op     { return Op{Kind: OpUnwatch, Path: path} }
func MakeParents(path string) Op { return Op{Kind: OpParents, Path: path} }

// Delete returns an OpDelete of any version.
func Delete(path string) Op { return Op{Kind: OpDelete, Path: path, Version: AnyVersion} }

// Check returns an OpCheck.
func Check(path string) Op { return Op{Kind: OpCheck, Path: path, Version: AnyVersion} }

// Multi returns an OpMulti.
func Multi(path string, ops ...Op) Op { return Op{Kind: OpMulti, Path: path, Ops: ops} }

// Part returns the name of the part that an OpBid, OpResign or OpTidy concerns: the last element of its
// path.
func (o Op) Part() string { return path.Base(o.Path) }

// Since is the question of an OpSince: was the data of Paths set after Zxid, and did children of Parents
// appear or disappear after it?
type Since struct {
	Zxid           wire.Zxid
	Paths, Parents []string
}

// Request is a list of operations. The driver sends them in order over the session's connection. [Batch]
// says which of them it sends without waiting for an answer. One [Reply] with the same N answers the whole
// request.
//
// Only the given session may carry out the operations. Otherwise a later session could create a bid that
// no machine knows. If the session is over, the driver answers an operation with wire.ErrSessionExpired
// instead. Requests of a Cache create nothing, so any session may carry them out.
type Request struct {
	N       uint64
	Session wire.SessionID
	Ops     []Op
}

// Joins reports whether an operation is a read that can share a request of the protocol with others.
func (o Op) Joins() bool { return !o.Alone && (o.Kind == OpList || o.Kind == OpGet) }

// Count returns for how many operations at the start of ops the function is returns true.
func Count(ops []Op, is func(Op) bool) int {
	n := 0
	for n < len(ops) && is(ops[n]) {
		n++
	}
	return n
}

// Batch returns how many of the remaining operations the driver sends without waiting for an answer:
// consecutive reads, and an OpSync before them. The outcome of the sync affects what the reads find, but not
// whether they should be sent.
func Batch(ops []Op) int {
	n := 0
	if ops[0].Kind == OpSync {
		n = 1
	}
	return max(n+Count(ops[n:], Op.Joins), 1)
}

// Result is the result of one operation.
type Result struct {
	// Err is a wire.Code or wraps one. After ErrConnectionLoss the outcome of a write is unknown.
	// Operations that were not sent because of it have the same error.
	Err     error
	Failed  int // of an OpMulti: index of the operation that failed
	Path    string
	Data    []byte
	Stat    wire.Stat
	Names   []string
	Changes []TreeEvent // of an OpSince: what has changed
}

// Class says how a machine proceeds after an error.
type Class uint8

const (
	Fine        Class = iota
	Retry             // not carried out, or the outcome is unknown: find out, or try later
	SessionOver       // the session is over
	ClientOver        // the client is closed
	Denied            // the tree or the server refuses the operation
)

// Passes reports whether an error is temporary: the connection or the session failed, or a server was
// unavailable.
func Passes(err error) bool {
	f := Classify(err)
	return f == Retry || f == SessionOver
}

// Classify returns the class of an error.
func Classify(err error) Class {
	if err == nil {
		return Fine
	}
	var code wire.Code
	if !errors.As(err, &code) {
		return Denied
	}
	switch code {
	case wire.ErrConnectionLoss, wire.ErrOperationTimeout, wire.ErrSessionMoved, wire.ErrNotReadOnly, wire.ErrThrottledOp:
		return Retry
	case wire.ErrSessionExpired:
		return SessionOver
	case wire.ErrClosing:
		return ClientOver
	}
	return Denied
}
