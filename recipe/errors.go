package recipe

import (
	"errors"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// What a campaign, or the question who leads, can end with.
var (
	// ErrCampaigning says that the Election campaigns or leads already. One Election is
	// one candidate; make another one for another candidate.
	ErrCampaigning = errors.New("this election is campaigning or leading already")
	// ErrResigned says that Resign was called.
	ErrResigned = errors.New("resigned")
	// ErrNoLeader says that nobody leads now, or that the leader has not published
	// itself yet.
	ErrNoLeader = errors.New("no leader is known")
)

// What an operation of a handle can end with.
var (
	// ErrNotLeader says that the term is over, so the operations were not carried out.
	// The error also wraps what Handle.Lost returns.
	ErrNotLeader = errors.New("not the leader any more")
	// ErrNoGuard says that a bid cannot guard a write. Under PlainNames the path of a
	// bid can occur again when the parent is deleted and created again.
	ErrNoGuard = errors.New("plain names carry no nonce, so a bid guards nothing")
)

// What a lock can end with.
var (
	// ErrHeld says that others hold the lock or wait for it, so that an attempt that
	// does not wait cannot get it.
	ErrHeld = errors.New("held by others")
	// ErrNotHeld says that the hold is over, so the operations were not carried out. The
	// error also wraps what Hold.Lost returns.
	ErrNotHeld = errors.New("not held any more")
	// ErrReleased says that Hold.Release was called.
	ErrReleased = errors.New("released")
)

// Reason says why a term or a campaign ended. As a string it is a sentence for the log.
type Reason = claim.Reason

// The reasons.
const (
	// Resigned: Resign or Release was called, or the work has ended.
	Resigned Reason = claim.Resigned
	// LeaseLapsed: there was no proof in time that the session lives.
	LeaseLapsed Reason = claim.LeaseLapsed
	// SessionExpired: a server has said that the session is over.
	SessionExpired Reason = claim.SessionExpired
	// SessionClosed: the client was closed.
	SessionClosed Reason = claim.SessionClosed
	// BidGone: somebody else deleted the bid.
	BidGone Reason = claim.BidGone
	// Refused: the server does not allow what the recipe needs.
	Refused Reason = claim.Refused
)

// LostError says why a term ended, or why a campaign cannot continue.
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

// Unwrap returns what the server said. For Resigned it returns ErrResigned, or
// ErrReleased if the term was that of a lock.
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

// DataError says that the znode at Path holds data that is not of this recipe: no
// number, or no transaction. Err, which it wraps, says what is wrong. The data was left
// as it is. Its fields are Path string and Err error.
type DataError = claim.DataError

// OtherRecipeError says that the path given to a recipe belongs to another recipe, whose
// znodes are there. Its fields are Path string, and Want and Found, both strings.
type OtherRecipeError = claim.OtherRecipeError

// LeaderTaken says why a term is not published: another znode is at Path. If it is
// Persistent it stays until somebody deletes it. Bid is the existing bid that it names,
// or empty if another library wrote it. Its fields are Path string, Persistent bool and
// Bid string.
type LeaderTaken = lines.LeaderTaken

// NoProof says why the end of a handle's context is no proof: the session's Timeout is
// not longer than Delay, the time during which the server may not know of a ping. Its
// fields are Timeout and Delay time.Duration.
type NoProof = claim.NoProof
