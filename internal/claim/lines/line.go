package lines

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Times that are not the caller's to choose.
const (
	publishPause = time.Second // between two looks at a LEADER that is in the way
	verifyMin    = 100 * time.Millisecond
)

// Rule says which bids ahead keep a bid waiting.
type Rule uint8

// The rules. Bids behind never matter.
const (
	Leadership Rule = iota // any bid ahead; who has none leads
	Exclusive              // any bid ahead; who has none holds
	Shared                 // any bid ahead but those of readers
	Leases                 // Config.Leases bids ahead
)

// verb is what a bid does in its term.
func (r Rule) verb() string {
	if r == Leadership {
		return "leads"
	}
	return "holds"
}

// Config is what a Line is about. Nonce is the bid's own; the others are the
// same for all bids of a recipe, but for Rule and Naming where readers and
// writers meet.
type Config struct {
	Parent string // absolute path below which the bids stand
	ID     string // who the candidate is, for others to read
	Naming claim.Naming
	Nonce  claim.Nonce   // random, never used before
	Leader string        // path of the LEADER znode; empty publishes nothing
	Quiet  time.Duration // a term that is over sooner is not published
	Rule   Rule
	Leases int  // under the rule of that name: how many may hold at once
	Try    bool // give up, as Occupied, instead of waiting for others
	Loose  bool // the term lasts as long as the bid, without a proof that the session lives
	// Root is the path of a recipe whose lines stand below it; empty for one that has its line at
	// Parent. Before the first bid makes Parent it is looked at, lest another recipe be there.
	Root string
	// Margin is how long before its deadline a term ends, for work that takes
	// time to stop.
	Margin time.Duration
}

// Election is a Line under the rule Leadership, whose first publishes itself.
type Election = Line

// NewElection makes a candidate's bid. It waits for Attached.
func NewElection(cfg Config) *Election { return NewLine(cfg) }

// Line is one bid in a line of bids: for leadership, a lock, a lease. It has
// at most one term, in which it leads or holds: when that is over the bid is
// removed, and who wants another makes a new Line.
//
// A term is safe to begin when: no bid of an earlier czxid that is in the way
// was left on a server that knew the own bid, that one belongs to the live
// session, and the lease has not lapsed since. Bids are only ever added behind
// it, so that its place is kept as long as its session lives, and what a server
// does not know yet is of no matter.
type Line struct {
	cfg Config
	now claim.Moment

	phase  Phase
	led    bool
	freed  bool // what was done in the term is over, if there was one
	reason claim.Reason
	err    error
	stays  error // why the bid could not be removed

	session  wire.SessionID // 0 before the first attachment
	attached bool
	lease    claim.Lease

	asked step // what the outstanding request is for
	n     uint64
	out   *claim.Request
	pause claim.Backoff

	doubtful bool      // the bid may have been made, its name is not known
	probes   []string  // bids among which it may be
	own      claim.Bid // Name is empty while not known
	token    wire.Zxid

	look    bool // the children must be looked at
	stale   bool // and behind a sync, see planLook
	exact   bool // and ordered by czxid, see wornOut
	others  []claim.Bid
	ahead   int
	next    string // the bid to watch
	watched string // the bid that is watched
	forID   string
	skip    map[string]bool // children that look like bids and are none
	first   bool            // nobody is in the way

	pub    publication
	verify claim.Timer

	vetted bool // no other recipe stands there, as far as names tell

	happenings []claim.Happening
}

// NewLine makes a bid's state machine. It waits for Attached.
func NewLine(cfg Config) *Line {
	return &Line{cfg: cfg, pub: publication{stage: unpublished}}
}

// step is what the outstanding request is for.
type step uint8

const (
	nothing  step = iota
	stepRoot      // is it another recipe's?
	stepParents
	stepCreate
	stepFind  // after a lost reply: is there a bid of ours?
	stepProbe // which of these is it?
	stepLook
	stepLookSure // the same behind a sync
	stepStat     // the czxid of every bid
	stepWatch
	stepWatchAll // of leases
	stepUnwatch
	stepVerify // does the leader's bid still stand?
	stepPublish
	stepLeaderParents
	stepRead // whose is LEADER?
	stepNamed
	stepReplace
	stepResign
	stepDelete
)

// Step takes one event, which happened at now. Moments must not go back in
// their monotonic part.
func (l *Line) Step(now claim.Moment, ev claim.Event) {
	if l.phase == Done {
		return
	}
	l.now = now
	l.lapse() // a deadline that has passed ends the term, whatever the event says
	switch ev := ev.(type) {
	case claim.Attached:
		l.attach(ev)
	case claim.Disconnected:
		l.attached = false
	case claim.Expired:
		l.over(claim.SessionExpired)
	case claim.Closed:
		l.over(claim.SessionClosed)
	case claim.Confirmed:
		l.renew(ev.Lease)
	case claim.Reply:
		l.reply(ev)
	case claim.Fired:
		l.fired(ev.Path)
	case claim.Resign:
		l.freed = true
		l.end(claim.Resigned, nil)
	}
	l.tryLead()
	l.plan()
}

// Ready hands out what has come of the steps since the last call.
func (l *Line) Ready() claim.Ready {
	r := claim.Ready{Request: l.out, Wake: l.wake(), KeepAlive: !l.cfg.Loose && (l.phase == Leading || l.first), Happenings: l.happenings}
	l.out, l.happenings = nil, nil
	return r
}

// Over reports whether the bid is gone, or stays behind for good.
func (l *Line) Over() bool { return l.phase == Done }

// State is how things stand after the last Step.
func (l *Line) State() State {
	s := State{
		Phase: l.phase, Bid: l.own.Name, For: l.watched, Ahead: l.ahead, Token: l.token,
		Published: l.phase == Leading && l.pub.stage == published, PublishErr: l.pub.err,
		Led: l.led, Reason: l.reason, Err: l.err, Stays: l.stays,
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

// Left is how long the term lasts yet without another proof, its margin taken
// off; at most 0 when there is none. It only grows by a Step.
func (l *Line) Left(now claim.Moment) time.Duration {
	if l.phase != Leading {
		return 0
	}
	return l.lease.Left(now) - l.cfg.Margin
}

// Deadline is the time to the end of the lease, which a term with a margin
// does not reach.
func (l *Line) Deadline(now claim.Moment) time.Duration { return l.lease.Left(now) }

// Proof is nil when the deadline that Left counts to is proven.
func (l *Line) Proof() error { return l.lease.Proof() }

// attach binds the bid to its session, or takes note that it is attached again.
func (l *Line) attach(a claim.Attached) {
	if l.session != 0 && a.Session != l.session {
		l.over(claim.SessionExpired)
		return
	}
	l.session, l.attached = a.Session, true
	l.renew(a.Lease)
	l.pause.Reconnected()
	l.verify = claim.Timer{}
	if l.phase == Standing {
		l.look, l.first = true, false // the watch may have been lost on the way
	}
}

// renew takes a proof. A term that is over is not prolonged, nor its deadline.
func (l *Line) renew(proof claim.Lease) {
	if l.session != 0 && l.phase < Leaving {
		l.lease.Renew(proof)
	}
}

// fired: the znode ahead is gone or changed, which means to look again.
func (l *Line) fired(path string) {
	if l.watched == "" || path != l.watchPath(l.watched) {
		return
	}
	by := l.watched
	if by == anyLease {
		by = ""
	}
	l.pause.Failures = 0
	l.tell(Woken{l.own.Name, by})
	l.watched, l.look = "", true
}

// left is how long a term could last, or lasts yet, without another proof.
func (l *Line) left() time.Duration { return l.lease.Left(l.now) - l.cfg.Margin }

// proven reports whether the session is known to live, as far as that is asked for.
func (l *Line) proven() bool { return l.cfg.Loose || l.left() > 0 }

// lapse ends a term whose deadline has passed. What was read before is then
// too old to begin one.
func (l *Line) lapse() {
	if l.session != 0 && l.left() <= 0 {
		l.stale = true
	}
	if l.phase == Leading && !l.proven() {
		l.end(claim.LeaseLapsed, nil)
	}
}

// tryLead begins the term when the bid is first and the session proven alive.
func (l *Line) tryLead() {
	if !l.first || l.phase != Standing || !l.proven() {
		return
	}
	if l.stale && !l.cfg.Loose {
		l.look, l.first = true, false
		return
	}
	l.phase, l.led, l.first = Leading, true, false
	l.verify = claim.Timer{From: l.now, Wait: l.verifyEvery()}
	l.pub.wait = claim.Timer{From: l.now, Wait: l.cfg.Quiet}
	l.tell(Leads{l.own.Name, l.token, l.left(), l.lease.Proof(), l.cfg.Rule})
}

// end gives up the claim; the first reason counts. From here on the handle
// is over, so that the bid may be removed.
func (l *Line) end(reason claim.Reason, err error) {
	if l.phase >= Leaving {
		return
	}
	l.tell(Ended{l.own.Name, l.phase == Leading, reason, err, l.cfg.Rule})
	l.phase, l.reason, l.err, l.first = Leaving, reason, err, false
	l.pause = claim.Backoff{}
	if l.asked == nothing && l.own.Name == "" && !l.doubtful && len(l.probes) == 0 {
		l.finish(nil) // nothing to remove
	}
}

// over is end where the session takes the bid along, so nothing is left to do.
func (l *Line) over(reason claim.Reason) {
	l.end(reason, nil)
	l.finish(nil)
}

// plan chooses the next request, unless one is outstanding or none can be sent.
func (l *Line) plan() {
	if l.asked != nothing || !l.attached || !l.pause.Over(l.now) {
		return
	}
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

// ask makes the next request.
func (l *Line) ask(s step, ops ...claim.Op) {
	l.n++
	l.asked, l.out = s, &claim.Request{N: l.n, Session: l.session, Ops: ops}
}

// reply takes the answer to the outstanding request.
func (l *Line) reply(r claim.Reply) {
	if l.asked == nothing || r.N != l.n {
		return
	}
	s := l.asked
	l.asked = nothing
	lost := false
	for _, res := range r.Results {
		switch claim.Classify(res.Err) {
		case claim.SessionOver:
			l.over(claim.SessionExpired)
			return
		case claim.ClientOver:
			l.over(claim.SessionClosed)
			return
		case claim.Retry:
			lost = true
		}
	}
	if lost {
		l.pause.Fail(l.now)
		l.lost(s)
		return
	}
	l.pause.Stumbles(l.now, r.Results)
	l.take(s, r.Results)
}

// lost notes what a request may have done whose answer will not come.
func (l *Line) lost(s step) {
	switch s {
	case stepCreate:
		l.doubtful = true
	case stepLookSure:
		l.stale = true
	case stepPublish, stepReplace:
		l.pub.stage = doubted
	}
}

// take goes on from the results of one request.
func (l *Line) take(s step, res []claim.Result) {
	switch s {
	case stepFind, stepLookSure:
		if l.refusedBy(res[0]) { // the sync that the others rest on
			return
		}
	}
	switch s {
	case stepRoot:
		l.tookRoot(res[0])
	case stepParents:
		l.tookParents(res[0])
	case stepCreate:
		l.tookCreate(res[0])
	case stepFind:
		l.tookFind(res[1])
	case stepProbe:
		l.tookProbe(res)
	case stepLook:
		if l.stale = l.stale || l.misses(res[0], res[1]); !l.stale {
			l.tookLook(res[0], res[1])
		}
	case stepLookSure:
		l.tookLook(res[1], res[2])
	case stepStat:
		l.tookStat(res)
	case stepWatch:
		l.tookWatch(res[0])
	case stepWatchAll:
		l.tookWatchAll(res[0])
	case stepUnwatch:
		l.watched = ""
	case stepVerify:
		l.tookVerify(res[0])
	case stepPublish, stepReplace:
		l.tookPublish(res[0])
	case stepLeaderParents:
		if res[0].Err != nil {
			l.postpone(res[0].Err)
		}
	case stepRead:
		l.tookRead(res[0])
	case stepNamed:
		l.tookNamed(res[0], res[1])
	case stepResign:
		l.tookResign(res[0])
	case stepDelete:
		l.tookDelete(res[0])
	}
}

// wake is how soon something is due by itself.
func (l *Line) wake() time.Duration {
	if l.phase == Done {
		return 0
	}
	var least time.Duration
	due := func(d time.Duration) {
		if d = max(d, time.Millisecond); least == 0 || d < least {
			least = d
		}
	}
	if l.asked == nothing && l.attached && !l.pause.Over(l.now) {
		due(l.pause.Remaining(l.now))
	}
	if l.first {
		due(l.lease.Timeout / 20)
	}
	if l.lingers() {
		due(l.lease.Left(l.now))
	}
	if l.phase == Leading {
		if !l.cfg.Loose {
			due(l.lease.Timeout / 20) // a suspend is noticed by the wall clock alone
			due(l.left())
		}
		if l.asked == nothing && l.attached {
			due(l.verify.Remaining(l.now))
			if l.pub.pending(l.cfg.Leader) {
				due(l.pub.wait.Remaining(l.now))
			}
		}
	}
	return least
}

func (l *Line) tell(h claim.Happening) { l.happenings = append(l.happenings, h) }

// path is a child's path below the parent.
func (l *Line) path(name string) string { return claim.Join(l.cfg.Parent, name) }

// Phase is the part of its life a Line is in.
type Phase uint8

// The phases, in their order. A phase may be left out but none comes back.
const (
	Joining  Phase = iota // until the bid stands
	Standing              // the bid stands, in line or first without proof
	Leading               // its term: leading, or holding what the line is for
	Leaving               // the term, or the wish for one, is over; removing the bid
	Done
)

var phaseNames = [...]string{"joining", "standing", "leading", "leaving", "done"}

func (p Phase) String() string { return phaseNames[p] }

// State is how a Line stands.
type State struct {
	Phase Phase
	Bid   string // name; empty while not known
	// For is the bid that is watched, if it is one, and ForID its owner's id;
	// Ahead is how many bids were in the way at the last look.
	For, ForID string
	Ahead      int
	Token      wire.Zxid // the bid's czxid, 0 while not known
	// Published: LEADER names this bid. PublishErr is why it does not.
	Published  bool
	PublishErr error
	Led        bool // there was a term, which may be over
	Reason     claim.Reason
	Err        error // details of Refused
	// Stays is why the bid could not be removed, once Phase is Done: it stands
	// until its session ends.
	Stays error
}
