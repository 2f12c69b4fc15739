package commit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Decision is a site's vote, or the outcome of a transaction.
type Decision uint8

// The decisions. They stand as these words in the znodes.
const (
	Undecided Decision = iota
	Commit
	Abort
)

var decisionNames = [...]string{"", "commit", "abort"}

func (d Decision) String() string { return decisionNames[d] }

// parseDecision reads a znode; what it does not know is no decision.
func parseDecision(data []byte) Decision {
	return Decision(max(slices.Index(decisionNames[:], string(data)), 0))
}

// Transaction is the content of a transaction's znode, as JSON.
type Transaction struct {
	Sites []string `json:"sites"`
	// Plain: each site is told of all votes. Otherwise a coordinator alone is.
	Plain bool   `json:"plain,omitempty"`
	Data  []byte `json:"data,omitempty"`
}

// Encode is the znode's data.
func (t Transaction) Encode() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("claim: encoding %v: %v", t, err)) // strings and bytes always encode
	}
	return b
}

// ParseTransaction reads a transaction's znode.
func ParseTransaction(data []byte) (Transaction, error) {
	var t Transaction
	err := json.Unmarshal(data, &t)
	return t, err
}

// CommitConfig is what a Site or a Coordinator is about.
type CommitConfig struct {
	Path string // of the transaction, which is never used again
	Site string // the site's name; empty for a coordinator
	// Patience is how long a decision is waited for before whoever has not
	// voted counts as an abort; 0 is for ever.
	Patience time.Duration
	// Doubt: this is a site that has voted, or a coordinator that may have
	// begun, in an earlier life. A transaction that is not there was aborted.
	Doubt bool
	// Finished: the decision was carried out in an earlier life.
	Finished    bool
	Transaction // of a coordinator: what to begin
}

// CommitPhase says whose turn it is.
type CommitPhase uint8

// The phases.
const (
	TxOpen    CommitPhase = iota
	TxPrepare             // a site is to prepare, and to step Prepared
	TxDecided             // the decision is to be carried out, then Carried stepped
	TxOver                // nothing is left to do
)

// Prepared is a site's vote. One for Commit is a promise that outlives the site's crash.
type Prepared struct{ Vote Decision }

// Carried: the decision has been carried out, so that no crash can undo it.
type Carried struct{}

func (Prepared) Event() {}
func (Carried) Event()  {}

// CommitState is how a Site or a Coordinator stands.
type CommitState struct {
	Phase    CommitPhase
	Tx       Transaction // as far as it was read
	Decision Decision
	Carried  bool // and carried out, perhaps in an earlier life
	Chair    bool // holds the coordinator's znode
	// Withdrawn: it was given up before it was over.
	Withdrawn bool
	Err       error // why it is over, where that was not by plan
}

// Due: it is the application's turn, which is to prepare or to carry out.
func (s CommitState) Due() bool { return s.Phase == TxPrepare || s.Phase == TxDecided && !s.Carried }

// ballot is what is known of one site's znode.
type ballot struct {
	watched bool // what follows is up to date until its watch fires
	peeked  bool // it was read since
	seen    bool // it was there once
	owner   wire.SessionID
	version int32
	there   bool
	vote    Decision
}

// commit is one who takes part in a transaction: what Site and Coordinator
// have in common. It is driven as an Election is. All it knows it has read, so
// after any trouble it looks again. What it acts on is one znode alone, the
// decision, which is created once.
type commit struct {
	cfg   CommitConfig
	plan  func() // the next request
	now   claim.Moment
	phase CommitPhase
	err   error

	session  wire.SessionID
	attached bool
	asked    commitStep
	n        uint64
	out      *claim.Request
	pause    claim.Backoff
	patience claim.Timer
	waits    bool // patience has begun

	begun    bool  // the transaction's znode was there
	doubt    bool  // the transaction may have been there
	tomb     bool  // it never begins, which stands in its place
	looked   bool  // what is known of coordinator and decision is up to date
	watched  bool  // the coordinator's znode, or a plain decision, is watched
	chaired  bool  // there is a coordinator's znode
	chair    bool  // and it is ours
	stands   bool  // or may be, as it was asked for in this session
	present  bool  // the same of the own ballot, without a vote
	refusal  error // why the part ends, when nothing of it stands any more
	leaving  bool  // it is given up
	ballots  map[string]*ballot
	reading  []string // whose are being read
	vote     Decision // of this site
	decision Decision
	carried  bool
	marked   bool     // that it was carried out stands in the tree
	swept    []string // what was to be removed last
	stuck    bool     // and has children of its own

	happenings []claim.Happening
}

// commitStep is what the outstanding request is for.
type commitStep uint8

const (
	txNothing commitStep = iota
	txParents
	txBegin
	txFence
	txLook
	txAwait   // a plain decision
	txPresent // the own ballot
	txVote
	txChair
	txBallots
	txFill // abort for who has not voted
	txDecide
	txRise // give up the coordinator's znode
	txMark
	txList
	txSweep
	txRemains // what stands of who is refused, or gives up
	txQuit    // take it away
)

func newCommit(cfg CommitConfig) commit {
	c := commit{cfg: cfg, doubt: cfg.Doubt || cfg.Finished, ballots: map[string]*ballot{}}
	if cfg.Finished {
		c.phase, c.carried = TxDecided, true
	}
	return c
}

// The znodes of a transaction.
func (c *commit) chairPath() string             { return claim.Join(c.cfg.Path, "coordinator") }
func (c *commit) decisionPath() string          { return claim.Join(c.cfg.Path, "decision") }
func (c *commit) ballotPath(site string) string { return claim.Join(c.cfg.Path, "site_"+site) }
func (c *commit) markPath(name string) string   { return claim.Join(c.cfg.Path, "done_"+name) }

// Step takes one event, which happened at now.
func (c *commit) Step(now claim.Moment, ev claim.Event) {
	if c.phase == TxOver {
		return
	}
	c.now = now
	switch ev := ev.(type) {
	case claim.Attached:
		c.attach(ev.Session)
	case claim.Disconnected:
		c.attached = false
	case claim.Expired:
		c.forget()
	case claim.Closed:
		c.over(wire.ErrClosing)
	case claim.Resign:
		c.leaving = true
	case claim.Reply:
		c.reply(ev)
	case claim.Fired:
		c.fired(ev)
	case Prepared:
		if c.phase == TxPrepare && !c.leaving {
			c.vote, c.phase, c.looked = ev.Vote, TxOpen, false
		}
	case Carried:
		c.carried = c.phase == TxDecided
	}
	switch {
	case c.phase == TxOver || c.asked != txNothing:
	case c.quits() && !c.stands && !c.present:
		c.over(c.refusal)
	case !c.attached || !c.pause.Over(now):
	case c.quits():
		c.planRemains()
	default:
		c.plan()
	}
}

// Ready hands out what has come of the steps since the last call.
func (c *commit) Ready() claim.Ready {
	r := claim.Ready{Request: c.out, Wake: c.wake(), Happenings: c.happenings}
	c.out, c.happenings = nil, nil
	return r
}

// Over reports whether nothing is left to do.
func (c *commit) Over() bool { return c.phase == TxOver }

// State is how things stand after the last Step.
func (c *commit) State() CommitState {
	return CommitState{Phase: c.phase, Tx: c.cfg.Transaction, Decision: c.decision, Carried: c.carried, Chair: c.chair, Withdrawn: c.leaving, Err: c.err}
}

// wake is how soon something is due by itself.
func (c *commit) wake() time.Duration {
	if c.phase == TxOver || c.asked != txNothing || !c.attached {
		return 0
	}
	var due time.Duration
	if !c.pause.Over(c.now) {
		due = c.pause.Remaining(c.now)
	} else if c.phase == TxOpen && c.waits && !c.impatient() {
		due = c.patience.Remaining(c.now)
	} else {
		return 0
	}
	return max(due, time.Millisecond)
}

// attach goes on with a session. With another one than before what was
// watched and held is gone.
func (c *commit) attach(s wire.SessionID) {
	if s != c.session {
		c.forget()
	}
	c.session, c.attached = s, true
	c.pause.Reconnected()
}

// forget drops what a session's end has made untrue.
func (c *commit) forget() {
	c.attached, c.asked, c.out = false, txNothing, nil
	c.looked, c.watched, c.chaired, c.chair, c.stands, c.present = false, false, false, false, false, false
	for _, b := range c.ballots {
		b.watched = false
	}
}

// fired: a site whose znode was made has come, even if it is gone again.
func (c *commit) fired(ev claim.Fired) {
	c.pause.Fired(ev)
	switch ev.Path {
	case c.chairPath(), c.decisionPath():
		c.looked, c.watched = false, false
	}
	for site, b := range c.ballots {
		if ev.Path == c.ballotPath(site) {
			b.watched, b.peeked, b.seen = false, false, b.seen || ev.Type == wire.EventNodeCreated
		}
	}
}

func (c *commit) ask(s commitStep, ops ...claim.Op) {
	c.n++
	c.asked, c.out = s, &claim.Request{N: c.n, Session: c.session, Ops: ops}
}

// reply takes the answer to the outstanding request. One that was lost means
// to look what it has done.
func (c *commit) reply(r claim.Reply) {
	if c.asked == txNothing || r.N != c.n {
		return
	}
	s := c.asked
	c.asked = txNothing
	for _, res := range r.Results {
		switch claim.Classify(res.Err) {
		case claim.SessionOver:
			c.forget()
			return
		case claim.ClientOver:
			c.over(res.Err)
			return
		case claim.Retry:
			c.pause.Fail(c.now)
			c.looked, c.doubt = false, c.doubt || s == txBegin
			return
		}
	}
	c.pause.Stumbles(c.now, r.Results)
	c.take(s, r.Results)
}

// take goes on from the results of one request.
func (c *commit) take(s commitStep, res []claim.Result) {
	switch s {
	case txLook:
		c.tookLook(res)
	case txBallots:
		c.tookBallots(res)
	case txList:
		c.tookList(res[1])
	case txSweep:
		c.tookSweep(res[0])
	case txMark:
		c.marked = c.expected(res[0].Err, wire.ErrNodeExists, wire.ErrNoNode)
	case txBegin, txFence:
		c.tookBegin(res[0])
	case txRemains:
		c.tookRemains(res[1], res[2])
	case txParents:
		c.looked = false
		c.expected(res[0].Err) // without its parents a transaction cannot begin
	case txQuit: // whatever became of it
		c.over(c.refusal)
	case txAwait:
		c.watched, c.looked = true, res[0].Err != nil
		c.expected(res[0].Err, wire.ErrNoNode)
	default: // whose outcome the next look tells
		c.looked = false
		c.stands = c.stands && (s != txChair || res[0].Err == nil)
		for _, r := range res {
			c.expected(r.Err, wire.ErrNodeExists, wire.ErrNoNode, wire.ErrBadVersion)
		}
	}
}

// expected ends the part where the server refused for another reason than these.
func (c *commit) expected(err error, reasons ...error) bool {
	if err == nil || slices.ContainsFunc(reasons, func(r error) bool { return errors.Is(err, r) }) {
		return true
	}
	c.refuse(err)
	return false
}

func (c *commit) over(err error) {
	c.phase, c.err, c.asked, c.out = TxOver, err, txNothing, nil
}

// impatient: who has not voted by now is not waited for.
func (c *commit) impatient() bool { return c.waits && c.patience.Over(c.now) }

func (c *commit) tell(format string, args ...any) {
	c.happenings = append(c.happenings, txHappening(c.cfg.Path+": "+fmt.Sprintf(format, args...)))
}

// txHappening is a sentence for the log.
type txHappening string

func (h txHappening) String() string { return string(h) }
