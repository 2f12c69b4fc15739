package claim

import (
	"strconv"
	"time"

	"bellwether/wire"
)

// Event is what happens to a Line: one of the types below.
type Event interface{ Event() }

// Attached: the client is connected with this session, for the first time or
// again. Another session than before means that the one before is over.
type Attached struct {
	Session wire.SessionID
	Lease   Lease
}

// Disconnected: there is no connection. The session may live on.
type Disconnected struct{}

// Expired: a server said that the session is over.
type Expired struct{}

// Closed: the client closes its session. It is to be stepped before the
// server can know.
type Closed struct{}

// Confirmed: a later proof that the session lives.
type Confirmed struct{ Lease Lease }

// Reply answers the Request with this N, one result for each operation.
type Reply struct {
	N       uint64
	Results []Result
}

// Fired: the watch at Path is over, by an event of that type or, where it is
// none, otherwise. It is stepped after the Reply of the request that set the
// watch, which was number N.
type Fired struct {
	Path string
	Type wire.EventType
	N    uint64
}

// TreeEvent is one event of a watch of a tree. wire.EventNone says that the
// connection was lost and is back: what happened after Zxid may be missing.
type TreeEvent struct {
	Type wire.EventType
	Path string
	Zxid wire.Zxid // -1: not known
}

// Told: what a watch of a tree tells, in order. Each is stepped before the
// Reply to whatever the server has answered after it.
type Told struct{ Events []TreeEvent }

// WatchOver: the watch of a tree is over. What happened after Zxid was not told.
type WatchOver struct{ Zxid wire.Zxid }

// Resign: the caller gives up, and what was done under a claim is over. The machine removes what it
// has made, and ends. Where a term has ended by itself, its bid stays until Resign comes or
// the deadline passes. Err is the reason, if there is one; nil: as is wished.
type Resign struct{ Err error }

// Tick: time has passed.
type Tick struct{}

func (Attached) Event()     {}
func (Disconnected) Event() {}
func (Expired) Event()      {}
func (Closed) Event()       {}
func (Confirmed) Event()    {}
func (Reply) Event()        {}
func (Fired) Event()        {}
func (Told) Event()         {}
func (WatchOver) Event()    {}
func (Resign) Event()       {}
func (Tick) Event()         {}

// Ready is what has come of the steps since the last one.
type Ready struct {
	Request *Request // to the servers; nil: none. At most one is outstanding.
	// Start are operations that take their own time, to be begun in this order. Several may be under
	// way; each tells of itself by events of its own, which OpKind names.
	Start []Op
	// Wake is how soon the next Step must come if nothing happens; 0 means
	// whenever. Tick does.
	Wake time.Duration
	// KeepAlive: the session is to be pinged every tenth of its timeout, and
	// each proof to be stepped as Confirmed.
	KeepAlive  bool
	Happenings []Happening
}

// Reason is why a Line ended.
type Reason uint8

// The reasons.
const (
	Resigned       Reason = iota + 1
	LeaseLapsed           // the deadline passed without a proof that the session lives
	SessionExpired        // a server said so
	SessionClosed         // the client was closed
	BidGone               // somebody else deleted the bid
	Refused               // the server does not allow what the recipe needs
	Occupied              // others are in the way, and it was only to be tried
)

var reasonNames = [...]string{"", "resigned", "no proof in time that the session lives", "session expired",
	"client closed", "bid deleted by somebody else", "refused",
	"others are in the way"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Happening is something worth telling that a machine reports in Ready. String is what the log says.
type Happening interface{ String() string }

// TermEnd is how a bid, or the term that it led to, has ended for who bids
// again and again.
type TermEnd struct {
	Returned bool  // what was done in the term has returned by itself
	Err      error // what it returned, or why no other bid would do better
}

// Again reports whether another bid follows: the claim was lost, no more.
func (e TermEnd) Again() bool { return !e.Returned && e.Err == nil }

// Passing reports whether a bid that ended for this reason says nothing against
// another one.
func (r Reason) Passing() bool { return r == LeaseLapsed || r == SessionExpired || r == BidGone }
