package sim

import (
	"bytes"
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/store"
)

// place is what the newest list says of a server.
type place int64

// The places of a server.
const (
	votes    place = iota // as the field has it: a participant
	observes              // an observer
	absent                // not in the list: its process is not started any more
)

// roster is who belongs to the ensemble, as operators change it who do without
// reconfiguration: with a new list each server is stopped and started, one
// after the other, and meanwhile some go by the old list and some by the new.
// That is safe where each majority of the one list shares a server with each
// of the other, so one voter at a time comes or goes, and the next change waits
// until a leader of the new list was established that nobody went by the old
// one any more to vote for.
type roster struct {
	places []place
	groups int                  // hierarchical quorums: so many groups, 0: none
	light  ensemble.ServerID    // a voter of weight 0
	newest *ensemble.Membership // the list
	moved  int                  // steps when somebody last went over to it
}

// list writes down the list.
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
	m, err := ensemble.Parse(text.String())
	if err != nil {
		panic("sim: " + err.Error())
	}
	return m
}

// voters is how many servers vote by the newest list.
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
		fs: store.NewMem(s.random.next()), snapEvery: int(s.random.between(30, 300)), voices: map[ensemble.ServerID]*voice{},
	}
	v.host = host{name: fmt.Sprint("server ", id), on: true, clock: newClock(s.random.between(-driftMax, driftMax))}
	s.net.add(&v.host)
	s.servers = append(s.servers, v)
	return v
}

// Bounds of what changes of the list make.
const (
	votersMin, votersMax = 3, 7
	serversMax           = 10
)

// consolidated reports whether what was committed under an older list is known
// to those who vote by the newest, by which everybody goes.
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

// settled reports whether another list may follow: everybody has a history
// besides.
func (s *Sim) settled() bool {
	for _, v := range s.servers {
		if !v.absent && !v.has {
			return false
		}
	}
	return s.leader() != nil && s.consolidated()
}

// enrol makes a new list in which one server has another place, and reports
// whether that may be now.
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

// moveOver ends a server's process, which goes by the newest list from its next
// start on.
func (v *server) moveOver() {
	s := v.sim
	if v.absent || v.members == s.roster.newest {
		return
	}
	before := v.members
	v.kill()
	v.members = s.roster.newest
	s.roster.moved = s.steps
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

// mixed reports whether some servers still go by an older list.
func (s *Sim) mixed() bool {
	for _, v := range s.servers {
		if !v.absent && v.members != s.roster.newest {
			return true
		}
	}
	return false
}
