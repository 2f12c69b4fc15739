package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// possibleLeaders: as long as a deadline of a claim has not passed, every server
// that could be elected now has its session, and no end of it in its log,
// committed or not.
type possibleLeaders struct{ sim *Sim }

func (possibleLeaders) Name() string { return "PossibleLeaders" }

func (c possibleLeaders) See(o any) string {
	switch e := o.(type) {
	case check.Ordered:
		return c.logged(c.sim.server(e.Server), e.Duty)
	case termBegan:
		return c.everywhere(e.k)
	case termProven:
		if e.k.holds() {
			return c.everywhere(e.k)
		}
	}
	return ""
}

// logged: a server logs the end of a session.
func (c possibleLeaders) logged(v *server, d *replica.Duty) string {
	for _, t := range d.Append {
		if t.Type != wire.OpCloseSession {
			continue
		}
		for _, o := range c.sim.clients {
			if k := o.candidate; k != nil && o.session == t.Session && k.holds() && v.electable() {
				return fmt.Sprintf("server %d, which could be elected, logs the end of session %v of candidate %d, whose term lasts %v yet",
					v.id, t.Session, o.id, k.line.Left(k.now()))
			}
		}
	}
	return ""
}

// everywhere: a deadline was set or moved.
func (c possibleLeaders) everywhere(k *candidate) string {
	for _, v := range c.sim.servers {
		if v.up && v.electable() && !v.wouldHave(k.c.session) {
			return fmt.Sprintf("server %d, which could be elected, does not have session %v of candidate %d", v.id, k.c.session, k.c.id)
		}
	}
	return ""
}

// electable reports whether a quorum could elect this server: one of servers
// that have no more than it has. One whose disk was wiped elects nobody: it joins
// only a leader that there is, until it has been synchronised.
func (v *server) electable() bool {
	return v.log != nil && v.members != nil && v.members.IsVoter(v.id) && v.members.HasQuorum(func(id ensemble.ServerID) bool {
		o := v.sim.server(id)
		switch {
		case o == nil || o.log == nil || o.unknown && !o.has:
			return false
		case o.saved.Current != v.saved.Current:
			return o.saved.Current < v.saved.Current
		}
		return o.reaches() <= v.reaches()
	})
}

// reaches is the end of the history which a server has applied or ordered to be logged;
// what it has only been told is neither.
func (v *server) reaches() wire.Zxid {
	z := v.tree.LastZxid()
	if n := len(v.knows); n > 0 {
		z = max(z, v.knows[n-1].Zxid)
	}
	return z
}

// wouldHave reports whether a server would have a session if it led with its log.
func (v *server) wouldHave(id wire.SessionID) bool {
	_, lives := v.tree.Session(id)
	for _, t := range v.knows {
		if t.Session == id && t.Type == wire.OpCreateSession {
			lives = true
		}
		if t.Session == id && t.Type == wire.OpCloseSession {
			lives = false
		}
	}
	return lives
}
