package sim

import (
	"bellwether/internal/claim"

	"bellwether/internal/claim/commit"
)

// serve has a site take part in whatever transactions there are.
func (p *party) serve() {
	p.serving = commit.NewServing(commit.ServingConfig{Root: txRoot, Most: 1})
	p.stepServing(claim.Attached{Session: p.c.session})
}

// stepServing drives what tells a site the transactions to take part in.
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

// dealAt is the transaction at a path.
func (s *Sim) dealAt(path string) *deal {
	for _, d := range s.deals {
		if d.path == path {
			return d
		}
	}
	return nil
}
