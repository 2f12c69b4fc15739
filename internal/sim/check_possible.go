package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// possibleLeaders checks that, as long as a deadline of a claim has not passed, every
// server that could be elected now has the claim's session, and that its log contains no
// end of that session, committed or not.
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

// logged checks a server that logs the end of a session.
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

// everywhere checks all electable servers after a deadline was set or moved.
func (c possibleLeaders) everywhere(k *candidate) string {
	for _, v := range c.sim.servers {
		if v.up && v.electable() && !v.wouldHave(k.c.session) {
			return fmt.Sprintf("server %d, which could be elected, does not have session %v of candidate %d", v.id, k.c.session, k.c.id)
		}
	}
	return ""
}

// electable reports whether a quorum could elect this server. A quorum can, if none of its
// members has more history than this server. A server whose disk was wiped elects nobody:
// until it has been synchronised, it only joins a leader that others have elected.
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

// reaches returns the zxid at which the history of a server ends: what it has applied or
// ordered to be logged. Proposals that it was only told of do not count.
func (v *server) reaches() wire.Zxid {
	z := v.tree.LastZxid()
	if n := len(v.knows); n > 0 {
		z = max(z, v.knows[n-1].Zxid)
	}
	return z
}

// wouldHave reports whether a server would have a session if it led with its present log.
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
