package election

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// Observation is what an election reports to the log: one of the types below. String returns
// the text for the log.
type Observation interface{ String() string }

// Began reports that an election begins with this server's own vote.
type Began struct {
	Round wire.Epoch
	Vote  Vote
	Why   string
}

// LaterRound reports that another server is in a later round, which this one joins.
type LaterRound struct{ From, To wire.Epoch }

// Settling reports that a quorum holds the vote, and this server waits for a better one.
type Settling struct {
	Round  wire.Epoch
	Vote   Vote
	WaitMS int64
}

// Decided reports the end of an election.
type Decided struct {
	Decision
	TookMS int64
}

// Abandoned reports that the role that an election decided on has failed.
type Abandoned struct {
	Leader ensemble.ServerID
	Why    string
}

// Barred reports that this server is empty and others have a history, so it may have lost
// its own.
type Barred struct {
	From ensemble.ServerID
	Vote Vote
}

// Withdrawn reports that this server votes for Candidate, which now says that it is not a candidate.
type Withdrawn struct{ Candidate ensemble.ServerID }

// Founded reports that this server and all other voters are empty.
type Founded struct{}

// Restated reports votes that give this server a history it does not have. It begins a
// round with the history that it has.
type Restated struct {
	From      ensemble.ServerID
	Vote, Own Vote
}

// AdoptedMembers reports that a newer membership came with a notification.
type AdoptedMembers struct{ Version, Was int64 }

// Refused reports, once in an election, that messages of a server are not counted.
type Refused struct {
	From ensemble.ServerID
	Why  string
}

func (h Began) String() string {
	return fmt.Sprintf("looks for a leader in round %d with a vote for %s: %s", h.Round, h.Vote, h.Why)
}

func (h LaterRound) String() string {
	return fmt.Sprintf("joins round %d from round %d", h.To, h.From)
}

func (h Settling) String() string {
	return fmt.Sprintf("a quorum votes for %s in round %d, waits %d ms for a better vote", h.Vote, h.Round, h.WaitMS)
}

func (h Decided) String() string {
	if h.Ending == Named || h.Ending == LeadershipTransferred {
		return fmt.Sprintf("%s %d: %s", h.State, h.Vote.Leader, h.Ending)
	}
	return fmt.Sprintf("%s %d after %d ms in round %d: %s", h.State, h.Vote.Leader, h.TookMS, h.Round, h.Ending)
}

func (h Abandoned) String() string { return fmt.Sprintf("gives up leader %d: %s", h.Leader, h.Why) }

func (h Barred) String() string {
	return fmt.Sprintf("is empty, but server %d votes for %s: joins only an existing leader until it has been synchronised", h.From, h.Vote)
}

func (h Withdrawn) String() string {
	return fmt.Sprintf("server %d is no candidate any more: begins a new round with its own vote", h.Candidate)
}

func (Founded) String() string {
	return "every voter is here and none knows of a transaction: begins a new round as a candidate"
}

func (h Restated) String() string {
	return fmt.Sprintf("server %d votes for %s, but this server has only %s: begins a new round", h.From, h.Vote, h.Own)
}

func (h AdoptedMembers) String() string {
	return fmt.Sprintf("adopts membership version %x in place of %x", h.Version, h.Was)
}

func (h Refused) String() string { return fmt.Sprintf("refuses server %d: %s", h.From, h.Why) }
