package claim

import (
	"errors"
	"path"

	"bellwether/wire"
)

// OpKind is what an [Op] asks of the server.
type OpKind uint8

// The kinds. Watch and Unwatch concern the client's session as well. Parents,
// Await and a Watch may take several requests: [Plan] says which.
const (
	OpSync     OpKind = iota + 1 // bring the connected server up to date
	OpParents                    // create Path, with Data, and what is missing above it as persistent znodes; it may exist
	OpCreate                     // create an ephemeral, unless Persistent
	OpList                       // the names of the children
	OpGet                        // data and stat
	OpWatch                      // data and stat, and a watch for the znode's deletion; no watch where there is none
	OpUnwatch                    // give up the watch; never fails
	OpDelete                     // delete, whatever the version unless it is given
	OpCheck                      // in a multi alone: the znode exists
	OpMulti                      // Ops, all or none
	OpWatchAll                   // the names of the children, and a watch for changes of them
	OpSet                        // replace the data
	OpAwait                      // data and stat, and a watch for any change, which stands where there is no znode too
	OpExists                     // the stat, and a watch as that of OpAwait
	OpMore                       // in a multi alone: whatever the caller adds to it

	// Of trees, whose events come as Told until WatchOver.
	OpWatchTree // a watch for every change at Path and below, that stays; wire.ErrUnimplemented where the server has none
	OpListen    // the same of what one-shot watches there tell; it cannot be refused
	OpSince     // what has changed since then, without reading it
	OpStat      // the stat alone

	// In Ready.Start alone: operations that take their own time, and whose events are named here.
	OpRegister   // keep an ephemeral znode at Path: Registered when it stands, RegistrationOver when it is refused
	OpDeregister // end that: RegistrationOver
	OpFollow     // keep a Cache of Path and its children: Seen, and CacheOver in the end
	OpUnfollow   // end that: CacheOver
	OpBid        // make a bid in the election at Path, and own the part in its term: BidOver
	OpLetGo      // end that: the owner is told, and resigns when it has returned
	OpTidy       // delete the election at Path, unless somebody stands in it: Tidied, also where it stays
	OpTake       // take the lock at Path: LockTaken, or LockRefused; and LockLost
	OpStopTaking // end that: LockRefused, or LockTaken where it had come to that
	OpGiveBack   // give back the lock at Path, whether it is lost or not: LockGone
	OpJoin       // take part in the transaction at Path: SiteOver
)

var opNames = [...]string{"", "sync", "parents", "create", "list", "get", "watch", "unwatch", "delete", "check", "multi",
	"list and watch", "set", "await", "exists", "more", "watch tree", "listen", "since", "stat",
	"register", "deregister", "follow", "unfollow", "bid", "let go", "tidy", "take", "stop taking", "give back", "join"}

func (k OpKind) String() string { return opNames[k] }

// AnyVersion leaves the version of a znode out of account.
const AnyVersion = -1

// Op is one operation to carry out on the server.
type Op struct {
	Kind       OpKind
	Path       string
	Data       []byte // create, set, parents
	Sequential bool   // create
	Persistent bool   // create
	Like       string // create, in a multi: with the ACL of this znode
	Version    int32  // delete, set
	Strict     bool   // watch: fail where reading is not allowed, instead of watching all the same
	Ops        []Op   // multi
	// Alone: a get or a list that is not to be answered together with those
	// beside it, which else may be one request to the server.
	Alone bool
	Since *Since // since
}

// Part is the name of the part that an OpBid, OpLetGo or OpTidy is about: the last one of its path.
func (o Op) Part() string { return path.Base(o.Path) }

// Since is what an OpSince asks for: whether the data of Paths was set after
// Zxid, and the children of Parents came or went.
type Since struct {
	Zxid           wire.Zxid
	Paths, Parents []string
}

// Request is a number of operations. They are sent in order over the session's
// connection, without waiting in between where [Batch] says so, and answered
// together by one [Reply] with the same N.
//
// None may be carried out by another session: a bid made by a session that
// follows an expired one would be nobody's. Such an operation is answered
// with wire.ErrSessionExpired instead. Those of a Cache make nothing, and may.
type Request struct {
	N       uint64
	Session wire.SessionID
	Ops     []Op
}

// Batch is how many of the operations that are left of a request are sent without
// waiting for an answer: plain reads, and a sync before them, which changes what
// they find, not whether they are worth sending.
func Batch(ops []Op) int {
	n := 0
	if ops[0].Kind == OpSync {
		n = 1
	}
	for n < len(ops) && (ops[n].Kind == OpList || ops[n].Kind == OpGet) {
		n++
	}
	return max(n, 1)
}

// Result is what one operation gave.
type Result struct {
	// Err is a wire.Code or wraps one. ErrConnectionLoss means that a write
	// may or may not have happened; an operation that was never sent because
	// of it has the same.
	Err    error
	Failed int // multi: which operation failed
	Path   string
	Data   []byte
	Stat   wire.Stat
	Names  []string
	Told   []TreeEvent // since
}

// Class is what an error means for what to do next.
type Class uint8

const (
	Fine        Class = iota
	Retry             // not done, or not known to be done: find out, try later
	SessionOver       // the session is over
	ClientOver        // the client is
	Denied            // the tree or the server says no
)

// Passes reports whether an error says no more than that the connection or the session
// failed, or that a server could not serve at the moment.
func Passes(err error) bool {
	f := Classify(err)
	return f == Retry || f == SessionOver
}

// Classify sorts an error.
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
