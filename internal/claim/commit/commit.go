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

// Config describes a Site or a Coordinator.
type Config struct {
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

// Phase says what a Site or a Coordinator waits for.
type Phase uint8

// The phases.
const (
	TxOpen    Phase = iota // the machine waits for votes or the decision
	TxPrepare              // the site must prepare, then step Prepared
	TxDecided              // the application must carry out the decision, then step Carried
	TxOver                 // nothing: the machine has ended
)

// Prepared carries the vote of a site. A vote for Commit is a promise that must survive a crash of the
// site.
type Prepared struct{ Vote Decision }

// Carried reports that the application has carried out the decision durably.
type Carried struct{}

func (Prepared) Event() {}
func (Carried) Event()  {}

// State is the state of a Site or a Coordinator.
type State struct {
	Phase       Phase
	Tx          Transaction // the transaction, once it has been read
	Decision    Decision
	Carried     bool // the decision was carried out, perhaps before a restart
	Coordinates bool // this session owns the coordinator's znode
	// Withdrawn means that the caller gave up before the end.
	Withdrawn bool
	Err       error // why it ended early
}

// Due reports whether the application must act: prepare, or carry out the decision.
func (s State) Due() bool { return s.Phase == TxPrepare || s.Phase == TxDecided && !s.Carried }

// ballot holds what is known of one site's znode. If watched is set, the fields below it are current until
// the watch fires.
type ballot struct {
	watched  bool // a watch is set on the znode
	readOnce bool // the znode was read since its last event
	existed  bool // the znode existed at some time
	owner    wire.SessionID
	version  int32
	exists   bool
	vote     Decision
}

// commit is the common part of Site and Coordinator. It holds only what it has read, and reads again after
// any failure. It acts only on the decision znode, which is created once and never changes.
//
// coordinates implies coordinated, and marked implies carried.
type commit struct {
	claim.Requester
	cfg      Config
	plan     func() // chooses the next request, unless this party leaves early
	phase    Phase  // the phase; once the Requester has ended, it is TxOver
	patience claim.Timer
	waits    bool // the time of Patience has begun

	begun         bool  // the transaction's znode was seen
	doubt         bool  // the transaction may exist or have existed
	placeholder   bool  // the transaction will never begin: an empty transaction that is aborted occupies its path
	looked        bool  // the fields about the coordinator and the decision are current
	watched       bool  // the coordinator's znode, or the decision of a plain transaction, is watched
	coordinated   bool  // the coordinator's znode exists
	coordinates   bool  // this session owns the coordinator's znode
	mayCoordinate bool  // this session owns that znode, or may own it because it tried to create it
	mayBePresent  bool  // this session owns, or may own, the znode of its site, which holds no vote yet
	refusal       error // why this party must end early; nil: it need not
	ballots       map[string]*ballot
	reading       []string // the sites whose ballots the outstanding request reads
	vote          Decision // the vote of this site
	decision      Decision
	carried       bool
	marked        bool     // the znode that records the execution of the decision exists
	swept         []string // the children that the last sweep tried to remove
	stuck         bool     // the last request that removed the transaction failed, because one of its znodes has children
}

func newCommit(cfg Config) *commit {
	c := &commit{cfg: cfg, doubt: cfg.Doubt || cfg.Finished, ballots: map[string]*ballot{}}
	if cfg.Finished {
		c.phase, c.carried = TxDecided, true
	}
	c.Forget = c.forget
	return c
}

// The paths of a transaction's znodes.
func (c *commit) coordinatorPath() string       { return claim.Join(c.cfg.Path, "coordinator") }
func (c *commit) decisionPath() string          { return claim.Join(c.cfg.Path, "decision") }
func (c *commit) ballotPath(site string) string { return claim.Join(c.cfg.Path, "site_"+site) }
func (c *commit) markPath(name string) string   { return claim.Join(c.cfg.Path, "done_"+name) }

// Step processes one event, which happened at now.
func (c *commit) Step(now claim.Moment, ev claim.Event) {
	if c.Over() {
		return
	}
	switch ev := ev.(type) {
	case claim.Fired:
		c.fired(ev)
	case Prepared:
		if c.phase == TxPrepare && !c.Leaving {
			c.vote, c.phase, c.looked = ev.Vote, TxOpen, false
		}
	case Carried:
		c.carried = c.phase == TxDecided
	}
	c.Advance(now, ev, func() {
		if c.leavesEarly() {
			c.planLeave()
		} else {
			c.plan()
		}
	})
	if c.leavesEarly() && c.Asked == 0 && !c.mayCoordinate && !c.mayBePresent && !c.Over() {
		c.over(c.refusal)
	}
}

// Ready returns what the steps since the last call have produced.
func (c *commit) Ready() claim.Ready {
	r := c.Requester.Ready()
	if r.Wake == 0 && !c.Over() && c.Asked == 0 && c.Connected && c.phase == TxOpen && c.waits && !c.timedOut() {
		r.Wake = max(c.patience.Remaining(c.Now), time.Millisecond)
	}
	return r
}

// State returns the state after the last Step.
func (c *commit) State() State {
	s := State{Phase: c.phase, Tx: c.cfg.Transaction, Decision: c.decision, Carried: c.carried, Coordinates: c.coordinates, Withdrawn: c.Leaving, Err: c.Failure}
	if c.Over() {
		s.Phase = TxOver
	}
	return s
}

// forget discards the state that depended on the session.
func (c *commit) forget() {
	c.looked, c.watched, c.coordinated, c.coordinates, c.mayCoordinate, c.mayBePresent = false, false, false, false, false, false
	for _, b := range c.ballots {
		b.watched = false
	}
}

// fired processes a watch event. The event of a creation shows that the site has joined, even if its znode
// is gone again.
func (c *commit) fired(ev claim.Fired) {
	switch ev.Path {
	case c.coordinatorPath(), c.decisionPath():
		c.looked, c.watched = false, false
	}
	for site, b := range c.ballots {
		if ev.Path == c.ballotPath(site) {
			b.watched, b.readOnce, b.existed = false, false, b.existed || ev.Type == wire.EventNodeCreated
		}
	}
}

// ask makes a request. If its answer is lost, the next request is a look.
func (c *commit) ask(then func([]claim.Result), ops ...claim.Op) {
	c.Ask(then, ops...)
	c.OnLoss(func() { c.looked = false })
}

// write makes a request that changes the transaction. A look follows it, which finds out the outcome.
func (c *commit) write(ops ...claim.Op) {
	c.looked = false
	c.Ask(c.wrote, ops...)
}

func (c *commit) wrote(res []claim.Result) {
	for _, r := range res {
		c.expected(r.Err, wire.ErrNodeExists, wire.ErrNoNode, wire.ErrBadVersion)
	}
}

// expected reports whether err is nil or one of the reasons. Otherwise it ends this party's work.
func (c *commit) expected(err error, reasons ...error) bool {
	if err == nil || slices.ContainsFunc(reasons, func(r error) bool { return errors.Is(err, r) }) {
		return true
	}
	c.refuse(err)
	return false
}

func (c *commit) over(err error) {
	if err != nil {
		c.End(claim.Failed, err)
	} else {
		c.End(claim.Succeeded, nil)
	}
}

// timedOut reports whether the time of Patience is over.
func (c *commit) timedOut() bool { return c.waits && c.patience.Over(c.Now) }

func (c *commit) report(format string, args ...any) {
	c.Report(observation(c.cfg.Path + ": " + fmt.Sprintf(format, args...)))
}

// observation is a claim.Observation whose log text is the string itself.
type observation string

func (h observation) String() string { return string(h) }
