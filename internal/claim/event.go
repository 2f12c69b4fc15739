package claim

import (
	"strconv"
	"time"

	"bellwether/wire"
)

// Event is one input of a state machine: one of the types below, or an event that a recipe family
// declares.
type Event interface{ Event() }

// Attached reports that the client is connected with this session, for the first time or again. If the
// session id differs from the previous one, the previous session is over.
type Attached struct {
	Session wire.SessionID
	Lease   Lease
}

// Disconnected reports that the client has no connection. The session may still be alive.
type Disconnected struct{}

// Expired reports that a server declared the session expired.
type Expired struct{}

// Closed reports that the client closes its session. The driver must step it before it sends the request
// that closes the session.
type Closed struct{}

// Confirmed carries a later proof that the session is alive.
type Confirmed struct{ Lease Lease }

// Reply answers the Request that has the same N. It holds one result for each operation.
type Reply struct {
	N       uint64
	Results []Result
}

// Fired reports that the watch at Path is gone. Type is the event that ended it, or wire.EventNone if no
// event did. N is the number of the request that set the watch. The driver steps Fired after the Reply to
// that request.
type Fired struct {
	Path string
	Type wire.EventType
	N    uint64
}

// TreeEvent is one event of a tree watch. The type wire.EventNone means that the connection was lost and
// is restored. Changes after Zxid may then be missing.
type TreeEvent struct {
	Type wire.EventType
	Path string
	Zxid wire.Zxid // -1: unknown
}

// TreeEvents carries events of a tree watch, in order. The driver steps it before the Reply to any request that
// the server answered after these events.
type TreeEvents struct{ Events []TreeEvent }

// TreeWatchOver reports that the tree watch has ended. Changes after Zxid were not reported.
type TreeWatchOver struct{ Zxid wire.Zxid }

// Resign asks the machine to give up. It also says that the work done during the term has stopped. The
// machine then removes the znodes that it created, and ends. If a term has ended by itself, its bid stays
// until Resign arrives or the deadline passes. Err is the reason; nil means that the caller chose to stop.
type Resign struct{ Err error }

// Tick reports only that time has passed.
type Tick struct{}

func (Attached) Event()      {}
func (Disconnected) Event()  {}
func (Expired) Event()       {}
func (Closed) Event()        {}
func (Confirmed) Event()     {}
func (Reply) Event()         {}
func (Fired) Event()         {}
func (TreeEvents) Event()    {}
func (TreeWatchOver) Event() {}
func (Resign) Event()        {}
func (Tick) Event()          {}

// Ready holds everything that the steps since the last call of Ready have produced.
type Ready struct {
	Request *Request // the request to send to the servers; nil: none. At most one request is outstanding.
	// Start lists long-running operations to begin, in this order. Several can run at once. OpKind names
	// the events by which each operation reports its progress.
	Start []Op
	// Wake is the time until the next Step is due if no other event arrives. The driver then steps Tick. 0
	// means that no Step is due.
	Wake time.Duration
	// KeepAlive asks the driver to ping the session as often as [Lease.Pace] says, and to step each proof as
	// Confirmed.
	KeepAlive    bool
	Observations []Observation
}

// Reason says why a claim, such as a Line or a Stay, ended.
type Reason uint8

// The reasons.
const (
	Resigned       Reason = iota + 1
	LeaseLapsed           // the deadline passed without a new proof that the session is alive
	SessionExpired        // a server reported that the session is over
	SessionClosed         // the client was closed
	BidGone               // somebody else deleted the bid
	Refused               // the server does not permit an operation that the recipe needs
	Occupied              // other bids are ahead, and the caller asked not to wait
)

var reasonNames = [...]string{"", "resigned", "no proof in time that the session lives", "session expired",
	"client closed", "bid deleted by somebody else", "refused",
	"other bids are ahead"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason " + strconv.Itoa(int(r))
}

// Observation is something that a machine reports in Ready for the log. String returns the log text.
type Observation interface{ String() string }

// TermEnd says how a bid, or the term that it won, ended. Callers that bid repeatedly use it to decide
// whether to bid again.
type TermEnd struct {
	Returned bool  // the caller's work in the term returned by itself
	Err      error // the error of that work, or the reason why another bid would fail too
}

// Again reports whether the caller should bid again. It is true if the bid or the term was only lost.
func (e TermEnd) Again() bool { return !e.Returned && e.Err == nil }

// Passing reports whether the reason is temporary, so that another bid can succeed.
func Passing(r Reason) bool { return r == LeaseLapsed || r == SessionExpired || r == BidGone }
