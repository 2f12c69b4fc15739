package election

import (
	"fmt"
	"math"
	"slices"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Times that operators cannot set, in ms.
const (
	settleMin   = 5   // shortest wait for a better vote
	settleMax   = 200 // longest wait for a better vote, which is what ZooKeeper always waits
	settleBound = 600 // limit of all waits of one round
	settleTrips = 4   // round trips that a wait lasts
	answerPause = 50  // between equal answers to one server that has no vote
	transferMax = 500 // a server named by the former leader must lead by then
)

// Limits on memory and numbers that input from outside can make grow.
const (
	// strangersMax is how many servers without a vote are remembered.
	strangersMax = 1024
	// roundMax is the highest round, so that rounds cannot be made to overflow. A server
	// in that round begins no later one, because the others would refuse it.
	roundMax wire.Epoch = 1 << 48
	// epochMax is the highest epoch, because an epoch is the upper half of a zxid.
	epochMax wire.Epoch = math.MaxInt32
)

// Options are the settings of an Election.
type Options struct {
	ID        ensemble.ServerID
	Committed *ensemble.Membership // never nil
	Proposed  *ensemble.Membership // as in Configured
	// Reconfig allows the election to adopt a newer membership from a notification.
	Reconfig bool
	// IntervalMinMS and IntervalMaxMS limit the time after which an unanswered vote is
	// resent; it doubles each time. Zero: 200 and 2000.
	IntervalMinMS, IntervalMaxMS int64
}

// Election is one server's part in the elections of its ensemble.
//
// Invariants after each step:
//   - While the server looks for a leader, the round never goes back. With a role the server takes over the round of
//     its leader, which may be an earlier one.
//   - While the server has a role, resendAt, settleAt, settleBy, againAt and splitAt are Never. While it looks for
//     a leader, dialBy is Never.
//   - If settleAt is set, settleBy is set too.
//   - Only a leader has supporters, and it is one of them.
//   - next is nil or newer than committed.
type Election struct {
	id       ensemble.ServerID
	reconfig bool
	intervalMin, intervalMax,
	interval int64

	committed, next *ensemble.Membership // next is proposed and newer than committed; nil: none is proposed
	voters          []ensemble.ServerID  // the voters of both memberships, in order
	text            string               // text of the committed membership, in the form in which it is sent
	parsed          struct {             // the last configuration text of another server
		text string
		m    *ensemble.Membership // what that text says; nil: it cannot be parsed
	}

	now      int64
	began    bool                 // Look or Appointed was stepped
	state    peerwire.ServerState // Looking, or the role
	round    wire.Epoch           // the logical clock
	asked    Look
	initial  Vote
	proposal Vote
	barred   bool                         // neither candidate nor supporter until synchronised
	failed   map[ensemble.ServerID]Failed // candidates whose last terms failed
	splits   int                          // how often this server has taken a step because votes differ (see relax)
	floor    Vote                         // a candidate with less history than this cannot win in this round, and is not preferred
	restated bool                         // this server has begun a new round because a vote gave it a history that it does not have

	votes   map[ensemble.ServerID]ballot // votes of this round
	outside map[ensemble.ServerID]ballot // votes of servers that have a role, in any round
	down    map[ensemble.ServerID]bool   // during this round
	trips   map[ensemble.ServerID]time.Duration

	resendAt int64 // Never outside an election
	settleAt int64 // end of the wait, Never if none runs
	settleBy int64 // limit of all waits of the round, Never before the first
	againAt  int64 // when a leader that could not be joined may be joined again; Never: there is none
	splitAt  int64 // when this server takes the next step, because votes differ (see relax)

	current     ballot // the decision that notifications carry while this server is not looking
	agreed      bool   // the epoch in these notifications is agreed on
	established bool
	gaveUp      bool
	byTransfer  bool                       // the former leader has given this role
	dialBy      int64                      // time by which the candidate must lead
	forward     bool                       // the candidate has said that it leads; dialBy was moved then
	supporters  map[ensemble.ServerID]bool // while leading
	left        map[ensemble.ServerID]bool // servers that look in a later round, while this server dials the leader again

	asking  map[ensemble.ServerID]bool   // servers without a vote that wait to hear who leads
	told    map[ensemble.ServerID]answer // what was sent to servers without a vote
	empties map[ensemble.ServerID]bool   // voters without any transaction, in this election
	// withdrawn are voters that have said in this election that they are not candidates:
	// their disk is empty or does not answer.
	withdrawn map[ensemble.ServerID]bool
	refused   map[refusal]bool // in this election, so that each is reported once

	ready   Ready
	running *Record
	past    []*Record
}

// New returns the election of a server that has not begun one. It waits for Look or
// Appointed, and ignores notifications before that.
func New(o Options) *Election {
	e := &Election{
		id: o.ID, reconfig: o.Reconfig, intervalMin: o.IntervalMinMS, intervalMax: o.IntervalMaxMS,
		votes: map[ensemble.ServerID]ballot{}, outside: map[ensemble.ServerID]ballot{},
		down: map[ensemble.ServerID]bool{}, trips: map[ensemble.ServerID]time.Duration{},
		asking: map[ensemble.ServerID]bool{}, told: map[ensemble.ServerID]answer{}, empties: map[ensemble.ServerID]bool{}, withdrawn: map[ensemble.ServerID]bool{}, left: map[ensemble.ServerID]bool{}, refused: map[refusal]bool{},
		resendAt: Never, settleAt: Never, settleBy: Never, againAt: Never, splitAt: Never, dialBy: Never,
	}
	if e.intervalMin <= 0 {
		e.intervalMin = 200
	}
	if e.intervalMax <= 0 {
		e.intervalMax = 2000
	}
	e.intervalMax = max(e.intervalMax, e.intervalMin)
	e.members(o.Committed, o.Proposed)
	return e
}

// Step takes one event. now is when it happened, in ms of a clock that does not go back.
func (e *Election) Step(now int64, ev Event) {
	e.now = now
	switch ev := ev.(type) {
	case Look:
		e.look(ev)
	case Appointed:
		e.appointed(ev)
	case Transferred:
		e.handedOver(ev)
	case Configured:
		e.configured(ev)
	case RoundTrip:
		if e.isVoter(ev.Server) {
			e.trips[ev.Server] = ev.Took
		}
	case Heard:
		if e.began {
			e.heard(ev)
		}
	case Up:
		e.up(ev.Server)
	case Down:
		e.lost(ev.Server)
	case Linked:
		e.linked()
	case Joined:
		e.joined()
	case Established:
		e.establish(ev.Epoch)
	case Tick:
		e.tick()
	}
}

// Ready returns what is to be done after the steps since the last call.
func (e *Election) Ready() Ready {
	r := e.ready
	e.running.depart(e.now, r.Send)
	r.Wake = min(e.resendAt, e.settleAt, e.againAt, e.splitAt, e.dialBy)
	e.ready = Ready{}
	return r
}

// tick does what is due.
func (e *Election) tick() {
	if e.splitAt <= e.now {
		e.relax() // it sends only a better vote, so a resend that is due must still follow
	}
	switch {
	case e.settleAt <= e.now:
		e.decide(e.standing(), Agreed)
	case e.againAt <= e.now:
		e.againAt, e.interval = e.nextAgain(), e.intervalMin
		e.broadcast()
	case e.resendAt <= e.now:
		e.interval = min(2*e.interval, e.intervalMax)
		e.broadcast()
	case e.dialBy <= e.now && e.byTransfer:
		e.giveUp(fmt.Sprintf("the leadership transfer failed: nobody has led within %d ms", transferMax))
	case e.dialBy <= e.now:
		e.giveUp("it did not lead within the time to join it")
	}
}

func (e *Election) report(h Observation) { e.ready.Observations = append(e.ready.Observations, h) }

// members sets the memberships and what follows from them.
func (e *Election) members(committed, proposed *ensemble.Membership) {
	if proposed != nil && proposed.Version() <= committed.Version() {
		proposed = nil
	}
	e.committed, e.next, e.text = committed, proposed, committed.String()
	e.voters = e.voters[:0]
	for _, m := range e.tracked() {
		e.voters = append(e.voters, m.Voters()...)
	}
	slices.Sort(e.voters)
	e.voters = slices.Compact(e.voters)
}

// tracked returns the memberships in which a quorum is needed.
func (e *Election) tracked() []*ensemble.Membership {
	if e.next == nil {
		return []*ensemble.Membership{e.committed}
	}
	return []*ensemble.Membership{e.committed, e.next}
}

func (e *Election) isVoter(id ensemble.ServerID) bool {
	_, ok := slices.BinarySearch(e.voters, id)
	return ok
}

func (e *Election) isMember(id ensemble.ServerID) bool {
	for _, m := range e.tracked() {
		if _, ok := m.Server(id); ok {
			return true
		}
	}
	return false
}

// observes reports whether this server is an observer. A server that the membership does
// not name takes part like a follower, without a vote.
func (e *Election) observes() bool {
	s, ok := e.committed.Server(e.id)
	return ok && s.Role == ensemble.Observer
}

func (e *Election) weight(id ensemble.ServerID) int64 {
	return e.committed.Weight(id)
}

// elects reports whether the servers for which has(id) is true are enough to elect a server.
// To follow another server, a quorum of the committed membership is enough: a proposed one
// may never be committed, and then only that leader can take it back. Whether the leader has
// a quorum of both is decided by Zab.
func (e *Election) elects(leader ensemble.ServerID, has func(ensemble.ServerID) bool) bool {
	if leader == e.id {
		return e.quorum(has)
	}
	return e.committed.HasQuorum(has)
}

// quorum reports whether the servers for which has(id) is true are a quorum of the committed
// membership and, if another one is proposed, of that one too.
func (e *Election) quorum(has func(ensemble.ServerID) bool) bool {
	return e.committed.HasQuorum(has) && (e.next == nil || e.next.HasQuorum(has))
}
