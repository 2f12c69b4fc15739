package zab

import "bellwether/internal/ensemble"

// memberships are the memberships that a server has to count with. They follow from what
// the log contains and from what is known to be committed.
//
// Invariants: proposed is nil or newer than committed. Both are nil if the membership is
// not tracked, because reconfiguration is disabled.
type memberships struct {
	committed *ensemble.Membership // the newest one that is known to be committed
	proposed  *ensemble.Membership // the newest one in the log
}

// Configure records a committed membership. The first call begins to track memberships.
// An older one than the present one is ignored.
func (g *Log) Configure(committed *ensemble.Membership) {
	if g.committed == nil || committed.Version() > g.committed.Version() {
		g.committed = committed
	}
	if g.proposed != nil && g.proposed.Version() <= g.committed.Version() {
		g.proposed = nil
	}
}

// Propose records a membership that the history contains or that a leader begins with,
// and that is not known to be committed. A leader proposes a reconfiguration only after
// the one before is committed, so an earlier proposed membership is then committed. A
// version with counter 0 is not that of a reconfiguration: each leader of servers that have
// only their files gives one to its membership.
func (g *Log) Propose(m *ensemble.Membership) {
	if g.committed == nil || m.Version() <= g.committed.Version() {
		return
	}
	if p := g.proposed; p != nil {
		if m.Version() <= p.Version() {
			return
		}
		if uint32(m.Version()) != 0 {
			g.committed = p
		}
	}
	g.proposed = m
}

// Memberships returns the committed membership, and the proposed one or nil. Both are nil
// if Configure was never called.
func (g *Log) Memberships() (committed, proposed *ensemble.Membership) {
	return g.committed, g.proposed
}

// forgetAbove drops the proposed membership if the log now ends before it.
func (m *memberships) forgetAbove(last int64) {
	if m.proposed != nil && m.proposed.Version() > last {
		m.proposed = nil
	}
}
