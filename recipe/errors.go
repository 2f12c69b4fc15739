package recipe

import (
	"errors"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// What a campaign, or the question who leads, can end with.
var (
	// ErrCampaigning: the Election is campaigning or leading already. One
	// Election is one candidate; make another for another.
	ErrCampaigning = errors.New("this election is campaigning or leading already")
	// ErrResigned: Resign was called.
	ErrResigned = errors.New("resigned")
	// ErrNoLeader: nobody leads now, or who leads has not published it yet.
	ErrNoLeader = errors.New("no leader is known")
)

// What an operation of a handle can end with.
var (
	// ErrNotLeader: the handle is over, so the operations were not carried
	// out. What Handle.Lost says is wrapped beside it.
	ErrNotLeader = errors.New("not the leader any more")
	// ErrNoGuard: under PlainNames a bid's path can come again in a parent
	// made anew, so it guards nothing.
	ErrNoGuard = errors.New("plain names carry no nonce, so a bid guards nothing")
)

// What a lock can end with.
var (
	// ErrHeld: the lock is held by others, or they stand before, so that who
	// only tried does not get it.
	ErrHeld = errors.New("held by others")
	// ErrNotHeld: the hold is over, so the operations were not carried out.
	// What Hold.Lost says is wrapped beside it.
	ErrNotHeld = errors.New("not held any more")
	// ErrReleased: Hold.Release was called.
	ErrReleased = errors.New("released")
)

// Reason says why a term or a campaign ended: [Resigned] and the others. As a string it
// is a sentence for the log.
type Reason = claim.Reason

// The reasons.
const (
	Resigned       Reason = claim.Resigned       // by Resign, Release or the end of the work
	LeaseLapsed    Reason = claim.LeaseLapsed    // no proof in time that the session lives
	SessionExpired Reason = claim.SessionExpired // a server said so
	SessionClosed  Reason = claim.SessionClosed  // the client was closed
	BidGone        Reason = claim.BidGone        // somebody else deleted the bid
	Refused        Reason = claim.Refused        // the server does not allow what the recipe needs
)

// LostError is the end of a term, or of a campaign that cannot go on.
type LostError struct {
	Parent string
	Reason Reason
	Err    error // what the server said, for Refused

	recipe string
}

func (e *LostError) Error() string {
	why := e.Reason.String()
	if e.Reason == Resigned {
		why = e.Unwrap().Error()
	}
	if e.Err != nil {
		return fmt.Sprintf("%s %s: %s: %v", e.recipe, e.Parent, why, e.Err)
	}
	return fmt.Sprintf("%s %s: %s", e.recipe, e.Parent, why)
}

// Unwrap is what the server said, and for Resigned ErrResigned, or
// ErrReleased where the term was that of a lock.
func (e *LostError) Unwrap() error {
	switch {
	case e.Reason != Resigned:
		return e.Err
	case e.recipe == "election":
		return ErrResigned
	}
	return ErrReleased
}

// closedError: Close was called, of what has it; the client lives on. It is a zk.ErrClosed.
type closedError struct{ recipe, path string }

func (e *closedError) Error() string { return fmt.Sprintf("%s %s was closed", e.recipe, e.path) }

func (e *closedError) Unwrap() error { return zk.ErrClosed }

// DataError: the znode at Path holds what is not its recipe's, no number or no
// transaction; Err says what is wrong, and is wrapped. Nothing was done with it. Its
// fields are Path string and Err error.
type DataError = claim.DataError

// OtherRecipeError: the path that a recipe was given is that of another recipe, whose znodes stand
// there. Its fields are Path string, and Want and Found, both strings.
type OtherRecipeError = claim.OtherRecipeError

// LeaderTaken is why a term is not published: the znode at Path is in the way. Where
// it is Persistent it does not go by itself; Bid is the standing bid that it
// names, and empty where others wrote it. Its fields are Path string, Persistent bool
// and Bid string.
type LeaderTaken = claim.LeaderTaken

// NoProof is why the end of a handle's context is no proof: the session's Timeout is
// not longer than Delay, for which the server may not know of a ping. Its fields are
// Timeout and Delay time.Duration.
type NoProof = claim.NoProof
