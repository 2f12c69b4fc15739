package zab

import (
	"math"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// LinkID names a connection between a leader and a learner.
type LinkID = peerwire.LinkID

// Event is what happens to a machine: one of the types below.
type Event interface{ event() }

// Opened (leader) says that a learner has connected.
type Opened struct{ Link LinkID }

// Looks (leader) says that a server looks for a leader. Its history is of the epoch
// Current or of an earlier one.
type Looks struct {
	Server  ensemble.ServerID
	Current wire.Epoch
}

// Closed says that a connection has ended, by either side. A learner has only one
// connection.
type Closed struct {
	Link LinkID
	Why  string
}

// Received is a packet, whose memory now belongs to the machine. A learner gets a packet
// of type SNAP after the whole snapshot behind it has been read; the driver keeps the
// snapshot until an Install asks for it.
type Received struct {
	Link   LinkID
	Packet *peerwire.QuorumPacket
}

// Progress (learner) says that a part of a snapshot has arrived, so the leader is not
// silent.
type Progress struct{ Link LinkID }

// Synced says that everything up to Zxid of the log of this generation is durable.
type Synced struct {
	Zxid       wire.Zxid
	Generation uint64
}

// Saved says that an epoch is durable: Accepted or Current; the other one is 0.
type Saved struct {
	Accepted, Current wire.Epoch
	Generation        uint64
}

// Installed (learner) says that the snapshot asked for is durable and is the history.
type Installed struct {
	Zxid       wire.Zxid
	Generation uint64
}

// Refused says that a duty could not be done and has changed nothing: the disk is full,
// or a truncation asked for a zxid that is not in the log. No later duty is done either,
// whichever role has asked for it, and nothing that those duties were to change has
// changed, not even an epoch. The log on disk ends at Zxid. The role ends. If there is
// no role, the event goes to Log.Refuse.
type Refused struct {
	Zxid       wire.Zxid
	Generation uint64 // generation that came with the duty
	Why        string
}

// LogRead (leader) answers a ReadLog with the transactions that follow After, without a
// gap, up to Through. If OK is false, the log does not have all of them.
type LogRead struct {
	Link LinkID
	Txns []*record.Txn
	OK   bool
}

// Propose (leader) asks to broadcast a transaction, whose zxid must be NextZxid.
type Propose struct{ Txn *record.Txn }

// Forward (learner) sends a client's request to the leader. The machine keeps nothing
// of it after the step.
type Forward struct {
	Request    peerwire.ForwardedRequest
	Identities []wire.ID
}

// Sync is a client's sync: it is answered when everything that was acknowledged to any
// client before the sync is applied on this server. On a leader, Link is the link of the
// learner that sent the sync, or 0 for a client of the leader. Token comes back in
// Ready.Syncs. On a learner, Request is what the learner forwards to the leader.
type Sync struct {
	Link    LinkID
	Token   uint64
	Request Forward
}

// Revalidate (learner) asks the leader whether a session may be resumed here.
type Revalidate struct{ Revalidation peerwire.Revalidation }

// Revalidated (leader) is the answer to a learner's Revalidate. Question is that of the Input.
type Revalidated struct {
	Link     LinkID
	Answer   peerwire.Revalidated
	Question wire.Zxid
}

// Touched reports sessions that were heard from. On a learner, Token, which must not decrease,
// comes back in Ready.Confirmed. Waits says that a client waits for that: a learner then asks the
// leader at once, and a leader, which needs no Sessions, asks for its lease at once.
type Touched struct {
	Sessions []peerwire.TouchedSession
	Token    uint64
	Waits    bool
}

// Leave ends the term from outside: the election says that the term will fail, or the
// server stops.
type Leave struct{ Why string }

// Slept (leader) says that the machine was suspended for MS milliseconds, during which
// the clock of the events stood still.
type Slept struct{ MS int64 }

// Tick says that time has passed. The driver steps all that has arrived before it.
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

// Ready holds what is to be done after the steps since the last one. Each field
// says what must be done before it. There are three parts: duties for the disk,
// which go to the log writer; what is done at once; and what the driver is told.
// Nothing in a Ready waits for the duties of the same Ready: a packet that promises
// something about the disk is in a later Ready, after the event that says it is durable.
type Ready struct {
	// SaveAccepted is an epoch to be made durable as acceptedEpoch, after all
	// duties of earlier Readys and before all other duties of this Ready. The
	// driver answers with Saved once it is durable. 0: none.
	SaveAccepted wire.Epoch
	// Truncate cuts the log, after SaveAccepted and before Append. The cut is
	// durable before the next duty begins. It is answered only if it is Refused.
	Truncate *Truncate
	// Install replaces the history by a snapshot, after SaveAccepted. It is
	// durable before the next duty begins, and answered with Installed.
	Install *Install
	// Append is written behind the log, in this order, after Truncate and Install
	// and after every earlier Append. All of it is made durable (as by Sync)
	// before SaveCurrent.
	Append []*record.Txn
	// Sync makes the log durable with fsync, whatever is in it, after Append and
	// before SaveCurrent. Sync and Append are answered with one Synced.
	Sync bool
	// SaveCurrent is an epoch to be made durable as currentEpoch: after the log of
	// this Ready and all earlier ones is durable. Otherwise a crash could leave a
	// server that claims an epoch without its history. The driver answers with
	// Saved once it is durable. 0: none.
	SaveCurrent wire.Epoch
	// Generation is repeated in the answers to the duties of this Ready. A Truncate or
	// an Install raises it, so that answers to earlier duties are recognised as such.
	Generation uint64

	// Commit is applied to the tree in this order, after what earlier Readys
	// committed; before Established, Reconfigured and Syncs of this Ready take
	// effect, and before snapshots in Send are taken. It does not wait for the
	// disk: a quorum of other disks may be enough.
	Commit []*record.Txn
	// Send is sent in this order on each link, behind what earlier Readys sent. It
	// does not wait for the duties of this Ready. If a message has Snapshot set, the
	// bytes of a snapshot are sent after it, and only then the next messages of that
	// link.
	Send []Message
	// HeartbeatDue (leader) is when the pings in Send were due; 0: Send has no pings, or
	// none that were due. Nothing depends on its order.
	HeartbeatDue int64
	// Close ends links, each after everything in Send for it is sent.
	Close []LinkID
	// ReadLog asks for the log on disk. It waits for nothing, and nothing waits for
	// it; each is answered with LogRead, in any order.
	ReadLog []ReadLog

	// Joined is set once per term, when discovery is over: a learner promises the
	// leader's epoch (the ACKEPOCH is in Send), a leader has the promises of a
	// quorum. The driver tells the election before it steps further events.
	Joined bool
	// Established is set once per term. Clients are served after Commit of this
	// Ready is applied, and not before.
	Established *Established
	// Reconfigured are configurations that hold in this order, each after the
	// transaction of its zxid in Commit is applied, and before GiveUp.
	Reconfigured []Reconfigured
	// LastSeen is a proposed configuration, to be made durable beside the committed one,
	// after all duties of earlier Readys and before Append. The driver does not answer.
	// nil: no new one was proposed.
	LastSeen *ensemble.Membership
	// TreeOrders is what the comparison of trees asks of this server or says to it, in this
	// order. It comes before Commit of this Ready is applied.
	TreeOrders []TreeOrder
	// Inputs (leader) is what learners sent for the rest of the server, in the order
	// in which it arrived on each link. The driver handles them in this order. A follower
	// that serves observers returns their revalidations, which it has passed on.
	Inputs []Input
	// Syncs are the tokens of client syncs, in the order in which they were asked
	// for. Each is answered after Commit of this Ready is applied.
	Syncs []uint64
	// Revalidated (learner) are the leader's answers, in the order of the questions.
	// They wait for nothing.
	Revalidated []peerwire.Revalidated
	// Confirmed (learner) is the highest token of Touched that the leader has
	// confirmed. Pings of clients up to it are answered after Commit of this Ready
	// is applied. 0: none so far.
	Confirmed uint64

	// Rebuild says that the tree holds transactions that the log on disk has lost. All
	// client connections are closed, and the tree is loaded from disk again, after all
	// duties of earlier Readys and before anything is served again.
	Rebuild bool
	// Above is the value for LeaderOptions.Above in the next term, whenever that
	// begins; 0: the value stays as it was.
	Above wire.Epoch
	// GiveUp is the reason why the term ends; empty while the term continues. The
	// caller first carries out everything else in this Ready.
	GiveUp string
	// Silent is set with GiveUp if the learner has not heard from its leader for too long.
	Silent bool
	// Again is set with GiveUp if a learner should keep its role and connect to the leader, or
	// another master, at once: it will ask for a snapshot.
	Again bool
	// Successor is set with GiveUp if the leader has named the next leader. Commit of
	// this Ready is part of the history that Successor.Zxid ends.
	Successor *Successor
	// Wake is when to step a Tick at the latest, after all events that have arrived
	// by then; or Never.
	Wake int64
	// Observations are for the log and the flight recorder, in this order. They wait
	// for nothing.
	Observations []Observation
}

// Truncate cuts the log behind Zxid. Everything up to Zxid stays.
type Truncate struct {
	Zxid wire.Zxid
	// Rebuild says that the tree has applied transactions that are cut off. All client
	// connections are closed, and when the cut is durable, the tree is loaded from disk
	// again, before the next duty. If a client may have seen a transaction that is cut
	// off, the driver reports an error.
	Rebuild bool
}

// Install makes the snapshot that was read from Link, with Txns applied to it, the
// whole history up to Zxid, and sets aside everything that the log holds above Zxid. The
// snapshot may already contain transactions of Txns. Once the snapshot is durable, the
// tree that is made of it is the server's tree, even if the term fails. Clients see that
// tree from the next Established on, which may be that of a later term.
type Install struct {
	Link LinkID
	Zxid wire.Zxid
	Txns []*record.Txn
}

// Message is a packet for one link.
type Message struct {
	Link   LinkID
	Packet *peerwire.QuorumPacket
	// Snapshot says that a snapshot of the tree follows the packet. The snapshot is
	// taken after Commit of the same Ready is applied, so it holds everything up to the
	// packet's zxid. It may also hold later committed transactions.
	Snapshot bool
}

// ReadLog asks for the transactions in (After, Through] on disk. They are committed,
// but the disk of this server may not have all of them yet; in that case OK is false in
// the answer.
type ReadLog struct {
	Link           LinkID
	After, Through wire.Zxid
}

// Established says that a server may serve, and in which epoch and configuration.
type Established struct {
	Epoch wire.Epoch
	// Members is the configuration that holds from now on; nil: as before.
	Members *ensemble.Membership
	// Installed says that the tree is that of the last Install, which clients have not
	// seen.
	Installed bool
}

// Input holds what a learner sent for the rest of the server. Exactly one of Request,
// Revalidation and Touched is set. If a follower has passed it on for an observer, Server and
// Native are those of the observer, and Link is the follower's.
type Input struct {
	Link         LinkID
	Server       ensemble.ServerID
	Native       bool      // the learner is a native peer
	Question     wire.Zxid // of a Revalidation: the answer repeats it
	Request      *peerwire.ForwardedRequest
	Identities   []wire.ID // identities of a Request
	Revalidation *peerwire.Revalidation
	Touched      []peerwire.TouchedSession
	route        *route // on a native leader: the follower's registration of the observer; nil: the learner's own input
}

// Reconfigured is a configuration that the transaction Zxid has committed, and the server
// that leads under it. If that server is not the present leader, or if this server gets
// another role, the term ends with the reconfiguration.
type Reconfigured struct {
	Zxid    wire.Zxid
	Members *ensemble.Membership
	Leader  ensemble.ServerID
}
