package replica

import "bellwether/wire"

// Time is the moment of an event, as the driver's clocks have it: Mono for
// durations (ms, any origin), Wall for what is written into transactions (ms
// since 1970).
type Time struct {
	Mono int64
	Wall int64
}

// ConnID names a client connection of this server; never used twice.
type ConnID uint64

// Event is what happens to a replica: one of the types below.
type Event interface{ event() }

// Connect: a connection asks for a new session (Session 0) or to resume one.
// TimeoutMS is what the client asked for; the replica clamps it.
type Connect struct {
	Conn      ConnID
	Session   wire.SessionID
	Password  []byte
	TimeoutMS int32
}

// Request: an attached connection asks for a write, a sync, or to close its
// session. Body must not change afterwards.
type Request struct {
	Conn       ConnID
	Xid        int32
	Op         wire.OpCode
	Body       []byte
	Identities []wire.ID
}

// Touched: the sessions heard from since the last report, with the Mono time
// at which each was heard last.
type Touched struct {
	Sessions []Touch
}

// Touch is one session's entry in Touched.
type Touch struct {
	Session wire.SessionID
	Mono    int64
}

// Disconnected: a connection ended, by whichever side. Its session lives on.
type Disconnected struct{ Conn ConnID }

// Synced: everything up to Zxid of the log of this generation is durable.
type Synced struct {
	Zxid       wire.Zxid
	Generation uint64
}

// LogFull: the log has no room. Everything after Zxid was cut off again and
// is not durable; the replica refuses writes until LogFree.
type LogFull struct {
	Zxid       wire.Zxid
	Generation uint64
}

// LogFree: there is room again.
type LogFree struct{}

// Tick: time has passed. The driver sends one at least every quarter of a tick.
type Tick struct{}

func (Connect) event()      {}
func (Request) event()      {}
func (Touched) event()      {}
func (Disconnected) event() {}
func (Synced) event()       {}
func (LogFull) event()      {}
func (LogFree) event()      {}
func (Tick) event()         {}

// Ready is the batch of duties that came of the steps since the last one.
// The driver does them in the order of the fields. Append goes to the log
// writer, which answers with Synced; nothing in the same Ready waits for it:
// what depends on it comes in a later Ready.
type Ready struct {
	// Append is written to the log behind all earlier ones, then synced, and
	// acknowledged by one Synced with the last zxid. Transactions are shared
	// with the replica and must not be changed.
	Append     []*wire.Txn
	Generation uint64
	// Attached answers Connect events.
	Attached []Attached
	// Replies answer requests, in each connection's order of requests. The
	// watch events of the transactions behind them were queued before.
	Replies []Reply
	// Close are connections to end, after the replies above.
	Close []ConnID
	// Applied is the last transaction applied to the tree.
	Applied wire.Zxid
	// Happenings are for the log and the flight recorder.
	Happenings []Happening
}

// Attached answers one Connect. TimeoutMS 0 refuses: Session is then 0.
type Attached struct {
	Conn      ConnID
	Session   wire.SessionID
	TimeoutMS int32
	Password  [wire.PasswordLen]byte
}

// Reply answers one Request.
type Reply struct {
	Conn     ConnID
	Header   wire.ReplyHeader
	Response wire.Record // nil where there is none
	Op       wire.OpCode
}

// Happening is something worth telling an operator; String is what the log says.
type Happening interface{ String() string }
