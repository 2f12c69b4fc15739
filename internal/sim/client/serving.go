package client

import (
	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/internal/sim/check"
)

// serve makes a site take part in all transactions that exist.
func (p *Party) serve() {
	p.serving = commit.NewServing(commit.ServingConfig{Root: check.TxRoot, Most: 1})
	p.stepServing(claim.Attached{Session: p.c.Session})
}

// stepServing drives the state machine that tells a site in which transactions to take
// part.
func (p *Party) stepServing(ev claim.Event) {
	m := p.serving
	if m == nil {
		return
	}
	m.Step(p.looks.now(), ev)
	rd := m.Ready()
	p.looks.request(rd.Request)
	for _, op := range rd.Start {
		p.take(p.c.group.dealAt(op.Path))
	}
	switch {
	case p.serving != m:
	case m.Over():
		p.c.group.Fail("Commits", "%s serves no more: %v", p.Who(), m.Err())
	default:
		p.looks.wake(rd.Wake)
	}
}

// Serves reports whether a site is connected and knows which transactions there are.
func (p *Party) Serves() bool {
	return p.c.Attached && p.serving != nil && p.looks.answered == p.looks.round
}

// dealAt returns the transaction at a path.
func (s *Group) dealAt(path string) *Transaction {
	for _, d := range s.Transactions {
		if d.Path == path {
			return d
		}
	}
	return nil
}
