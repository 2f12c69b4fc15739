package replica

import (
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Time is the moment of an event, read from the driver's clocks. Mono measures
// durations (ms, any origin). Wall is the time that transactions get (ms since
// 1970).
type Time struct {
	Mono int64
	Wall int64
}

// ConnID identifies a client connection of this server. It is never used twice.
type ConnID uint64

// Event is an input of a replica: one of the types below, DiskStalled, DiskAnswered or
// TransferLeadership.
type Event interface{ event() }

// Connect: a connection asks for a new session (Session 0) or to resume one.
// TimeoutMS is what the client asked for; the replica clamps it. Seen is the
// last zxid that the client has seen.
type Connect struct {
	Conn      ConnID
	Session   wire.SessionID
	Password  []byte
	TimeoutMS int32
	Seen      wire.Zxid
	ReadOnly  bool // the client accepts a server without a quorum
}

// Request is a request of an attached connection: a write, a sync, a
// closeSession, a ping that Lease does not allow the driver to answer, or a
// read that has to wait for one of these. The replica keeps the pointer until
// it returns the request in an Output or the connection ends. Body must not be
// changed any more: the transaction keeps parts of it.
type Request struct {
	Conn       ConnID
	Xid        int32
	Op         wire.OpCode
	Body       []byte
	Identities []wire.ID
	// Refuse is a code with which the driver refuses the request. The request
	// is answered with this code in its turn, and nothing is proposed. OK means
	// that the driver does not refuse the request.
	Refuse wire.Code
	// Started, Queued, Stepped, Size, Large and Client belong to the driver. The replica returns them unchanged.
	Started, Queued, Stepped, Size, Large int64
	Client                                any

	verdict     wire.Code // the code from Prepare, if nothing was proposed
	zxid        wire.Zxid // zxid of the transaction that answers the request; 0: none, forwarded: not known
	token       uint64    // token of the sync that answers the request; 0: none, or it is done
	doubtful    bool      // sent to a ZooKeeper leader, or abandoned on the way to one: see made
	withoutStat []bool    // tree.Request.WithoutStat, if this server has prepared the request

	multi *wire.MultiRequest // see decodedMulti; nil: not decoded yet
}

// Touched reports the sessions that were heard from since the last report, with
// the Mono time at which each was last heard from.
type Touched struct {
	Sessions []Touch
}

// Touch is one session's entry in Touched.
type Touch struct {
	Session wire.SessionID
	Mono    int64
}

// Disconnected says that one side has ended a connection. Its session lives on.
type Disconnected struct{ Conn ConnID }

// Synced says that everything up to Zxid in the log of this generation is durable.
type Synced struct {
	Zxid       wire.Zxid
	Generation uint64
}

// LogFull says that the log has no room. Everything after Zxid was cut off again
// and is not durable; the replica refuses writes until LogFree. The driver must
// not append any more transactions of this generation that it still holds. In an
// ensemble, LogFull comes before the Refused that tells Zab the same, and the
// server leaves the quorum until LogFree.
type LogFull struct {
	Zxid       wire.Zxid
	Generation uint64
}

// LogFree says that the log has room again.
type LogFree struct{}

// Tick says that time has passed. The driver steps a Tick at least every quarter
// of a tick, and before it a Touched with all sessions that were heard from.
type Tick struct{}

// Expire ends a session as if its timeout had passed, if this server decides about
// sessions. It is used for faults on demand: the client loses its session earlier than
// its timeout promises.
type Expire struct{ Session wire.SessionID }

// Wake says that the moment of Ready.Wake has come. The driver steps everything
// that has arrived before it steps the Wake.
type Wake struct{}

// Vote (ensemble) passes an event to the election: Heard, Up, Down or RoundTrip.
type Vote struct{ Event election.Event }

// Zab (ensemble) passes an event to Zab. About links: Opened, Closed, Received or
// Progress. About the disk, in the order of the duties: Saved, Refused, or Installed
// (after the Rebuilt with its tree). LogRead answers Ready.ReadLog.
type Zab struct{ Event zab.Event }

// Linked (ensemble) says that the server that Ready.Dial names is connected.
type Linked struct {
	Server ensemble.ServerID
	Link   zab.LinkID
}

// Rebuilt (ensemble) brings the tree that a duty with Rebuild or Install asked for.
// From here on it is the server's tree.
type Rebuilt struct{ Tree *tree.Tree }

func (Connect) event()      {}
func (*Request) event()     {}
func (Touched) event()      {}
func (Disconnected) event() {}
func (Synced) event()       {}
func (LogFull) event()      {}
func (LogFree) event()      {}
func (Tick) event()         {}
func (Expire) event()       {}
func (Wake) event()         {}
func (Vote) event()         {}
func (Zab) event()          {}
func (Linked) event()       {}
func (Rebuilt) event()      {}

// Duty is work for the log writer. Duties are done one after the other, in the order
// in which they were handed out; within a duty each field says what is done before
// it. When a duty cannot be done, the driver reports that (Refused, LogFull). It then
// skips every duty that the replica handed out before it received the report.
type Duty struct {
	// SaveAccepted is an epoch to be made durable as acceptedEpoch, before all other
	// fields. Once it is durable it is answered with Zab{Saved}. 0: none.
	SaveAccepted wire.Epoch
	// Truncate cuts the log, after SaveAccepted. The cut is durable before the next
	// field is begun. Only its failure is answered, with Refused.
	Truncate *zab.Truncate
	// Rebuild asks for a tree that is loaded from the disk, after Truncate is durable.
	// The answer is Rebuilt.
	Rebuild bool
	// Install replaces the history by a snapshot, after SaveAccepted. Once it is
	// durable it is answered with Rebuilt, then Zab{Installed}.
	Install *zab.Install
	// Proposed is a proposed membership, whose file is written before Append. It is not
	// answered, and nothing depends on it.
	Proposed *ensemble.Membership
	// Append is written to the log, behind everything appended before and after
	// Truncate and Install. It is made durable before SaveCurrent, and answered with
	// one Synced that has its last zxid; Appends of several duties may share an fsync
	// and a Synced. Transactions are shared with the replica and must not be
	// changed. The slice is the driver's.
	Append []*record.Txn
	// Sync makes the log durable with fsync after Append, and is answered with
	// Synced, even if nothing is appended.
	Sync bool
	// SaveCurrent is an epoch to be made durable as currentEpoch, after Append and
	// Sync are durable. Once it is durable it is answered with Zab{Saved}. 0: none.
	SaveCurrent wire.Epoch
	// Committed is the committed membership, whose files are written after all other fields.
	// If Proposed is nil there, the file of a proposed one is removed. It is not answered, and
	// nothing depends on it.
	Committed *Memberships
	// Generation is repeated in the answers. It is raised whenever appended transactions
	// are taken back, so that answers from before that are dropped.
	Generation uint64
}

// Ready holds what is to be done after the steps since the last Ready. The driver hands
// Duties to the log writer and does not wait for them. It does the rest at once: a
// message that relies on a duty is in a later Ready, after the event that says that the
// duty is durable.
type Ready struct {
	// Duties are done in this order, behind all duties of earlier Readys. Nothing
	// else in this Ready waits for them.
	Duties []Duty

	// Votes are notifications. They promise nothing about the disk and wait for
	// nothing. For each server only the last one matters.
	Votes []election.Message
	// Send is sent in this order on each link, behind what earlier Readys sent. A
	// message with Snapshot set, and what follows on its link, is sent after Next has
	// returned false, because the snapshot is taken of the tree with all effects of
	// this Ready applied; all other messages wait for nothing.
	Send []zab.Message
	// HeartbeatDue is the Mono at which the pings in Send were due; 0: Send contains no
	// pings that were due. It does not affect the order of the duties.
	HeartbeatDue int64
	// Close ends links, each after everything in Send for it is sent.
	Close []zab.LinkID
	// ReadLog asks for the log on disk. It waits for nothing, and nothing waits for
	// it; each is answered with Zab{LogRead}, in any order.
	ReadLog []zab.ReadLog
	// Members are the memberships that count from here on; nil: as before. The driver
	// connects to their servers. It also listens at its own addresses in Committed.
	Members *Memberships
	// Listen says that learners are accepted from here on; false: no learner is accepted.
	// It holds until the next Ready.
	Listen bool
	// ListenObservers says that observers are accepted on the observer master port from here
	// on; false: none is accepted. It holds until the next Ready.
	ListenObservers bool
	// Dial is the server to be dialled as a learner, again and again until Linked;
	// NoServer: nobody. If DialMaster is set, its observer master port is dialled, else its
	// quorum port. Both hold until the next Ready.
	Dial       ensemble.ServerID
	DialMaster bool
	// Wake is the latest Mono time for the next Wake event, or Never. Events that have
	// arrived by then are stepped before the Wake. It holds until the next Ready.
	Wake int64
	// NextHeartbeat is the latest Mono time for a call of Heartbeat while something takes
	// long, or Never. It holds until the next Ready or Heartbeat.
	NextHeartbeat int64

	// Stop says why this server must end at once; empty if it need not.
	Stop string

	// Committed holds the transactions that Next applies from here on. The driver uses
	// them for metrics and traces only; it applies nothing itself.
	Committed []*record.Txn
	// Observations are for the log and the flight recorder, in this order. They wait
	// for nothing.
	Observations []Observation
}

// Never is a time that does not come.
const Never int64 = zab.Never

// OutputKind says which of its fields an Output uses.
type OutputKind uint8

// The kinds of outputs.
const (
	// Attached answers a Connect with Session, TimeoutMS and Password, before
	// anything else is sent to the connection. TimeoutMS 0 refuses; Session is then 0.
	Attached OutputKind = iota + 1
	// Reply answers Request with Header and Response. It is sent behind the watch
	// events of its transaction, which the tree has queued on the connection before
	// Next returned the Output.
	Reply
	// Turn gives back Request, which is a read. The driver carries out the read now,
	// before it calls Next again: the tree shows the writes before the read and none after
	// it.
	Turn
	// Close ends the connection, after everything that was queued on it is sent.
	Close
)

// Output is one effect that a client may see. Outputs are carried out in the order
// in which Next returns them.
type Output struct {
	Kind OutputKind
	Conn ConnID

	// Request is answered by a Reply, or given back by a Turn.
	Request  *Request
	Header   wire.ReplyHeader
	Response wire.Record // nil: the reply is the header alone

	// Session, TimeoutMS, Password and ReadOnly are the answer to a Connect.
	Session   wire.SessionID
	TimeoutMS int32
	Password  [wire.PasswordLen]byte
	ReadOnly  bool // the session belongs to read-only service
}

// Observation is something worth telling an operator; String is what the log says.
type Observation interface{ String() string }
