package recipe

import (
	"errors"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// Errors of a campaign, and of Leader and Observe.
var (
	// ErrCampaigning says that the Election already campaigns or leads. One Election is
	// one candidate; make another Election for another candidate.
	ErrCampaigning = errors.New("this election is campaigning or leading already")
	// ErrResigned says that Resign was called.
	ErrResigned = errors.New("resigned")
	// ErrNoLeader says that no client leads now, or that the leader has not yet published
	// itself in LEADER.
	ErrNoLeader = errors.New("no leader is known")
)

// Errors of an operation of a handle.
var (
	// ErrNotLeader says that the term is over and that the operations were not carried out.
	// The error also wraps the error of Handle.Lost.
	ErrNotLeader = errors.New("not the leader any more")
	// ErrNoGuard says that a bid cannot guard a write. Under PlainNames a later
	// bid can have the same path if the parent is deleted and created again.
	ErrNoGuard = errors.New("a bid with a plain name cannot guard a write, because its name contains no nonce")
)

// Errors of a lock.
var (
	// ErrHeld says that other clients hold the lock or wait for it, so that an attempt that
	// does not wait cannot get it.
	ErrHeld = errors.New("held by others")
	// ErrNotHeld says that the hold is over and that the operations were not carried out. The
	// error also wraps the error of Hold.Lost.
	ErrNotHeld = errors.New("not held any more")
	// ErrReleased says that Hold.Release was called.
	ErrReleased = errors.New("released")
)

// Reason says why a term, a hold or a campaign ended. Its string is a sentence for the log.
type Reason = claim.Reason

// The reasons.
const (
	// Resigned: Resign or Release was called, or the work has ended.
	Resigned Reason = claim.Resigned
	// LeaseLapsed: no ping was answered in time to prove that the session lives.
	LeaseLapsed Reason = claim.LeaseLapsed
	// SessionExpired: a server has reported that the session is over.
	SessionExpired Reason = claim.SessionExpired
	// SessionClosed: the client was closed.
	SessionClosed Reason = claim.SessionClosed
	// BidGone: the bid was deleted by somebody else.
	BidGone Reason = claim.BidGone
	// Refused: the server refused a request that the recipe needs.
	Refused Reason = claim.Refused
)

// LostError says why a term or a hold ended, or why a campaign cannot continue.
type LostError struct {
	Parent string
	Reason Reason
	Err    error // the server's error, for Refused

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

// Unwrap returns the server's error. For Resigned it returns ErrResigned, or
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

// closedError says that Close of the recipe was called, while the client lives on. It wraps zk.ErrClosed.
type closedError struct{ recipe, path string }

func (e *closedError) Error() string { return fmt.Sprintf("%s %s was closed", e.recipe, e.path) }

func (e *closedError) Unwrap() error { return zk.ErrClosed }

// DataError says that the znode at Path holds data that the recipe cannot read, such as text instead of a
// number. Err, which it wraps, says what is wrong. The data was not changed.
// Its fields are Path string and Err error.
type DataError = claim.DataError

// OtherRecipeError says that the path given to a recipe holds the znodes of another recipe. Want and
// Found name the two recipes. Its fields are Path string, and Want and Found, both strings.
type OtherRecipeError = claim.OtherRecipeError

// LeaderTaken says why a term is not published in LEADER: another znode is at Path. If that
// znode is Persistent, it stays until somebody deletes it. Bid is the existing bid that it names,
// or empty if another library wrote it. Its fields are Path string, Persistent bool and
// Bid string.
type LeaderTaken = lines.LeaderTaken

// NoProof says why the end of a handle's context proves nothing: the session's Timeout is
// too short beside Delay, the time within which the server that expires sessions learns of
// an answered ping. Its fields are Timeout and Delay time.Duration.
type NoProof = claim.NoProof
