package sim

import (
	"fmt"
	"slices"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// txRoot is the znode that contains the transactions.
const txRoot = "/tx"

// deal is one transaction of a run, as the simulator knows it.
type deal struct {
	path  string
	plain bool
	sites []string
}

// party is the coordinator of all transactions, or one of their sites. It works on one
// transaction after the other. A site first takes those that it is in doubt about, and then
// those that its commit.Serving names.
type party struct {
	runner
	name  string // empty for the coordinator
	m     txMachine
	deal  *deal
	notes map[*deal]*note

	serving *commit.Serving
	looks   runner // sends the requests of serving

	acting  bool
	waiting bool    // it waits to search for another transaction
	refuses float64 // percent of the transactions that it votes to abort
	points  int     // steps so far at which it could crash
	crashAt int     // the number of the step at which it crashes; 0: at none
	vanish  bool    // after the crash it stays away until it is told to return
}

// note is what a party has written down about a transaction. It survives a crash.
type note struct {
	begun    bool // coordinator: the transaction may exist
	prepared bool // site: it has promised to commit
	done     commit.Decision
	over     bool // coordinator: nothing is left to do
}

// txMachine is a commit.Site or a commit.Coordinator.
type txMachine interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	State() commit.CommitState
}

// Observations of parties, for the checkers.
type (
	// txVoted says that a site promises to commit.
	txVoted struct {
		p    *party
		deal *deal
	}
	// txLearned says that a party knows the decision.
	txLearned struct {
		p        *party
		deal     *deal
		decision commit.Decision
	}
	// txCarried says that a party has carried out the decision.
	txCarried struct {
		p        *party
		deal     *deal
		decision commit.Decision
	}
)

func newParty(c *client, name string) *party {
	p := &party{name: name, notes: map[*deal]*note{}, refuses: 10}
	p.runner = runner{c: c, step: p.step}
	p.looks = runner{c: c, step: p.stepServing}
	return p
}

// who returns the name of a party for messages.
func (p *party) who() string {
	if p.name == "" {
		return "the coordinator"
	}
	return "site " + p.name
}

func (p *party) attached() {
	p.stepServing(claim.Attached{Session: p.c.session})
	if p.m == nil {
		p.begin()
		return
	}
	p.step(claim.Attached{Session: p.c.session})
}

func (p *party) disconnected() { p.stepServing(claim.Disconnected{}); p.runner.disconnected() }
func (p *party) expired()      { p.stepServing(claim.Expired{}); p.runner.expired() }

// crashed drops everything that the party has not written down.
func (p *party) crashed() {
	p.drop()
	p.looks.drop()
	p.m, p.deal, p.serving, p.acting, p.waiting = nil, nil, nil, false, false
}

// note returns what the party has written down about a transaction.
func (p *party) note(d *deal) *note {
	n := p.notes[d]
	if n == nil {
		n = &note{}
		p.notes[d] = n
	}
	return n
}

// begin takes up a transaction. The coordinator takes the oldest one that it has not ended,
// or a new one. A site takes the oldest one that it is in doubt about, or begins to serve.
func (p *party) begin() {
	if p.waiting || p.serving != nil {
		return
	}
	s := p.c.sim
	var next *deal
	for _, d := range s.deals {
		if p.owes(d) {
			next = d
			break
		}
	}
	if next == nil && p.name == "" && !(s.calm && s.quiet) {
		next = s.newDeal()
	}
	switch {
	case next != nil:
		p.take(next)
	case p.name != "":
		p.serve()
	default:
		p.beginLater()
	}
}

// owes reports whether a party that begins anew must work on this transaction first.
func (p *party) owes(d *deal) bool {
	n := p.note(d)
	if p.name == "" {
		return !n.over
	}
	return n.prepared && n.done == commit.Undecided
}

// settled reports whether a party has nothing left to do for this transaction.
func (p *party) settled(d *deal) bool {
	if p.name == "" {
		return !p.owes(d)
	}
	return p.deal != d && (p.note(d).done != commit.Undecided || !p.owes(d) && p.c.sim.coordinator().settled(d))
}

// beginLater searches again after a while.
func (p *party) beginLater() {
	p.waiting = true
	life := p.life
	p.c.sim.after(p.c.random.below(200*millisecond), func() {
		if p.life != life {
			return
		}
		p.waiting = false
		if p.m == nil && p.c.attached && !p.c.silent {
			p.begin()
		}
	})
}

// patience returns how long parties wait for votes.
func (s *Sim) patience() time.Duration {
	return time.Duration(16*s.opt.TickMS) * time.Millisecond
}

// newDeal returns the next transaction, of either kind, with all sites.
func (s *Sim) newDeal() *deal {
	d := &deal{path: fmt.Sprintf("%s/%s%d", txRoot, claim.TxPrefix, len(s.deals)+1), plain: s.random.chance(50)}
	for _, c := range s.clients {
		if p, ok := c.player.(*party); ok && p.name != "" {
			d.sites = append(d.sites, p.name)
		}
	}
	s.deals = append(s.deals, d)
	return d
}

// take takes up a transaction. The coordinator first writes down that it will begin the
// transaction. That takes a while, and then it begins.
func (p *party) take(d *deal) {
	p.deal = d
	if n := p.note(d); p.name == "" && !n.begun {
		n.begun = true
		if p.crashesHere() {
			return
		}
		p.waiting = true
		p.soon(20*millisecond, func() {
			p.waiting = false
			p.drive(commit.NewCoordinator(p.config(false)))
		})
		return
	}
	if p.name == "" {
		p.drive(commit.NewCoordinator(p.config(true)))
		return
	}
	p.drive(commit.NewSite(p.config(p.note(d).prepared)))
}

// config returns the configuration of a party's state machine, from what the party has
// written down.
func (p *party) config(doubt bool) commit.CommitConfig {
	cfg := commit.CommitConfig{Path: p.deal.path, Site: p.name, Patience: p.c.sim.patience()}
	if p.name == "" {
		cfg.Transaction = commit.Transaction{Sites: p.deal.sites, Plain: p.deal.plain}
	}
	switch done := p.note(p.deal).done != commit.Undecided; {
	case !done:
		cfg.Doubt = doubt
	case p.name == "":
		cfg.Finished = true
	default:
		cfg.Finished = p.c.random.chance(50) // otherwise the decision is carried out again, which changes nothing
	}
	return cfg
}

// drive begins to drive a state machine. Without a connection, the coordinator drops the
// transaction and takes it up again when it is connected.
func (p *party) drive(m txMachine) {
	if !p.c.attached && p.name == "" {
		p.deal = nil
		return
	}
	p.m = m
	if p.c.attached {
		p.step(claim.Attached{Session: p.c.session})
	}
}

// step passes an event to the state machine and carries out what the machine asks for.
func (p *party) step(ev claim.Event) {
	m := p.m
	if m == nil {
		return
	}
	m.Step(p.now(), ev)
	rd := m.Ready()
	for _, h := range rd.Happenings {
		p.c.sim.tell("%v", h)
	}
	if s := m.State(); s.Decision != commit.Undecided {
		p.c.sim.see(txLearned{p, p.deal, s.Decision})
	}
	p.ask(rd.Request)
	if p.m != m || p.crashesHere() {
		return
	}
	switch s := m.State(); {
	case s.Phase == commit.TxOver:
		p.ended(s)
	case !p.acting && s.Due():
		p.acting = true
		p.perform(s)
	default:
		p.wake(rd.Wake)
	}
}

// ended handles a state machine that has nothing left to do.
func (p *party) ended(s commit.CommitState) {
	if s.Err != nil {
		p.c.sim.fail("Commits", "%s gives up %s: %v", p.who(), p.deal.path, s.Err)
	}
	d := p.deal
	n := p.note(d)
	n.over = n.done != commit.Undecided
	p.drop()
	p.m, p.deal, p.acting, p.waiting = nil, nil, false, false
	if p.serving == nil {
		p.beginLater()
		return
	}
	p.stepServing(commit.SiteOver{Path: d.path})
}

// perform does what the application would do. That takes a while.
func (p *party) perform(s commit.CommitState) {
	p.soon(20*millisecond, func() {
		if s.Phase == commit.TxPrepare {
			p.prepare()
			return
		}
		p.carry(s.Decision)
	})
}

// prepare votes. A party that has promised to commit votes the same again.
func (p *party) prepare() {
	vote := commit.Commit
	n := p.note(p.deal)
	if !n.prepared && p.c.random.chance(p.refuses) {
		vote = commit.Abort
	}
	if vote == commit.Commit {
		n.prepared = true
		p.c.sim.see(txVoted{p, p.deal})
	}
	p.acting = false
	if !p.crashesHere() {
		p.step(commit.Prepared{Vote: vote})
	}
}

// carry carries out a decision.
func (p *party) carry(d commit.Decision) {
	p.note(p.deal).done = d
	p.c.sim.see(txCarried{p, p.deal, d})
	p.acting = false
	if !p.crashesHere() {
		p.step(commit.Carried{})
	}
}

// crashesHere crashes the party at the step that a scenario has chosen. It reports whether
// it did.
func (p *party) crashesHere() bool {
	if p.points++; p.points != p.crashAt {
		return false
	}
	kind := Kill
	if p.vanish {
		kind = Hang
	}
	p.c.sim.Do(Act{Kind: kind, A: -p.c.id})
	return true
}

// coordinator returns the coordinator of all transactions.
func (s *Sim) coordinator() *party {
	for _, c := range s.clients {
		if p, ok := c.player.(*party); ok && p.name == "" {
			return p
		}
	}
	return nil
}

// allSettled says what is missing until every transaction is decided, carried out and
// removed. A transaction that never began leaves a tombstone.
func (s *Sim) allSettled() string {
	for _, d := range s.deals {
		for _, c := range s.clients {
			if p, ok := c.player.(*party); ok && !p.settled(d) {
				return fmt.Sprintf("%s has not done with %s", p.who(), d.path)
			}
		}
		if why := s.remains(d); why != "" {
			return why
		}
	}
	return ""
}

// remains says what is left of a transaction that is over.
func (s *Sim) remains(d *deal) string {
	var data wire.DataResponse
	var names tree.Listing
	t := s.history.Tree
	if t.GetData(&conn{}, d.path, false, &data) != wire.OK || t.Children(&conn{}, d.path, false, &names) != wire.OK {
		return ""
	}
	if tx, err := commit.ParseTransaction(data.Data); err == nil && len(tx.Sites) == 0 && slices.Equal(names.All(), []string{"decision"}) {
		return "" // only the tombstone is left
	}
	return fmt.Sprintf("%s is still there, with %v", d.path, names.All())
}
