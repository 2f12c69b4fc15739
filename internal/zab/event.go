package zab

import (
	"math"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// LinkID names a connection between a leader and a learner; never used twice.
type LinkID uint64

// Event is what happens to a machine: one of the types below.
type Event interface{ event() }

// Opened (leader): a learner has connected.
type Opened struct{ Link LinkID }

// Looks (leader): a server looks for a leader. Its history is of the epoch
// Current or of an earlier one.
type Looks struct {
	Server  ensemble.ServerID
	Current wire.Epoch
}

// Closed: a connection has ended, by whichever side. A learner has one only.
type Closed struct {
	Link LinkID
	Why  string
}

// Received is a packet, whose memory now belongs to the machine. One of type
// SNAP is handed to a learner when the whole snapshot behind it has been read;
// the driver keeps that until an Install asks for it.
type Received struct {
	Link   LinkID
	Packet *peerwire.QuorumPacket
}

// Progress (learner): a part of a snapshot has arrived.
type Progress struct{ Link LinkID }

// Synced: everything up to Zxid of the log of this generation is durable.
type Synced struct {
	Zxid       wire.Zxid
	Generation uint64
}

// Saved: the epochs asked for are durable; 0 where it is not about that one.
type Saved struct {
	Accepted, Current wire.Epoch
	Generation        uint64
}

// Installed (learner): the snapshot asked for is durable and is the history.
type Installed struct {
	Zxid       wire.Zxid
	Generation uint64
}

// Refused: a duty could not be done, and nothing of it was: no room on the
// disk, a truncation to what is not in the log. No duty behind it is done
// either, whichever role has asked for it; what they were to change is as
// before, the epochs included. The log on disk ends at Zxid. The role ends; with
// none, the event goes to Log.Refuse.
type Refused struct {
	Zxid       wire.Zxid
	Generation uint64 // that came with the duty
	Why        string
}

// LogRead (leader) answers a ReadLog: the transactions that follow its After
// without a gap, as far as asked for. Not OK: the log cannot tell.
type LogRead struct {
	Link LinkID
	Txns []*record.Txn
	OK   bool
}

// Propose (leader): broadcast this transaction, whose zxid is NextZxid.
type Propose struct{ Txn *record.Txn }

// Forward (learner): the leader is to carry out a client's request. The
// machine keeps nothing of it after the step.
type Forward struct {
	Request    peerwire.ForwardedRequest
	Identities []wire.ID
}

// Sync asks for a moment by which everything acknowledged before is applied
// here. On a leader Link says for which learner, 0: a client of its own. Token
// comes back in Ready.Syncs. On a learner Request is what is forwarded.
type Sync struct {
	Link    LinkID
	Token   uint64
	Request Forward
}

// Revalidate (learner): may this session be resumed here?
type Revalidate struct{ Revalidation peerwire.Revalidation }

// Revalidated (leader) answers a learner's question.
type Revalidated struct {
	Link   LinkID
	Answer peerwire.Revalidated
}

// Touched (learner): sessions heard from. Token, which must grow, comes back
// in Ready.Confirmed.
type Touched struct {
	Sessions []peerwire.TouchedSession
	Token    uint64
}

// Leave ends the term from outside: the election says that it will come to
// nothing, or the server stops.
type Leave struct{ Why string }

// Slept (leader): the machine was suspended for so long, and the clock of the
// events stood meanwhile.
type Slept struct{ MS int64 }

// Tick: time has passed. The driver steps all that has arrived before it.
type Tick struct{}

func (Opened) event()      {}
func (Looks) event()       {}
func (Closed) event()      {}
func (Received) event()    {}
func (Progress) event()    {}
func (Synced) event()      {}
func (Saved) event()       {}
func (Installed) event()   {}
func (Refused) event()     {}
func (LogRead) event()     {}
func (Propose) event()     {}
func (Forward) event()     {}
func (Sync) event()        {}
func (Revalidate) event()  {}
func (Revalidated) event() {}
func (Touched) event()     {}
func (Leave) event()       {}
func (Slept) event()       {}
func (Tick) event()        {}

// Never is the Wake of a machine that waits for nothing.
const Never = math.MaxInt64

// Ready is what is to be done after the steps since the last one.
//
// The duties for the disk go to the log writer, in the order of the fields and
// behind all that were handed out before, those of earlier roles included. The
// writer answers each with its event and the Generation that stands here; the
// loop does not wait for it. All else may be done at once: a packet that
// promises something about the disk is handed out after the event that says so.
type Ready struct {
	SaveAccepted wire.Epoch    // answered with Saved; 0: none
	Truncate     *Truncate     // answered only if it is Refused
	Install      *Install      // answered with Installed
	Append       []*record.Txn // implies Sync
	Sync         bool          // sync the log, whatever is in it; answered with Synced
	SaveCurrent  wire.Epoch    // answered with Saved; 0: none
	Generation   uint64

	// Commit is applied to the tree before anything below, in this order.
	Commit []*record.Txn
	// Send is in order for each link. Behind a message with Snapshot set the
	// bytes of a snapshot are sent: of a tree that holds everything up to the
	// packet's zxid and may hold more of what was committed.
	Send []Message
	// BeatDue (leader) is when the pings in Send were due; 0: there are none, or
	// none that were.
	BeatDue int64
	// Close ends links, behind what was sent to them.
	Close []LinkID
	// ReadLog asks for the log on disk; answered with LogRead.
	ReadLog []ReadLog

	// Joined is set once: discovery is over. A learner promises the epoch that
	// the leader has told it, a leader has its epoch promised by a quorum.
	Joined bool
	// Established is set once: clients may be served from here on.
	Established *Established
	// Reconfigured are configurations that hold once Commit is applied.
	Reconfigured []Reconfigured
	// LastSeen (learner) is a configuration under way, to be made durable
	// beside the one that holds; nil: none new.
	LastSeen *ensemble.Membership
	// Inputs (leader) is what learners sent for the rest of the server, in order.
	Inputs []Input
	// Syncs are the tokens of syncs that are done once Commit is applied.
	Syncs []uint64
	// Revalidated (learner) are the leader's answers.
	Revalidated []peerwire.Revalidated
	// Confirmed (learner) is the highest token of Touched that the leader has
	// confirmed; 0: none so far.
	Confirmed uint64

	// Rebuild: the tree holds what the log on disk has lost, and must be made
	// anew from disk; all clients are closed.
	Rebuild bool
	// Above is for the LeaderOptions of the next term; 0: as before.
	Above wire.Epoch
	// GiveUp ends the term and says why; empty while it goes on. Successor is
	// set with it where the leader has named who is to lead next.
	GiveUp    string
	Successor *Successor
	// Wake is when to step a Tick at the latest, or Never.
	Wake int64
	// Happenings are for the log and the flight recorder.
	Happenings []Happening
}

// Truncate cuts the log behind Zxid. Rebuild: the tree has applied what is
// cut, so it must be made anew from disk; where a client may have seen it that
// is an error worth telling, and all clients are closed.
type Truncate struct {
	Zxid    wire.Zxid
	Rebuild bool
}

// Install makes the snapshot that was read from Link, with Txns applied to it, the
// whole history up to Zxid, and sets aside everything the log holds above it.
// Applying must bear transactions that the snapshot knows already. From here on
// this is the server's tree, whatever becomes of the term; clients see it only
// from the next Established on, which may be that of a later term.
type Install struct {
	Link LinkID
	Zxid wire.Zxid
	Txns []*record.Txn
}

// Message is a packet for one link.
type Message struct {
	Link     LinkID
	Packet   *peerwire.QuorumPacket
	Snapshot bool
}

// ReadLog asks for the transactions in (After, Through].
type ReadLog struct {
	Link           LinkID
	After, Through wire.Zxid
}

// Established says in what a server serves.
type Established struct {
	Epoch wire.Epoch
	// Members is the configuration that holds from now on; nil: as before.
	Members *ensemble.Membership
	// Installed: the tree is that of the last Install, and new to clients.
	Installed bool
}

// Input is what a learner sent that is not for this package: exactly one of
// Request, Revalidation and Touched is set.
type Input struct {
	Link         LinkID
	Server       ensemble.ServerID
	Ours         bool // it agreed on extensions
	Request      *peerwire.ForwardedRequest
	Identities   []wire.ID // of a Request
	Revalidation *peerwire.Revalidation
	Touched      []peerwire.TouchedSession
}

// Reconfigured is a configuration committed by the transaction Zxid, with who
// leads under it. Where that is another than the present leader, or this
// server's own role is another one, the term has ended with it.
type Reconfigured struct {
	Zxid    wire.Zxid
	Members *ensemble.Membership
	Leader  ensemble.ServerID
}
