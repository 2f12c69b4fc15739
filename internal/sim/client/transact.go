package client

import (
	"fmt"
	"slices"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
)

// Transaction is one transaction of a run, as the simulator knows it.
type Transaction struct {
	Path  string
	Plain bool
	Sites []string
}

// Party is the coordinator of all transactions, or one of their sites. It works on one
// transaction after the other. A site first takes those that it is in doubt about, and then
// those that its commit.Serving names.
type Party struct {
	Runner
	name  string // empty for the coordinator
	m     txMachine
	deal  *Transaction
	notes map[*Transaction]*Note

	serving *commit.Serving
	looks   Runner // sends the requests of serving

	acting  bool
	waiting bool    // it waits to search for another transaction
	Refuses float64 // percent of the transactions that it votes to abort
}

// Note holds what a party has written down about a transaction. It survives a crash.
type Note struct {
	Begun    bool // coordinator: the transaction may exist
	Prepared bool // site: it has promised to commit
	Done     commit.Decision
	Over     bool // coordinator: nothing is left to do
}

// txMachine is a commit.Site or a commit.Coordinator.
type txMachine interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	State() commit.State
}

func newParty(c *Client, name string) *Party {
	p := &Party{name: name, notes: map[*Transaction]*Note{}, Refuses: 10}
	p.Runner = Runner{c: c, step: p.step}
	p.looks = Runner{c: c, step: p.stepServing}
	return p
}

// Who returns the name of a party for messages.
func (p *Party) Who() string { return check.Party(p.name) }

func (p *Party) attached() {
	p.stepServing(claim.Attached{Session: p.c.Session})
	if p.m == nil {
		p.begin()
		return
	}
	p.step(claim.Attached{Session: p.c.Session})
}

func (p *Party) disconnected() { p.stepServing(claim.Disconnected{}); p.Runner.disconnected() }
func (p *Party) expired()      { p.stepServing(claim.Expired{}); p.Runner.expired() }

// crashed drops everything that the party has not written down.
func (p *Party) crashed() {
	p.drop()
	p.looks.drop()
	p.m, p.deal, p.serving, p.acting, p.waiting = nil, nil, nil, false, false
}

// Working reports whether the party works on a transaction.
func (p *Party) Working() bool { return p.m != nil }

// Note returns what the party has written down about a transaction.
func (p *Party) Note(d *Transaction) *Note {
	n := p.notes[d]
	if n == nil {
		n = &Note{}
		p.notes[d] = n
	}
	return n
}

// begin takes up a transaction. The coordinator takes the oldest one that it has not ended,
// or a new one. A site takes the oldest one that it is in doubt about, or begins to serve.
func (p *Party) begin() {
	if p.waiting || p.serving != nil {
		return
	}
	s := p.c.group
	var next *Transaction
	for _, d := range s.Transactions {
		if p.owes(d) {
			next = d
			break
		}
	}
	if next == nil && p.name == "" && !(s.Phase().Calm && s.Phase().Quiet) {
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
func (p *Party) owes(d *Transaction) bool {
	n := p.Note(d)
	if p.name == "" {
		return !n.Over
	}
	return n.Prepared && n.Done == commit.Undecided
}

// settled reports whether a party has nothing left to do for this transaction.
func (p *Party) settled(d *Transaction) bool {
	if p.name == "" {
		return !p.owes(d)
	}
	return p.deal != d && (p.Note(d).Done != commit.Undecided || !p.owes(d) && p.c.group.Coordinator().settled(d))
}

// beginLater searches again after a while.
func (p *Party) beginLater() {
	p.waiting = true
	life := p.life
	p.c.group.After(p.c.random.Below(200*machine.Millisecond), func() {
		if p.life != life {
			return
		}
		p.waiting = false
		if p.m == nil && p.c.Attached && !p.c.Hung {
			p.begin()
		}
	})
}

// VoteTimeout returns how long parties wait for votes.
func (s *Group) VoteTimeout() time.Duration {
	return time.Duration(2*s.Settings().SessionMS) * time.Millisecond
}

// newDeal returns the next transaction, of either kind, with all sites.
func (s *Group) newDeal() *Transaction {
	d := &Transaction{Path: fmt.Sprintf("%s/%s%d", check.TxRoot, claim.TxPrefix, len(s.Transactions)+1), Plain: s.Random().Chance(50)}
	for _, c := range s.All {
		if p, ok := c.Player.(*Party); ok && p.name != "" {
			d.Sites = append(d.Sites, p.name)
		}
	}
	s.Transactions = append(s.Transactions, d)
	return d
}

// take takes up a transaction. The coordinator first writes down that it will begin the
// transaction. That takes a while, and then it begins.
func (p *Party) take(d *Transaction) {
	p.deal = d
	if n := p.Note(d); p.name == "" && !n.Begun {
		n.Begun = true
		if p.c.crashesHere() {
			return
		}
		p.waiting = true
		p.soon(20*machine.Millisecond, func() {
			p.waiting = false
			p.drive(commit.NewCoordinator(p.config(false)))
		})
		return
	}
	if p.name == "" {
		p.drive(commit.NewCoordinator(p.config(true)))
		return
	}
	p.drive(commit.NewSite(p.config(p.Note(d).Prepared)))
}

// config returns the configuration of a party's state machine, from what the party has
// written down.
func (p *Party) config(doubt bool) commit.Config {
	cfg := commit.Config{Path: p.deal.Path, Site: p.name, Patience: p.c.group.VoteTimeout()}
	if p.name == "" {
		cfg.Transaction = commit.Transaction{Sites: p.deal.Sites, Plain: p.deal.Plain}
	}
	switch done := p.Note(p.deal).Done != commit.Undecided; {
	case !done:
		cfg.Doubt = doubt
	case p.name == "":
		cfg.Finished = true
	default:
		cfg.Finished = p.c.random.Chance(50) // otherwise the decision is carried out again, which changes nothing
	}
	return cfg
}

// drive begins to drive a state machine. Without a connection, the coordinator drops the
// transaction and takes it up again when it is connected.
func (p *Party) drive(m txMachine) {
	if !p.c.Attached && p.name == "" {
		p.deal = nil
		return
	}
	p.m = m
	if p.c.Attached {
		p.step(claim.Attached{Session: p.c.Session})
	}
}

// step passes an event to the state machine and carries out what the machine asks for.
func (p *Party) step(ev claim.Event) {
	m := p.m
	if m == nil {
		return
	}
	m.Step(p.now(), ev)
	rd := m.Ready()
	for _, h := range rd.Observations {
		p.c.group.Tell("%v", h)
	}
	if s := m.State(); s.Decision != commit.Undecided {
		p.c.group.See(check.Learned{Path: p.deal.Path, Site: p.name, Decision: s.Decision})
	}
	p.request(rd.Request)
	if p.m != m || p.c.crashesHere() {
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
func (p *Party) ended(s commit.State) {
	if s.Err != nil {
		p.c.group.Fail("Commits", "%s gives up %s: %v", p.Who(), p.deal.Path, s.Err)
	}
	d := p.deal
	n := p.Note(d)
	n.Over = n.Done != commit.Undecided
	p.drop()
	p.m, p.deal, p.acting, p.waiting = nil, nil, false, false
	if p.serving == nil {
		p.beginLater()
		return
	}
	p.stepServing(commit.SiteOver{Path: d.Path})
}

// perform does what the application would do. That takes a while.
func (p *Party) perform(s commit.State) {
	p.soon(20*machine.Millisecond, func() {
		if s.Phase == commit.TxPrepare {
			p.prepare()
			return
		}
		p.carry(s.Decision)
	})
}

// prepare casts the party's vote. If the party has voted to commit before, it votes to commit again.
func (p *Party) prepare() {
	vote := commit.Commit
	n := p.Note(p.deal)
	if !n.Prepared && p.c.random.Chance(p.Refuses) {
		vote = commit.Abort
	}
	if vote == commit.Commit {
		n.Prepared = true
		p.c.group.See(check.Voted{Path: p.deal.Path, Site: p.name, Sites: p.deal.Sites})
	}
	p.acting = false
	if !p.c.crashesHere() {
		p.step(commit.Prepared{Vote: vote})
	}
}

// carry carries out a decision.
func (p *Party) carry(d commit.Decision) {
	p.Note(p.deal).Done = d
	p.c.group.See(check.CarriedOut{Path: p.deal.Path, Site: p.name, Sites: p.deal.Sites, Decision: d})
	p.acting = false
	if !p.c.crashesHere() {
		p.step(commit.Carried{})
	}
}

// Coordinator returns the coordinator of all transactions.
func (s *Group) Coordinator() *Party {
	for _, c := range s.All {
		if p, ok := c.Player.(*Party); ok && p.name == "" {
			return p
		}
	}
	return nil
}

// TransactionsLeft says what is missing until every transaction is decided, carried out and
// removed. A transaction that never began leaves a tombstone.
func (s *Group) TransactionsLeft() string {
	for _, d := range s.Transactions {
		for _, c := range s.All {
			if p, ok := c.Player.(*Party); ok && !p.settled(d) {
				return fmt.Sprintf("%s has not finished %s", p.Who(), d.Path)
			}
		}
		if why := s.remains(d); why != "" {
			return why
		}
	}
	return ""
}

// remains says what is left of a transaction that is over.
func (s *Group) remains(d *Transaction) string {
	data, _, there := s.History().Content(d.Path)
	if !there {
		return ""
	}
	names := s.History().Names(d.Path)
	if tx, err := commit.ParseTransaction(data); err == nil && len(tx.Sites) == 0 && slices.Equal(names, []string{"decision"}) {
		return "" // only the tombstone is left
	}
	return fmt.Sprintf("%s still exists, with %v", d.Path, names)
}
