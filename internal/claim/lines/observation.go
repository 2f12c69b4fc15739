package lines

import (
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Joined reports that the bid exists. Found is set if the reply to its creation was lost, and a later
// search found the bid.
type Joined struct {
	Bid   string
	Found bool
}

// Waiting reports that the bid waits for Ahead other bids. For is the nearest of them, which is watched.
// For is empty if the bid waits for any lease.
type Waiting struct {
	Bid   string
	For   string
	ForID string
	Ahead int
}

// Woken reports a watch event on the watched bid, or on the leases. The Line looks again.
type Woken struct{ Bid, By string }

// First reports that no bid is ahead, but the session is not proven alive yet.
type First struct{ Bid string }

// Leads reports that the term of a leader or holder began. Proof is nil if its deadline is proven.
type Leads struct {
	Bid   string
	Token wire.Zxid
	Left  time.Duration
	Proof error
	Rule  Rule
}

// Published reports that LEADER names this bid.
type Published struct{ Bid, Path string }

// Unpublished reports that LEADER cannot name this bid at present. The Line tries again.
type Unpublished struct {
	Bid, Path string
	Err       error
}

// Ended reports that the claim is given up. The Line removes the bid next, if there is one.
type Ended struct {
	Bid    string
	Led    bool
	Reason claim.Reason
	Err    error
	Rule   Rule
}

// Left reports that the bid is gone. If Err is set, the bid could not be removed, and exists at Path until
// the session ends.
type Left struct {
	Bid, Path string
	Err       error
}

func (h Joined) String() string {
	if h.Found {
		return fmt.Sprintf("bid %s found again after a lost reply", h.Bid)
	}
	return fmt.Sprintf("bid %s made", h.Bid)
}

func (h Waiting) String() string {
	if h.For == "" {
		return fmt.Sprintf("bid %s waits for a lease, %d ahead", h.Bid, h.Ahead)
	}
	return fmt.Sprintf("bid %s waits for %s of %q, %d ahead", h.Bid, h.For, h.ForID, h.Ahead)
}

func (h Woken) String() string {
	if h.By == "" {
		return fmt.Sprintf("bid %s is woken because a lease has changed", h.Bid)
	}
	return fmt.Sprintf("bid %s woken by %s", h.Bid, h.By)
}

func (h First) String() string { return fmt.Sprintf("bid %s is first, session not yet proven", h.Bid) }

func (h Leads) String() string {
	if h.Proof != nil {
		return fmt.Sprintf("bid %s %s, token %v, without proof: %v", h.Bid, h.Rule.verb(), h.Token, h.Proof)
	}
	return fmt.Sprintf("bid %s %s, token %v, proven for %v", h.Bid, h.Rule.verb(), h.Token, h.Left)
}

func (h Published) String() string { return fmt.Sprintf("bid %s published at %s", h.Bid, h.Path) }

func (h Unpublished) String() string {
	return fmt.Sprintf("bid %s not published at %s: %v", h.Bid, h.Path, h.Err)
}

func (h Ended) String() string {
	what := "claim given up before its bid was created"
	switch {
	case h.Led:
		what = "bid " + h.Bid + " " + h.Rule.verb() + " no more"
	case h.Bid != "":
		what = "bid " + h.Bid + " gives up waiting"
	}
	if h.Err != nil {
		return fmt.Sprintf("%s: %v: %v", what, h.Reason, h.Err)
	}
	return fmt.Sprintf("%s: %v", what, h.Reason)
}

func (h Left) String() string {
	if h.Err != nil {
		return fmt.Sprintf("bid %s left behind until its session ends: %v", h.Bid, h.Err)
	}
	return fmt.Sprintf("bid %s gone", h.Bid)
}

// AtGate is an observation of the gate of a [Semaphore].
type AtGate struct{ claim.Observation }

func (h AtGate) String() string { return "gate: " + h.Observation.String() }
