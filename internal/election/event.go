package election

import (
	"math"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Event is what happens to an election: one of the types below.
type Event interface{ event() }

// Look begins an election: at the start of the server, or because its role has ended.
type Look struct {
	// Zxid is the zxid of the newest transaction in the log, committed or not; 0 if the
	// log is empty. The value NoHistory says that nothing is known about the history that
	// this server once had: it only joins an existing leader.
	Zxid wire.Zxid
	// Epoch is the durable currentEpoch.
	Epoch wire.Epoch
	// Initialized says that, according to an operator's marker file, this server never had
	// a history. An empty log is then correct, whatever history the others have.
	Initialized bool
	// Abstains says that the disk of this server does not answer, so that the server can
	// promise no epoch. The server must not be elected nor help to elect, and its vote says
	// NoHistory. It only joins an existing leader.
	Abstains bool
	// Failed are the candidates whose last terms failed.
	Failed []Failed
	// Why is for operators: "started", "the leader's connection ended".
	Why string
}

// Heard is a notification from another server.
type Heard struct {
	From ensemble.ServerID
	// First: this is the first message on its connection. The server may have sent it
	// before, and resends it.
	First        bool
	Notification peerwire.Notification
}

// Up says that a connection to a server exists.
type Up struct{ Server ensemble.ServerID }

// Down says that a dial was refused, or that a server that ended has reset a connection.
// A timeout is not Down, nor is a connection that another one replaces, because a slow
// server may still have a better vote.
type Down struct{ Server ensemble.ServerID }

// RoundTrip is the newest measured round-trip time to a server.
type RoundTrip struct {
	Server ensemble.ServerID
	Took   time.Duration
}

// Linked says that the elected server has accepted this one as a learner, as only a
// leader does. Until Linked or Joined, the driver dials the elected server again and
// again. The election gives the elected server up 1 s after the decision, or 1 s after
// that server has first said that it leads. It waits longer if the last terms of that
// server have failed (Failed.PatienceMS).
type Linked struct{}

// Joined says that discovery is over. A follower has got the new epoch from the leader; a
// quorum has accepted the epoch of a leader.
type Joined struct{}

// Established says that synchronisation is over and this server serves in Epoch.
type Established struct{ Epoch wire.Epoch }

// Configured sets the memberships. Proposed is nil if no membership is proposed. It is
// ignored if its version is not above that of Committed.
type Configured struct{ Committed, Proposed *ensemble.Membership }

// Appointed gives a role without an election: the reconfiguration at Zxid has designated
// Leader.
type Appointed struct {
	Leader ensemble.ServerID
	Zxid   wire.Zxid
}

// Transferred gives a role without a vote: the leader From of Epoch has ended its term and
// named Leader as the next one. Everything up to Zxid is committed, and Leader has it. If
// Leader does not lead a new epoch within 500 ms it is given up. HeldMS is how long
// writes were held before; 0: not known.
type Transferred struct {
	From, Leader ensemble.ServerID
	Zxid         wire.Zxid
	Epoch        wire.Epoch
	HeldMS       int64
}

// Tick says that time has passed. The driver steps all that has arrived before it, so
// that a deadline does not pass while a better vote is already here.
type Tick struct{}

func (Look) event()        {}
func (Heard) event()       {}
func (Up) event()          {}
func (Down) event()        {}
func (RoundTrip) event()   {}
func (Linked) event()      {}
func (Joined) event()      {}
func (Established) event() {}
func (Configured) event()  {}
func (Appointed) event()   {}
func (Transferred) event() {}
func (Tick) event()        {}

// Never is the Wake of an election that waits for nothing.
const Never = math.MaxInt64

// Ready holds what is to be done after the steps since the last one. Each field says
// what must be done before it.
type Ready struct {
	// Adopt is a membership learned from another server, to be made durable as the
	// committed one, before Decision is carried out. The election counts by it
	// already. nil: none.
	Adopt *ensemble.Membership
	// Send holds at most one message to each server: only the latest matters. They
	// promise nothing about the disk and wait for nothing.
	Send []Message
	// Decision ends the election: the server enters the role, after Adopt is durable.
	// Send may come before or after it. nil while the election goes on.
	Decision *Decision
	// GiveUp says why the role of the last Decision will fail. The server leaves the
	// role, after Decision of this Ready, and steps Look. Empty: it may succeed.
	GiveUp string
	// Wake is when to step a Tick at the latest, after all events that have arrived by
	// then; or Never.
	Wake int64
	// Observations are for the log, in this order. They wait for nothing.
	Observations []Observation
}

// Message is a notification to be sent to one server. It replaces an earlier one to the
// same server that is not sent yet. If the connection is made anew, the last one that was
// sent is resent first.
type Message struct {
	To           ensemble.ServerID
	Notification peerwire.Notification
}

// Decision is how an election ended.
type Decision struct {
	State  peerwire.ServerState // Following, Leading or Observing
	Vote   Vote
	Round  wire.Epoch
	Ending Ending
	// Supporters are the voters whose votes made the decision, in order.
	Supporters []ensemble.ServerID
	// Spare says that the voters that have taken part are a quorum without the elected
	// server. They can elect another server if the elected one does not lead.
	Spare bool
	// Barred says that this server is empty and others have a history. It may have lost
	// what it had acknowledged, so its promise of an epoch must not count.
	Barred bool
}

// Ending is why an election ended.
type Ending uint8

// The endings.
const (
	// Unfinished: it has not ended.
	Unfinished Ending = iota
	// Unanimous: the candidate and every voter not known to be down sent the
	// same vote, so no better one can come.
	Unanimous
	// Agreed: a quorum held the same vote and no better one came in time.
	Agreed
	// Follows: a quorum follows a leader that says it leads.
	Follows
	// Named: an appointment; there was no election.
	Named
	// Reconfigured: the membership changed, so a new election began.
	Reconfigured
	// Superseded: a new election was asked for before this one ended.
	Superseded
	// LeadershipTransferred: the former leader has named this one. There was no election.
	LeadershipTransferred
)

var endings = [...]string{
	"not over", "every voter that is up voted the same", "a quorum agreed and no better vote came",
	"a quorum follows this leader", "named without a vote", "the membership changed", "a new election was begun",
	"leadership was transferred without a vote",
}

func (e Ending) String() string {
	if int(e) < len(endings) {
		return endings[e]
	}
	return "?"
}
