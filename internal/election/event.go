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

// Look begins an election: at the start of the server, or because it has lost
// its role.
type Look struct {
	// Zxid is that of the newest transaction in the log, committed or not; 0
	// for an empty one. NoHistory where nothing may be presumed about what
	// this server once had: it joins an existing leader only.
	Zxid wire.Zxid
	// Epoch is the durable currentEpoch.
	Epoch wire.Epoch
	// Initialized: an operator's marker says that this server never had a
	// history, so that an empty log is the truth whatever others have.
	Initialized bool
	// Abstains: the disk of this server does not answer, so that it can promise
	// no epoch. It must not be elected nor help to elect, as with NoHistory, and
	// its vote says NoHistory; it joins an existing leader only.
	Abstains bool
	// Failed are the candidates whose last terms ended before they served.
	Failed []Failed
	// Why is told to operators: "started", "the leader's connection ended".
	Why string
}

// Heard is a notification from another server.
type Heard struct {
	From ensemble.ServerID
	// First: it is the first message on its connection, which a server may
	// have sent before and sends again.
	First        bool
	Notification peerwire.Notification
}

// Up: a connection to a server exists.
type Up struct{ Server ensemble.ServerID }

// Down: a dial was refused, or a connection reset by a server that ended. It
// must not stand for a time-out, nor for the connection that the larger id's
// one replaces: who is slow may still have a better vote.
type Down struct{ Server ensemble.ServerID }

// RoundTrip is the newest measured time to a server and back.
type RoundTrip struct {
	Server ensemble.ServerID
	Took   time.Duration
}

// Linked: the server decided on has accepted this one as a learner, as only a
// leader does. Until this or Joined it must be dialled again and again. It is
// given up 1 s after the decision, or after its own first word that it leads;
// later where its last terms have failed (Failed.PatienceMS).
type Linked struct{}

// Joined: discovery is over. A follower has heard the new epoch from the
// leader, a leader has it accepted by a quorum.
type Joined struct{}

// Established: synchronisation is over, this server serves in Epoch.
type Established struct{ Epoch wire.Epoch }

// Configured: the memberships are now these. Proposed is nil where none is
// under way; one of a version not above Committed's is ignored.
type Configured struct{ Committed, Proposed *ensemble.Membership }

// Appointed takes a role without an election: Leader was designated by the
// reconfiguration at Zxid.
type Appointed struct {
	Leader ensemble.ServerID
	Zxid   wire.Zxid
}

// HandedOver takes a role without a vote: the leader From of Epoch has ended its
// term and named the next one. Everything up to Zxid is committed, and Leader
// has it. What does not come to a leader of a new epoch within 500 ms is given
// up. HeldMS is how long writes were held before, where that is known.
type HandedOver struct {
	From, Leader ensemble.ServerID
	Zxid         wire.Zxid
	Epoch        wire.Epoch
	HeldMS       int64
}

// Tick: time has passed. The driver steps all that has arrived before it, so
// that a deadline never wins against a better vote that is already here.
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
func (HandedOver) event()  {}
func (Tick) event()        {}

// Never is the Wake of an election that waits for nothing.
const Never = math.MaxInt64

// Ready is what is to be done after the steps since the last one. Each field says
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
	// GiveUp says why the role of the last Decision will come to nothing. The server
	// leaves it, after Decision of this Ready, and steps Look. Empty: it may yet.
	GiveUp string
	// Wake is when to step a Tick at the latest, after all events that have arrived by
	// then; or Never.
	Wake int64
	// Happenings are for the log, in this order. They wait for nothing.
	Happenings []Happening
}

// Message is a notification to be sent to one server. An unsent earlier one to
// the same server is replaced by it; the last one sent is sent again first
// when the connection had to be made anew.
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
	// Supporters are the voters whose votes made it, in order.
	Supporters []ensemble.ServerID
	// Spare: the voters that have taken part, without the one that is to lead,
	// are a quorum. They can elect another if that one does not come forward.
	Spare bool
}

// Ending is the reason for which an election ended.
type Ending uint8

// The endings.
const (
	// Unfinished: it goes on.
	Unfinished Ending = iota
	// Unanimous: the candidate and every voter not known to be down sent the
	// same vote, so no better one can come.
	Unanimous
	// Agreed: a quorum held the same vote and no better one came in time.
	Agreed
	// Follows: a quorum follows a leader that says it leads.
	Follows
	// Named: an appointment, no election.
	Named
	// Reconfigured: another membership came; a new election began by it.
	Reconfigured
	// Superseded: a new election was asked for before this one ended.
	Superseded
	// Handed: the leader before has named this one, no election.
	Handed
)

var endings = [...]string{
	"not over", "every voter that is up voted the same", "a quorum agreed and nothing better came",
	"a quorum follows this leader", "named without a vote", "the membership changed", "begun anew",
	"handed over without a vote",
}

func (e Ending) String() string {
	if int(e) < len(endings) {
		return endings[e]
	}
	return "?"
}
