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

// The decisions. Znodes contain them as the words of decisionNames.
const (
	Undecided Decision = iota
	Commit
	Abort
)

var decisionNames = [...]string{"", "commit", "abort"}

func (d Decision) String() string { return decisionNames[d] }

// parseDecision parses the data of a znode. Unknown data is Undecided.
func parseDecision(data []byte) Decision {
	return Decision(max(slices.Index(decisionNames[:], string(data)), 0))
}

// Transaction is the content of a transaction's znode, encoded as JSON.
type Transaction struct {
	Sites []string `json:"sites"`
	// Plain selects the variant without a coordinator: each site watches all votes. Otherwise only the
	// coordinator watches them.
	Plain bool   `json:"plain,omitempty"`
	Data  []byte `json:"data,omitempty"`
}

// Encode returns the data of the znode.
func (t Transaction) Encode() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("claim: encoding %v: %v", t, err)) // strings and bytes can always be encoded
	}
	return b
}

// ParseTransaction parses the data of a transaction's znode.
func ParseTransaction(data []byte) (Transaction, error) {
	var t Transaction
	err := json.Unmarshal(data, &t)
	return t, err
}

// CommitConfig describes a Site or a Coordinator.
type CommitConfig struct {
	Path string // path of the transaction; it is never used again
	Site string // the site's name; empty for a coordinator
	// Patience is how long to wait for the votes. After that, a site that has not voted counts as a
	// vote for Abort. 0 means no limit.
	Patience time.Duration
	// Doubt is set for a site that has voted before a restart, or for a coordinator that may have begun
	// the transaction before a restart. If the transaction does not exist, it was aborted.
	Doubt bool
	// Finished means that the decision was carried out before a restart.
	Finished    bool
	Transaction // for a coordinator: the transaction to begin
}

// CommitPhase says what a Site or a Coordinator waits for.
type CommitPhase uint8

// The phases.
const (
	TxOpen    CommitPhase = iota // for votes or the decision
	TxPrepare                    // the site must prepare, then step Prepared
	TxDecided                    // the application must carry out the decision, then step Carried
	TxOver                       // for nothing: it has ended
)

// Prepared carries the vote of a site. A vote for Commit is a promise that must survive a crash of the
// site.
type Prepared struct{ Vote Decision }

// Carried reports that the application has carried out the decision durably.
type Carried struct{}

func (Prepared) Event() {}
func (Carried) Event()  {}

// CommitState is the state of a Site or a Coordinator.
type CommitState struct {
	Phase    CommitPhase
	Tx       Transaction // the transaction, once it has been read
	Decision Decision
	Carried  bool // the decision was carried out, perhaps before a restart
	Chair    bool // this session owns the coordinator's znode
	// Withdrawn means that the caller gave up before the end.
	Withdrawn bool
	Err       error // why it ended early
}

// Due reports whether the application must act: prepare, or carry out the decision.
func (s CommitState) Due() bool { return s.Phase == TxPrepare || s.Phase == TxDecided && !s.Carried }

// ballot is what is known of one site's znode. If watched is set, the fields below it are current until
// the watch fires.
type ballot struct {
	watched bool // a watch is set on the znode
	peeked  bool // the znode was read since its last event
	seen    bool // the znode existed at some time
	owner   wire.SessionID
	version int32
	there   bool
	vote    Decision
}

// commit is the common part of Site and Coordinator. It holds only what it has read, and reads again after
// any failure. It acts only on the decision znode, which is created once and never changes.
//
// At most one request is outstanding; asked is txNothing if there is none. chair implies chaired, and
// marked implies carried.
type commit struct {
	cfg   CommitConfig
	plan  func() // chooses the next request
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
	waits    bool // the time of Patience has begun

	begun    bool  // the transaction's znode was seen
	doubt    bool  // the transaction may exist or have existed
	tomb     bool  // the transaction will never begin: an empty, aborted one holds its place
	looked   bool  // the fields about the coordinator and the decision are current
	watched  bool  // the coordinator's znode, or the decision of a plain transaction, is watched
	chaired  bool  // the coordinator's znode exists
	chair    bool  // this session owns it
	stands   bool  // this session owns it, or may own it because it tried to create it
	present  bool  // the same for the site's own znode, while it holds no vote
	refusal  error // why the part must end early; nil: it need not
	leaving  bool  // the caller has given up
	ballots  map[string]*ballot
	reading  []string // the sites whose ballots the outstanding request reads
	vote     Decision // of this site
	decision Decision
	carried  bool
	marked   bool     // the znode that records the execution of the decision exists
	swept    []string // the children that the last sweep tried to remove
	stuck    bool     // that sweep failed because one of them has children

	happenings []claim.Happening
}

// commitStep is the purpose of the outstanding request.
type commitStep uint8

const (
	txNothing commitStep = iota
	txParents
	txBegin
	txFence
	txLook
	txAwait   // waits for the decision of a plain transaction
	txPresent // creates the site's own znode
	txVote
	txChair
	txBallots
	txFill // votes Abort for sites that have not voted
	txDecide
	txRise // deletes the coordinator's znode
	txMark
	txList
	txSweep
	txRemains // after a refusal or Resign: which znodes does this session own?
	txQuit    // deletes them
)

func newCommit(cfg CommitConfig) commit {
	c := commit{cfg: cfg, doubt: cfg.Doubt || cfg.Finished, ballots: map[string]*ballot{}}
	if cfg.Finished {
		c.phase, c.carried = TxDecided, true
	}
	return c
}

// The paths of a transaction's znodes.
func (c *commit) chairPath() string             { return claim.Join(c.cfg.Path, "coordinator") }
func (c *commit) decisionPath() string          { return claim.Join(c.cfg.Path, "decision") }
func (c *commit) ballotPath(site string) string { return claim.Join(c.cfg.Path, "site_"+site) }
func (c *commit) markPath(name string) string   { return claim.Join(c.cfg.Path, "done_"+name) }

// Step processes one event, which happened at now.
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

// Ready returns what the steps since the last call have produced.
func (c *commit) Ready() claim.Ready {
	r := claim.Ready{Request: c.out, Wake: c.wake(), Happenings: c.happenings}
	c.out, c.happenings = nil, nil
	return r
}

// Over reports whether the part has ended.
func (c *commit) Over() bool { return c.phase == TxOver }

// State returns the state after the last Step.
func (c *commit) State() CommitState {
	return CommitState{Phase: c.phase, Tx: c.cfg.Transaction, Decision: c.decision, Carried: c.carried, Chair: c.chair, Withdrawn: c.leaving, Err: c.err}
}

// wake returns the time until the next Step is due; 0 means that none is due.
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

// attach enters a session. If it differs from the last one, the watches and ephemeral znodes of the last
// one are gone.
func (c *commit) attach(s wire.SessionID) {
	if s != c.session {
		c.forget()
	}
	c.session, c.attached = s, true
	c.pause.Reconnected()
}

// forget discards the state that depended on the session.
func (c *commit) forget() {
	c.attached, c.asked, c.out = false, txNothing, nil
	c.looked, c.watched, c.chaired, c.chair, c.stands, c.present = false, false, false, false, false, false
	for _, b := range c.ballots {
		b.watched = false
	}
}

// fired processes a watch event. The event of a creation shows that the site has joined, even if its znode
// is gone again.
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

// reply processes the answer to the outstanding request. If the answer was lost, the next look finds out
// what the request has done.
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

// take processes the results of one request.
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
		c.expected(res[0].Err) // a transaction cannot begin without its parents
	case txQuit: // the part ends whether the deletion succeeded or not
		c.over(c.refusal)
	case txAwait:
		c.watched, c.looked = true, res[0].Err != nil
		c.expected(res[0].Err, wire.ErrNoNode)
	default: // the next look finds out the outcome
		c.looked = false
		c.stands = c.stands && (s != txChair || res[0].Err == nil)
		for _, r := range res {
			c.expected(r.Err, wire.ErrNodeExists, wire.ErrNoNode, wire.ErrBadVersion)
		}
	}
}

// expected reports whether err is nil or one of the reasons. Otherwise it ends the part.
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

// impatient reports whether the time of Patience is over.
func (c *commit) impatient() bool { return c.waits && c.patience.Over(c.now) }

func (c *commit) tell(format string, args ...any) {
	c.happenings = append(c.happenings, txHappening(c.cfg.Path+": "+fmt.Sprintf(format, args...)))
}

// txHappening is an observation whose log text is the string itself.
type txHappening string

func (h txHappening) String() string { return string(h) }
