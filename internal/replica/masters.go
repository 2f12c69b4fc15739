package replica

import (
	"fmt"
	"slices"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// An observer can learn from any follower that serves observers instead of from the leader
// (Member.ObserverMasters). It tries the followers one after the other at their observer
// master ports. When it has tried all of them masterRounds times, it tries the leader once at the
// quorum port, and continues with the followers. The first follower depends on the observer's id,
// so that the observers of an ensemble are spread evenly. It passes over followers that the election
// knows to be down. A lost master is followed by the next follower, under the same leader.
//
// An observer that changes its master within an epoch closes the connections that have requests in
// flight, as after any change within an epoch (keep.go). Its leader takes nothing any more that
// comes through the former master (zab, route.go).
const (
	// masterTryMS is how long a server is dialled before the next one is tried. It doubles with
	// each round through all servers, up to masterTryMaxMS, because a handshake may take long.
	masterRounds   = 3
	masterTryMS    = 300
	masterTryMaxMS = 2000
	// masterPauseMS and masterPauseMaxMS bound the pause after a master that has ended the connection
	// before it has said anything. The pause doubles with each round.
	masterPauseMS    = 10
	masterPauseMaxMS = 1000
)

// masters holds which server an observer tries.
type masters struct {
	next   int                        // the place of the next follower among the followers
	tries  int                        // how many followers were tried since the last term that served, or since the leader was tried
	rounds int                        // how often all followers were tried since the last term that served
	at     ensemble.ServerID          // the server of this attempt, or of this term; NoServer: not chosen yet
	until  int64                      // Mono time at which the next server is tried
	leader bool                       // the leader is tried next, if it still leads, because the tree of this observer differs (askLeader)
	down   map[ensemble.ServerID]bool // the servers that the election has reported as down since it last heard from them
}

// heard notes what an event of the election says about whether a server is down.
func (s *masters) heard(e election.Event) {
	switch e := e.(type) {
	case election.Down:
		if s.down == nil {
			s.down = map[ensemble.ServerID]bool{}
		}
		s.down[e.Server] = true
	case election.Up:
		delete(s.down, e.Server)
	case election.Heard:
		delete(s.down, e.From)
	}
}

// usesMasters reports whether this server is an observer that learns from followers.
func (m *member) usesMasters() bool { return m.opt.ObserverMasters && m.role == peerwire.Observing }

// usesMaster reports whether the server that this one dials or is linked to is an observer
// master.
func (m *member) usesMaster() bool { return m.usesMasters() && m.master() != m.decision.Vote.Leader }

// master returns the server that this learner dials or is linked to.
func (m *member) master() ensemble.ServerID {
	if m.usesMasters() && m.masters.at != peerwire.NoServer {
		return m.masters.at
	}
	return m.decision.Vote.Leader
}

// dials returns the server to be dialled, and whether its observer master port is meant.
func (r *Replica) dials() (id ensemble.ServerID, master bool) {
	m := r.member
	if m.usesMasters() && (m.masters.at == peerwire.NoServer || r.now.Mono >= m.masters.until) {
		r.chooseMaster()
	}
	return m.master(), m.usesMaster()
}

// chooseMaster chooses the next server.
func (r *Replica) chooseMaster() {
	m := r.member
	s, leader := &m.masters, m.decision.Vote.Leader
	ring := slices.DeleteFunc(slices.Clone(m.memberships().Committed.Voters()), func(id ensemble.ServerID) bool { return id == leader })
	s.until = r.now.Mono + doubled(masterTryMS, s.rounds, masterTryMaxMS)
	if s.leader || s.tries >= masterRounds*len(ring) { // the ring may be empty, or smaller than before
		if !s.leader && len(ring) > 0 {
			r.observe(NoMaster{Tried: ring, Leader: leader})
		}
		s.at, s.tries, s.leader = leader, 0, false
		return
	}
	first := int(r.opt.ServerID % ensemble.ServerID(len(ring)))
	for range ring { // if all seem to be down, the last one is dialled nevertheless
		s.at = ring[(first+s.next)%len(ring)]
		s.next++
		if s.tries++; s.tries%len(ring) == 0 {
			s.rounds++
		}
		if !s.down[s.at] {
			return
		}
	}
}

// nextMaster goes on with the next server after a pause, because the present one has ended the
// connection at once.
func (r *Replica) nextMaster() {
	m := r.member
	m.masters.at = peerwire.NoServer
	m.redial = redial{at: r.now.Mono + doubled(masterPauseMS, m.masters.rounds, masterPauseMaxMS), by: Never}
}

// mastersWake returns the Mono time at which the next server is to be tried; Never if none is
// dialled.
func (m *member) mastersWake(now int64) int64 {
	if m.learner != nil || !m.usesMasters() || now < m.redial.at {
		return Never
	}
	return m.masters.until
}

// NoMaster says that this observer tries the leader, because no follower has accepted it as an observer.
type NoMaster struct {
	Tried  []ensemble.ServerID
	Leader ensemble.ServerID
}

func (h NoMaster) String() string {
	return fmt.Sprintf("no server of %v accepts this observer at the port observerMasterPort; it tries the quorum port of the leader, server %d", h.Tried, h.Leader)
}
