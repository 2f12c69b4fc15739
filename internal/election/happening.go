package election

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// Happening is something worth telling: one of the types below. String is what
// the log says.
type Happening interface{ String() string }

// Began: an election begins with this server's own vote.
type Began struct {
	Round wire.Epoch
	Vote  Vote
	Why   string
}

// LaterRound: another server is in a later round, which this one joins.
type LaterRound struct{ From, To wire.Epoch }

// Settling: a quorum holds the vote, a better one is waited for.
type Settling struct {
	Round  wire.Epoch
	Vote   Vote
	WaitMS int64
}

// Decided: the election is over.
type Decided struct {
	Decision
	TookMS int64
}

// Abandoned: the decision comes to nothing.
type Abandoned struct {
	Leader ensemble.ServerID
	Why    string
}

// Barred: this server is empty and heard of a history, so its own may be lost.
type Barred struct {
	From ensemble.ServerID
	Vote Vote
}

// Withdrawn: the candidate that this server votes for says that it is none.
type Withdrawn struct{ Candidate ensemble.ServerID }

// Founded: this server is empty, and so are all other voters.
type Founded struct{}

// Restated: votes give this server a history it does not have; it begins a
// round in which it says what it has.
type Restated struct {
	From      ensemble.ServerID
	Vote, Own Vote
}

// AdoptedMembers: a newer membership came with a notification.
type AdoptedMembers struct{ Version, Was int64 }

// Refused: what a server sends is not counted. Told once in an election.
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
	if h.Ending == Named || h.Ending == Handed {
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
