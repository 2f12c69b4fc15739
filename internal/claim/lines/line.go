package lines

import (
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Times that the caller cannot set.
const (
	publishPause = time.Second // pause before a leader tries again to publish at LEADER
	// verifyMin is the shortest interval at which a leader checks that its bid exists.
	verifyMin = 100 * time.Millisecond
)

// Rule says for which of the bids ahead a bid waits.
type Rule uint8

// The rules. A bid never waits for bids behind it.
const (
	Leadership Rule = iota // waits for every bid ahead; the first bid leads
	Exclusive              // waits for every bid ahead; the first bid holds
	Shared                 // waits for every bid ahead except those of readers
	Leases                 // waits while Config.Leases or more bids are ahead
)

// verb returns the word for what a bid does during its term.
func (r Rule) verb() string {
	if r == Leadership {
		return "leads"
	}
	return "holds"
}

// Config describes the bid of a Line. Each bid has its own Nonce. The bids of one recipe have the other
// fields in common, except ID, and except Rule and Naming, which differ between readers and writers.
type Config struct {
	Parent  string // absolute path of the parent of the bids
	ID      string // id of the candidate, for other programs to read
	Naming  claim.Naming
	Nonce   claim.Nonce   // random, never used before
	Leader  string        // path of the LEADER znode; empty: the bid is not published
	Quiet   time.Duration // a term that ends within this time is not published
	Rule    Rule
	Leases  int  // under the rule Leases: how many bids may hold at once
	Try     bool // end with Occupied instead of waiting for other bids
	NoLease bool // the term lasts as long as the bid exists, and needs no proof that the session is alive
	// Root is the path of a recipe that keeps its lines below it. It is empty if the recipe has its line
	// at Parent. Before the first bid creates Parent, the Line lists Root to make sure that no other
	// recipe uses it.
	Root string
	// Margin is how long before its deadline a term ends, to leave time for the work to stop.
	Margin time.Duration
}

// Election is a Line under the rule Leadership. During its term it publishes its bid at LEADER.
type Election = Line

// NewElection returns the state machine of a candidate's bid. It does nothing until Attached is stepped.
func NewElection(cfg Config) *Election { return NewLine(cfg) }

// Line is one bid in a line of bids for leadership, a lock or a lease of a semaphore. It has at most one
// term, during which it leads or holds. After the term the Line removes its bid. A caller that wants
// another term creates a new Line.
//
// A term may begin only if three conditions hold. First, a server that knew this Line's bid showed no bid with
// a smaller czxid that the Rule says to wait for. Second, this Line's bid belongs to the current session.
// Third, the lease has not lapsed since that read. These conditions suffice: the server adds new bids only
// behind this Line's bid, so the bid keeps its place while its session is alive. Changes that the server did
// not know yet cannot add a bid ahead.
//
// Invariants after each step: the phase only increases, and it is Done once the Requester has ended. own.Name
// is set from the phase Standing until the bid is known to be gone. led is true once the phase has been Leading.
type Line struct {
	claim.Requester
	cfg Config

	phase     Phase
	led       bool
	reason    claim.Reason // why the claim ended
	err       error
	removeErr error // why the bid could not be removed

	lease claim.Lease

	doubtful bool      // a bid may have been created, but its name is unknown
	probes   []string  // candidates for that bid, still to be read
	own      claim.Bid // Name is empty while the bid is unknown
	token    wire.Zxid

	look    bool // the children must be listed
	stale   bool // the next list must follow a sync; see planLook
	exact   bool // czxids must decide the order; see claim.SequenceExhausted
	others  []claim.Bid
	ahead   int
	next    string // the bid to watch; anyLease: all children
	watched string // the bid that is watched now
	forID   string
	skip    map[string]bool // persistent children whose names look like bids
	first   bool            // the last look showed no bid to wait for
	turn    claim.Timer     // how long the bid may be first, and connected, without a term; zero: not first, or not connected

	pub    publication
	verify claim.Timer

	parents claim.Parents
}

// NewLine returns the state machine of a bid. It does nothing until Attached is stepped.
func NewLine(cfg Config) *Line {
	l := &Line{cfg: cfg, parents: claim.Parents{Root: cfg.Root, Want: claim.KindSemaphore}}
	l.Forget = func() { l.sessionOver(claim.SessionExpired) }
	return l
}

// Step processes one event, which happened at now. The monotonic part of now must not go back.
func (l *Line) Step(now claim.Moment, ev claim.Event) {
	if l.Over() {
		return
	}
	l.Now = now
	l.lapse() // the deadline ends the term even if the event is a new proof
	l.Process(now, ev)
	if l.ClientClosed {
		l.sessionOver(claim.SessionClosed)
	}
	switch ev := ev.(type) {
	case claim.Attached:
		l.attached(ev.Lease)
	case claim.Disconnected:
		l.turn = claim.Timer{}
	case claim.Expired:
		l.sessionOver(claim.SessionExpired)
	case claim.Confirmed:
		l.renew(ev.Lease)
	case claim.Fired:
		l.fired(ev.Path)
	case BidMissing:
		if l.phase == Leading && ev.Session == l.Current && ev.Path == l.path(l.own.Name) {
			l.bidGone()
		}
	case claim.Resign:
		l.end(claim.Resigned, nil)
	}
	l.tryLead()
	l.endTurn()
	l.Proceed(l.plan)
}

// Ready returns what the steps since the last call have produced.
func (l *Line) Ready() claim.Ready {
	r := l.Requester.Ready()
	r.Wake, r.KeepAlive = l.wake(r.Wake), !l.cfg.NoLease && (l.phase == Leading || l.first)
	return r
}

// State returns the state after the last Step.
func (l *Line) State() State {
	s := State{
		Phase: l.phase, Bid: l.own.Name, For: l.watched, Ahead: l.ahead, Token: l.token,
		Published: l.phase == Leading && l.pub.stage == published, PublishErr: l.pub.err,
		Led: l.led, Reason: l.reason, Err: l.err, RemoveErr: l.removeErr,
	}
	switch s.For {
	case "":
	case anyLease:
		s.For = ""
	default:
		s.ForID = l.forID
	}
	return s
}

// Left returns how long the term lasts without another proof, minus the margin. It returns 0 or less when
// there is no term. Only a Step can increase it.
func (l *Line) Left(now claim.Moment) time.Duration {
	if l.phase != Leading {
		return 0
	}
	return l.lease.Left(now) - l.cfg.Margin
}

// Deadline returns the time until the lease ends. A term with a margin ends before that.
func (l *Line) Deadline(now claim.Moment) time.Duration { return l.lease.Left(now) }

// Proof returns nil if the deadline that Left counts down to is proven.
func (l *Line) Proof() error { return l.lease.Proof() }

// attached processes a new connection. The watch may have fired before it.
func (l *Line) attached(proof claim.Lease) {
	l.renew(proof)
	l.verify, l.turn = claim.Timer{}, claim.Timer{}
	if l.phase == Standing {
		l.look, l.first = true, false
	}
}

// renew adopts a proof. After the term has ended, a proof does not extend the deadline.
func (l *Line) renew(proof claim.Lease) {
	if l.Current != 0 && l.phase < Leaving {
		l.lease.Renew(proof)
	}
}

// fired processes a watch event: the watched bid or list has changed, so the Line looks again.
func (l *Line) fired(path string) {
	if l.watched == "" || path != l.watchPath(l.watched) {
		return
	}
	by := l.watched
	if by == anyLease {
		by = ""
	}
	l.Report(Woken{l.own.Name, by})
	l.watched, l.look = "", true
}

// left returns how long a term would last, or still lasts, without another proof.
func (l *Line) left() time.Duration { return l.lease.Left(l.Now) - l.cfg.Margin }

// proven reports whether the session is proven alive, or the rule of the bid is NoLease, which needs no proof.
func (l *Line) proven() bool { return l.cfg.NoLease || l.left() > 0 }

// lapse ends a term whose deadline has passed. Earlier reads are then too old to begin a term.
func (l *Line) lapse() {
	if l.Current != 0 && l.left() <= 0 {
		l.stale = true
	}
	if l.phase == Leading && !l.proven() {
		l.end(claim.LeaseLapsed, nil)
	}
}

// tryLead begins the term if the bid is first and the session is proven alive.
func (l *Line) tryLead() {
	if !l.first || l.phase != Standing || !l.proven() {
		return
	}
	if l.stale && !l.cfg.NoLease {
		l.look, l.first = true, false
		return
	}
	l.phase, l.led, l.first = Leading, true, false
	l.verify = claim.Timer{From: l.Now, Wait: l.verifyEvery()}
	l.pub.wait = claim.Timer{From: l.Now, Wait: l.cfg.Quiet}
	l.Report(Leads{l.own.Name, l.token, l.left(), l.lease.Proof(), l.cfg.Rule})
}

// endTurn gives up a bid that has been first for a session timeout without a term, so that the next bid in line has its
// turn. The session lives, but no answer to a ping has left time for a term: the server answers too late, or the margin
// is too long.
func (l *Line) endTurn() {
	switch {
	case l.phase != Standing || l.turn.Wait == 0 || !l.turn.Over(l.Now):
	case l.cfg.Margin >= l.lease.Window():
		l.end(claim.Refused, fmt.Errorf("the margin of %v leaves no time for a term: one answered ping gives %v with a session timeout of %v",
			l.cfg.Margin, l.lease.Window(), l.lease.Timeout))
	default:
		l.end(claim.LeaseLapsed, nil)
	}
}

// end gives up the claim; the first reason is kept. The term is over when end returns, so the bid may be
// removed.
func (l *Line) end(reason claim.Reason, err error) {
	if l.phase >= Leaving {
		return
	}
	l.Report(Ended{l.own.Name, l.phase == Leading, reason, err, l.cfg.Rule})
	l.phase, l.reason, l.err, l.first = Leaving, reason, err, false
	l.Pause = claim.Backoff{}
	if l.Asked == 0 && l.own.Name == "" && !l.doubtful && len(l.probes) == 0 {
		l.finish(nil) // there is no bid to remove
	}
}

// sessionOver ends the claim when the session is over. The server deletes the bid, so the Line has nothing
// left to do.
func (l *Line) sessionOver(reason claim.Reason) {
	if !l.Over() {
		l.end(reason, nil)
		l.finish(nil)
	}
}

// plan chooses the next request.
func (l *Line) plan() {
	switch l.phase {
	case Joining:
		l.planJoin()
	case Standing:
		l.planLook()
	case Leading:
		l.planLead()
	case Leaving:
		l.planLeave()
	}
}

// wake returns the time until the next Step is due; 0 means that none is due. least is what the Requester
// waits for.
func (l *Line) wake(least time.Duration) time.Duration {
	due := func(d time.Duration) {
		if d = max(d, time.Millisecond); least == 0 || d < least {
			least = d
		}
	}
	if l.first {
		due(l.lease.Timeout / 20)
	}
	if l.lingers() {
		due(l.lease.Left(l.Now))
	}
	if l.phase == Leading {
		if !l.cfg.NoLease {
			due(l.lease.Timeout / 20) // only the wall clock shows a suspend of the machine, so it must be read often
			due(l.left())
		}
		if l.Asked == 0 && l.Connected {
			due(l.verify.Remaining(l.Now))
			if l.pub.pending(l.cfg.Leader) {
				due(l.pub.wait.Remaining(l.Now))
			}
		}
	}
	return least
}

// path returns the path of a child of the parent.
func (l *Line) path(name string) string { return claim.Join(l.cfg.Parent, name) }

// Phase is a phase in the life of a Line.
type Phase uint8

// The phases, in order. A Line may skip a phase but never returns to one.
const (
	Joining  Phase = iota // the bid does not exist yet, or the Line does not know that it exists
	Standing              // the bid exists and waits for other bids, or for a proof that the session is alive
	Leading               // the term: the bid leads or holds
	Leaving               // the term is over, or the caller gave up; the bid is being removed
	Done
)

var phaseNames = [...]string{"joining", "standing", "leading", "leaving", "done"}

func (p Phase) String() string { return phaseNames[p] }

// State is the state of a Line. Once Led is true it stays true. Published is true only in the phase
// Leading.
type State struct {
	Phase Phase
	Bid   string // name of the bid; empty while unknown
	// For is the bid that is watched, and ForID the id of its owner. For is empty if the Line waits for
	// any lease. Ahead is how many bids the Line had to wait for at the last look.
	For, ForID string
	Ahead      int
	Token      wire.Zxid // czxid of the bid; 0 while unknown
	// Published reports whether LEADER names this bid. PublishErr says why it does not.
	Published  bool
	PublishErr error
	Led        bool // a term has begun; it may be over
	Reason     claim.Reason
	Err        error // the error of the reason Refused
	// RemoveErr is set if Phase is Done and the bid could not be removed. The bid then exists until its
	// session ends.
	RemoveErr error
}
