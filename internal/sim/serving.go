package sim

import (
	"bellwether/internal/claim"

	"bellwether/internal/claim/commit"
)

// serve makes a site take part in all transactions that exist.
func (p *party) serve() {
	p.serving = commit.NewServing(commit.ServingConfig{Root: txRoot, Most: 1})
	p.stepServing(claim.Attached{Session: p.c.session})
}

// stepServing drives the state machine that tells a site in which transactions to take
// part.
func (p *party) stepServing(ev claim.Event) {
	m := p.serving
	if m == nil {
		return
	}
	m.Step(p.looks.now(), ev)
	rd := m.Ready()
	p.looks.ask(rd.Request)
	for _, op := range rd.Start {
		p.take(p.c.sim.dealAt(op.Path))
	}
	switch {
	case p.serving != m:
	case m.Over():
		p.c.sim.fail("Commits", "%s serves no more: %v", p.who(), m.Err())
	default:
		p.looks.wake(rd.Wake)
	}
}

// dealAt returns the transaction at a path.
func (s *Sim) dealAt(path string) *deal {
	for _, d := range s.deals {
		if d.path == path {
			return d
		}
	}
	return nil
}
