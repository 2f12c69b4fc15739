package claim

import (
	"strings"
	"time"

	"bellwether/wire"
)

// Times that are not the caller's to choose.
const (
	pauseMin     = 50 * time.Millisecond // after an operation that could not be carried out
	pauseMax     = 2 * time.Second
	publishPause = time.Second // between two looks at a LEADER that is in the way
	verifyMin    = 100 * time.Millisecond
)

// Config is what an Election is about. All fields but Nonce are the same for
// every candidate.
type Config struct {
	Parent string // absolute path below which the bids stand
	ID     string // who the candidate is, for others to read
	Naming Naming
	Nonce  Nonce  // random, never used before
	Leader string // path of the LEADER znode; empty publishes nothing
	// Margin is how long before its deadline a term ends, for work that takes
	// time to stop.
	Margin time.Duration
}

// Election is one bid for leadership. It leads at most one term: when that is
// over the bid is removed, and who wants to lead again makes a new Election.
//
// It is safe that it leads when: no bid of an earlier czxid was left on a
// server that was up to date, the own bid belongs to the live session, and
// the lease has not lapsed. Bids are only ever added behind it, so that it
// stays first as long as its session lives.
type Election struct {
	cfg Config
	now Moment

	phase  Phase
	led    bool
	reason Reason
	err    error

	session  wire.SessionID // 0 before the first attachment
	attached bool
	lease    Lease

	asked step // what the outstanding request is for
	n     uint64
	out   *Request
	pause pause

	doubtful bool     // the bid may have been made, its name is not known
	probes   []string // bids among which it may be
	own      Bid      // Name is empty while not known
	token    wire.Zxid

	look    bool // the children must be looked at
	exact   bool // and ordered by czxid, see wornOut
	others  []Bid
	ahead   int
	next    string // the bid to watch
	watched string // the bid that is watched
	forID   string
	skip    map[string]bool // children that look like bids and are none
	first   bool            // nobody is ahead

	pub    publication
	verify timer

	happenings []Happening
}

// NewElection makes a bid's state machine. It waits for Attached.
func NewElection(cfg Config) *Election {
	return &Election{cfg: cfg, pub: publication{stage: unpublished}}
}

// step is what the outstanding request is for.
type step uint8

const (
	nothing step = iota
	stepParents
	stepCreate
	stepFind  // after a lost reply: is there a bid of ours?
	stepProbe // which of these is it?
	stepLook
	stepStat // the czxid of every bid
	stepWatch
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
func (e *Election) Step(now Moment, ev Event) {
	if e.phase == Done {
		return
	}
	e.now = now
	e.lapse() // a deadline that has passed ends the term, whatever the event says
	switch ev := ev.(type) {
	case Attached:
		e.attach(ev)
	case Disconnected:
		e.attached = false
	case Expired:
		e.over(SessionExpired)
	case Closed:
		e.over(SessionClosed)
	case Confirmed:
		e.renew(ev.Lease)
	case Reply:
		e.reply(ev)
	case Fired:
		e.fired(ev.Path)
	case Resign:
		e.end(Resigned, nil)
	}
	e.tryLead()
	e.plan()
}

// Ready hands out what has come of the steps since the last call.
func (e *Election) Ready() Ready {
	r := Ready{Request: e.out, Wake: e.wake(), KeepAlive: e.phase == Leading || e.first, Happenings: e.happenings}
	e.out, e.happenings = nil, nil
	return r
}

// State is how things stand after the last Step.
func (e *Election) State() State {
	s := State{
		Phase: e.phase, Bid: e.own.Name, For: e.watched, Ahead: e.ahead, Token: e.token,
		Published: e.phase == Leading && e.pub.stage == published, PublishErr: e.pub.err,
		Led: e.led, Reason: e.reason, Err: e.err,
	}
	if s.For != "" {
		s.ForID = e.forID
	}
	return s
}

// Left is how long the term lasts yet without another proof, its margin taken
// off; at most 0 when there is none. It only grows by a Step.
func (e *Election) Left(now Moment) time.Duration {
	if e.phase != Leading {
		return 0
	}
	return e.lease.Left(now) - e.cfg.Margin
}

// Deadline is the time to the end of the lease, which a term with a margin
// does not reach.
func (e *Election) Deadline(now Moment) time.Duration { return e.lease.Left(now) }

// Proof is nil when the deadline that Left counts to is proven.
func (e *Election) Proof() error { return e.lease.Proof() }

// attach binds the bid to its session, or takes note that it is attached again.
func (e *Election) attach(a Attached) {
	if e.session != 0 && a.Session != e.session {
		e.over(SessionExpired)
		return
	}
	e.session, e.attached = a.Session, true
	e.renew(a.Lease)
	e.pause = pause{}
	e.verify = timer{}
	if e.phase == Standing {
		e.look, e.first = true, false // the watch may have been lost on the way
	}
}

// renew takes a proof. A term that is over is not prolonged, nor its deadline.
func (e *Election) renew(l Lease) {
	if e.session != 0 && e.phase < Leaving {
		e.lease.renew(l)
	}
}

// fired: the znode ahead is gone or changed, which means to look again.
func (e *Election) fired(path string) {
	if e.watched == "" || path != e.path(e.watched) {
		return
	}
	e.tell(Woken{e.own.Name, e.watched})
	e.watched, e.look = "", true
}

// left is how long a term could last, or lasts yet, without another proof.
func (e *Election) left() time.Duration { return e.lease.Left(e.now) - e.cfg.Margin }

// lapse ends a term whose deadline has passed.
func (e *Election) lapse() {
	if e.phase == Leading && e.left() <= 0 {
		e.end(LeaseLapsed, nil)
	}
}

// tryLead begins the term when the bid is first and the session proven alive.
func (e *Election) tryLead() {
	if !e.first || e.phase != Standing || e.left() <= 0 {
		return
	}
	e.phase, e.led, e.first = Leading, true, false
	e.verify = timer{e.now, e.verifyEvery()}
	e.tell(Leads{e.own.Name, e.token, e.left(), e.lease.Proof()})
}

// end gives up the claim; the first reason counts. From here on the handle
// is over, so that the bid may be removed.
func (e *Election) end(reason Reason, err error) {
	if e.phase >= Leaving {
		return
	}
	e.tell(Ended{e.own.Name, e.phase == Leading, reason, err})
	e.phase, e.reason, e.err, e.first = Leaving, reason, err, false
	e.pause = pause{}
	if e.asked == nothing && e.own.Name == "" && !e.doubtful && len(e.probes) == 0 {
		e.finish(nil) // nothing to remove
	}
}

// over is end where the session takes the bid along, so nothing is left to do.
func (e *Election) over(reason Reason) {
	e.end(reason, nil)
	e.finish(nil)
}

// plan chooses the next request, unless one is outstanding or none can be sent.
func (e *Election) plan() {
	if e.asked != nothing || !e.attached || !e.pause.over(e.now) {
		return
	}
	switch e.phase {
	case Joining:
		e.planJoin()
	case Standing:
		e.planLook()
	case Leading:
		e.planLead()
	case Leaving:
		e.planLeave()
	}
}

// ask makes the next request.
func (e *Election) ask(s step, ops ...Op) {
	e.n++
	e.asked, e.out = s, &Request{N: e.n, Session: e.session, Ops: ops}
}

// reply takes the answer to the outstanding request.
func (e *Election) reply(r Reply) {
	if e.asked == nothing || r.N != e.n {
		return
	}
	s := e.asked
	e.asked = nothing
	lost := false
	for _, res := range r.Results {
		switch fateOf(res.Err) {
		case expired:
			e.over(SessionExpired)
			return
		case closed:
			e.over(SessionClosed)
			return
		case again:
			lost = true
		}
	}
	if lost {
		e.pause.extend(e.now)
		e.lost(s)
		return
	}
	e.pause = pause{}
	e.take(s, r.Results)
}

// lost notes what a request may have done whose answer will not come.
func (e *Election) lost(s step) {
	switch s {
	case stepCreate:
		e.doubtful = true
	case stepPublish, stepReplace:
		e.pub.stage = doubted
	}
}

// take goes on from the results of one request.
func (e *Election) take(s step, res []Result) {
	switch s {
	case stepFind, stepLook:
		if e.refusedBy(res[0]) { // the sync that the others rest on
			return
		}
	}
	switch s {
	case stepParents:
		e.tookParents(res[0])
	case stepCreate:
		e.tookCreate(res[0])
	case stepFind:
		e.tookFind(res[1])
	case stepProbe:
		e.tookProbe(res)
	case stepLook:
		e.tookLook(res[1], res[2])
	case stepStat:
		e.tookStat(res)
	case stepWatch:
		e.tookWatch(res[0])
	case stepUnwatch:
		e.watched = ""
	case stepVerify:
		e.tookVerify(res[0])
	case stepPublish, stepReplace:
		e.tookPublish(res[0])
	case stepLeaderParents:
		if res[0].Err != nil {
			e.postpone(res[0].Err)
		}
	case stepRead:
		e.tookRead(res[0])
	case stepNamed:
		e.tookNamed(res[0], res[1])
	case stepResign:
		e.tookResign(res[0])
	case stepDelete:
		e.tookDelete(res[0])
	}
}

// wake is how soon something is due by itself.
func (e *Election) wake() time.Duration {
	if e.phase == Done {
		return 0
	}
	var least time.Duration
	due := func(d time.Duration) {
		if d = max(d, time.Millisecond); least == 0 || d < least {
			least = d
		}
	}
	if e.asked == nothing && e.attached && !e.pause.over(e.now) {
		due(e.pause.left(e.now))
	}
	if e.first {
		due(e.lease.Timeout / 20)
	}
	if e.phase == Leading {
		due(e.lease.Timeout / 20) // a suspend is noticed by the wall clock alone
		due(e.left())
		if e.asked == nothing && e.attached {
			due(e.verify.left(e.now))
			if e.pub.pending(e.cfg.Leader) {
				due(e.pub.wait.left(e.now))
			}
		}
	}
	return least
}

func (e *Election) tell(h Happening) { e.happenings = append(e.happenings, h) }

// path is a child's path below the parent.
func (e *Election) path(name string) string { return Join(e.cfg.Parent, name) }

// Join is the path of a child below its parent, which may be the root.
func Join(parent, name string) string { return strings.TrimSuffix(parent, "/") + "/" + name }

// timer is due some time after a moment; the zero timer is due at once.
type timer struct {
	from Moment
	wait time.Duration
}

func (t timer) left(now Moment) time.Duration { return t.wait - now.Since(t.from) }

func (t timer) over(now Moment) bool { return t.wait == 0 || t.left(now) <= 0 }

// pause is a timer that grows with each failure in a row.
type pause struct{ timer }

func (p *pause) extend(now Moment) {
	p.timer = timer{now, min(max(2*p.wait, pauseMin), pauseMax)}
}
