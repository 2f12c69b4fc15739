package sim

import (
	"strings"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// makeCheckers returns the checkers of all rules that are checked at each step.
func (s *Sim) makeCheckers() []check.Checker {
	s.register.Now = func() int64 { return s.now }
	all := append(check.Protocol(&s.history), check.Clients(&s.history, &s.present, s)...)
	return append(all, &s.register)
}

// see shows an observation to all checkers. The first rule that is broken ends the run.
func (s *Sim) see(o any) {
	if s.ended() {
		return
	}
	s.premises.See(o)
	for _, c := range s.checkers {
		wrong := c.See(o)
		if wrong == "" || s.suspended != "" && c.Name() == possibleRule || s.holed() != nil && c.Name() == "EqualDigest" {
			continue
		}
		if !s.excuses(o, c.Name(), wrong) {
			s.fail(c.Name(), "%s", wrong)
		}
		return
	}
}

// LocalResumed and LocalUpgraded count what the checker of local sessions has seen.
func (s *Sim) LocalResumed()  { s.reach(situationLocalResumed) }
func (s *Sim) LocalUpgraded() { s.reach(situationLocalUpgraded) }

// present tells the checkers what is true now. It is a [check.Present].
type present struct {
	*client.Group
	sim     *Sim
	servers []check.Server
	disks   []check.Disk
}

func (p *present) Now() int64 { return p.sim.now }

func (p *present) Recipe() check.Recipe {
	o := &p.sim.opt
	r := check.Recipe{GateSize: p.GateSize(), KazooBarrier: o.Recipe == client.KazooBarrier, LocalSessions: o.LocalSessions > 0, TickMS: o.TickMS, SessionMS: int64(o.SessionTicks) * o.TickMS, RemovalsPerMinute: containersPerMinute}
	if o.Recipe == client.Semaphore {
		r.Leases = o.Leases
	}
	return r
}

func (p *present) Servers() []check.Server {
	p.servers = p.servers[:0]
	for _, v := range p.sim.servers {
		w := check.Server{ID: v.id, Compatible: v.compatible, Up: v.up, Members: v.members, Proposed: v.proposed, Started: v.log != nil, Wiped: (v.unknown || v.forgetful) && !v.has, Current: v.saved.Current, WouldHave: v.wouldHave}
		if v.up && v.sim.opt.Reconfig > 0 { // the middle of a batch may change them
			now := v.replica.Memberships()
			w.Members, w.Proposed = now.Committed, now.Proposed
		}
		if w.Started {
			w.Zxid = v.reaches()
		}
		p.servers = append(p.servers, w)
	}
	return p.servers
}

func (p *present) Disks(history bool) []check.Disk {
	p.disks = p.disks[:0]
	for _, v := range p.sim.servers {
		p.disks = append(p.disks, check.Disk{ID: v.id, Durable: v.onDisk(history)})
	}
	return p.disks
}

func (p *present) Sessions(id ensemble.ServerID) (all []wire.SessionID) {
	p.sim.server(id).tree.Sessions(func(id wire.SessionID, _ int32) { all = append(all, id) })
	return all
}

// reaches returns the zxid at which the history of a server ends: what it has applied or
// ordered to be logged. Proposals that it was only told of do not count.
func (v *server) reaches() wire.Zxid {
	z := v.tree.LastZxid()
	if n := len(v.undelivered); n > 0 {
		z = max(z, v.undelivered[n-1].Zxid)
	}
	return z
}

// wouldHave reports whether a server would have a session if it led with its present log.
func (v *server) wouldHave(id wire.SessionID) bool {
	_, lives := v.tree.Session(id)
	for _, t := range v.undelivered {
		if t.Session == id && t.Type == wire.OpCreateSession {
			lives = true
		}
		if t.Session == id && t.Type == wire.OpCloseSession {
			lives = false
		}
	}
	return lives
}

// recordObservation records an observation of a replica.
func (v *server) recordObservation(h replica.Observation) {
	text := h.String()
	v.sim.tell("server %d: %s", v.id, text)
	v.recordPreference(h)
	switch h := h.(type) {
	case replica.ForwardRefused:
		if v.holds(h.Session) {
			v.sim.fail("Sessions", "server %d closes the connection of session %v because of a refused request, but that request is not of this connection", v.id, h.Session)
		}
	case zab.LeaderServes:
		v.sim.reach(situationLeader)
		v.recordTransfer()
	case replica.TermFailed:
		if !h.Served {
			v.sim.reach(situationTermFailed)
		}
	case zab.TransferBegan:
		v.sim.reach(situationTransfer)
		v.sim.see(check.TransferBegan{Server: v.id, Epoch: h.Epoch, Log: v.log.Last()})
	case zab.WrongTree:
		v.judges(h.Zxid, h.Right, text)
	case zab.Outvoted:
		v.judges(h.Zxid, h.Right, text)
	case election.Abandoned:
		if strings.Contains(h.Why, "leadership transfer") {
			v.sim.reach(situationTransferFailed)
		}
	case zab.SyncBegan:
		if h.How == zab.Snap {
			v.sim.reach(situationSnap)
		}
	case zab.Activated:
		v.sim.reach(situationReconfigured)
	case election.AdoptedMembers:
		v.sim.reach(situationAdopted)
	case tree.DigestMismatch:
		if v.hole != "" || v.sim.spoilt { // the tree of the leader may be the one that has changed
			break
		}
		v.sim.fail("EqualDigest", "%d: %s", v.id, text)
	case zab.GaveUp:
		v.leftSilent(h)
		if strings.Contains(h.Why, "counter") || strings.Contains(h.Why, "zxid") {
			v.sim.reach(situationRollOver)
		}
		if strings.Contains(h.Why, "leadership transfer") {
			v.sim.reach(situationTransferLate)
		}
	}
}

// leftSilent records that a learner has left its leader because of its silence.
func (v *server) leftSilent(h zab.GaveUp) {
	if !strings.Contains(h.Why, "the leader has been silent") {
		return
	}
	for _, l := range v.links {
		if l.id == h.Link {
			v.sim.see(check.LeftSilent{Server: v.id, Leader: l.peer(v), SilentMS: v.at.Mono - l.heard[l.end(v)]})
		}
	}
}

// holds reports whether the leader must accept requests of a session from this server. This server has given the session
// to a connection last, and has seen every move of the session. Under a leader of ZooKeeper a move is no transaction, and
// a follower of ZooKeeper does not look for moves before it gives the session. With them, a late request to
// resume the session, on a connection that the client has given up, can move the session unseen.
func (v *server) holds(id wire.SessionID) bool {
	leader := v.sim.server(v.standing.Leader)
	switch {
	case v.sim.opt.LocalSessions > 0, v.compatible, leader != nil && leader.compatible:
		return false
	}
	return v.sim.attachments[id].server == v
}

// recordTransfer records how an established leader was chosen, perhaps by a leadership transfer.
func (v *server) recordTransfer() {
	all := v.replica.Elections()
	if all[len(all)-1].Decision.Ending == election.Named {
		v.sim.reach(situationAppointed)
	}
	if all[len(all)-1].Decision.Ending != election.LeadershipTransferred {
		return
	}
	v.sim.reach(situationTransferred)
	if v.sim.opt.Compatible > 0 {
		v.sim.reach(situationTransferredMixed)
	}
}
