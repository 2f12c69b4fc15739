package sim

import (
	"bytes"
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
)

// place is what the newest list says of a server.
type place int64

// The places of a server.
const (
	votes    place = iota // a participant
	observes              // an observer
	absent                // not in the list: its process is not started again
)

// roster is the membership of the ensemble. Operators change it without reconfiguration:
// there is a new list, and each server is stopped and started with it, one after the other.
// Meanwhile some servers use the old list and some the new one.
//
// That is safe if each majority of one list shares a server with each majority of the
// other. So only one voter comes or goes at a time. The next change waits until a leader
// was established after the last server had left the old list.
type roster struct {
	places []place
	groups int                  // number of groups of hierarchical quorums; 0: none
	light  ensemble.ServerID    // the voter with weight 0
	heavy  ensemble.ServerID    // the voter with weight 3; 0: there is none
	newest *ensemble.Membership // the newest list of servers
	moved  int                  // value of steps when a server last began to use the newest list
}

// list returns the newest list of servers as a membership.
func (r *roster) list() *ensemble.Membership {
	var text bytes.Buffer
	groups := make([]string, r.groups)
	for i, p := range r.places {
		switch p {
		case votes:
			fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:participant\n", i+1, 1001+i, 2001+i)
			if r.groups > 0 {
				groups[i%r.groups] += fmt.Sprintf(":%d", i+1)
			}
		case observes:
			fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:observer\n", i+1, 1001+i, 2001+i)
		}
	}
	for i, g := range groups {
		fmt.Fprintf(&text, "group.%d=%s\n", i+1, g[1:])
	}
	if r.light > 0 {
		fmt.Fprintf(&text, "weight.%d=0\n", r.light)
	}
	if r.heavy > 0 {
		fmt.Fprintf(&text, "weight.%d=3\n", r.heavy)
	}
	m, err := ensemble.Parse(text.String())
	if err != nil {
		panic("sim: " + err.Error())
	}
	return m
}

// voters returns how many servers vote by the newest list.
func (r *roster) voters() (n int) {
	for _, p := range r.places {
		if p == votes {
			n++
		}
	}
	return n
}

// newServer makes the next machine, without a process.
func (s *Sim) newServer() *server {
	id := ensemble.ServerID(len(s.servers) + 1)
	v := &server{
		sim: s, id: id, members: s.roster.newest, compatible: int(id) <= s.opt.Compatible, space: -1,
		fs: store.NewMem(s.random.Next()), snapEvery: int(s.random.Between(30, 300)), electionConns: map[ensemble.ServerID]*electionConn{},
	}
	v.Host = machine.Host{Name: fmt.Sprint("server ", id), On: true, Clock: machine.NewClock(s.random.Between(-driftMax, driftMax))}
	s.net.add(&v.Host)
	s.servers = append(s.servers, v)
	return v
}

// votersMin, votersMax and serversMax bound the changes of the list.
const (
	votersMin, votersMax = 3, 7
	serversMax           = 10
)

// consolidated reports whether all servers use the newest list and a quorum of its voters knows
// what was committed under an older one: some server began to serve after the last change.
func (s *Sim) consolidated() bool {
	if s.mixed() {
		return false
	}
	for _, v := range s.servers {
		if s.roster.moved == 0 || v.served > s.roster.moved {
			return true
		}
	}
	return false
}

// settled reports whether the list may change again: consolidated is true, each server has
// a history, and there is a leader.
func (s *Sim) settled() bool {
	for _, v := range s.servers {
		if !v.absent && (!v.has || v.rotten) {
			return false
		}
	}
	return s.leader() != nil && s.consolidated()
}

// enrol makes a new list in which one server has another place. It reports whether such a
// change was allowed now.
func (s *Sim) enrol(id int, p place) bool {
	r := &s.roster
	if r.groups > 0 || id < 1 || id > len(r.places)+1 || id > serversMax || !s.settled() {
		return false
	}
	added := id > len(r.places)
	switch {
	case added && p == absent, !added && (r.places[id-1] == p || r.places[id-1] == absent):
		return false
	case p == votes && r.voters() == votersMax, p != votes && !added && r.places[id-1] == votes && r.voters() == votersMin:
		return false
	}
	if added {
		r.places = append(r.places, p)
		v := s.newServer()
		v.unknown = true
		v.members = nil
	} else {
		r.places[id-1] = p
	}
	r.newest = r.list()
	return true
}

// moveOver ends a server's process. From its next start on, the server uses the newest
// list.
func (v *server) moveOver() {
	s := v.sim
	if v.absent || v.members == s.roster.newest || s.opt.Reconfig > 0 {
		return
	}
	before := v.members
	v.kill()
	v.members = s.roster.newest
	s.roster.moved = s.steps
	s.weigh()
	switch p := s.roster.places[v.id-1]; {
	case p == absent:
		v.absent = true
		s.reach(situationRetired)
	case before == nil:
		s.reach(situationAdded)
	case p == votes && !before.IsVoter(v.id):
		s.reach(situationPromoted)
	case p != votes && before.IsVoter(v.id):
		s.reach(situationDemoted)
	}
}

// mixed reports whether some servers still use an older list.
func (s *Sim) mixed() bool {
	if s.opt.Reconfig > 0 {
		return s.inDoubt()
	}
	for _, v := range s.servers {
		if !v.absent && v.members != s.roster.newest {
			return true
		}
	}
	return false
}

// leader returns the established leader of the latest epoch; nil: there is none.
func (s *Sim) leader() (found *server) {
	for _, v := range s.servers {
		if v.up && v.leads() && (found == nil || v.standing.Epoch > found.standing.Epoch) {
			found = v
		}
	}
	return found
}
