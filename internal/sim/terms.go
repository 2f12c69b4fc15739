package sim

import (
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// This file brings about critical moments at the beginning and at the end of terms, which are rare by chance alone. They
// have a random source of their own, so that other draws do not change.

// begins is called when a leader sends NEWLEADER to a learner. Sometimes the nemesis cuts the two of them off from all others,
// and ends the leader when the learner may have adopted the epoch. So the learner has history of an epoch that the
// others, which elect the next leader, have only promised.
func (n *nemesis) begins(leader, learner *server, epoch wire.Epoch) {
	s := n.sim
	if n.terms == nil || s.calm || epoch <= n.lastBegun || s.opt.Voters < splitsVoters || !s.roster.newest.IsVoter(learner.id) {
		return
	}
	n.lastBegun = epoch
	if !n.terms.Chance(8) {
		return
	}
	cut := n.terms.Between(machine.Second, 3*machine.Second)
	for _, o := range s.servers {
		if o != leader && o != learner {
			n.do(Act{Kind: Cut, A: int(leader.id), B: int(o.id)}, cut, Join)
			n.do(Act{Kind: Cut, A: int(learner.id), B: int(o.id)}, cut, Join)
		}
	}
	n.later(n.terms.Between(10*machine.Millisecond, 100*machine.Millisecond), func() { n.do(Act{Kind: Kill, A: int(leader.id)}, cut, Start) })
}

// joinsAhead is called when a leader announces its epoch. If a voter has more history than the leader, because it could not take
// part in the election, it often starts again now and reaches all others, whose disks are slow for a while. So its promise
// is the first one. The leader must not lead such a voter into a term.
func (n *nemesis) joinsAhead(leader *server, epoch wire.Epoch) {
	s := n.sim
	if n.terms == nil || s.calm || epoch <= n.lastJoined {
		return
	}
	n.lastJoined = epoch
	for _, v := range s.servers {
		if v == leader || !s.roster.newest.IsVoter(v.id) || !v.isAhead(leader) || v.up && s.net.through(&v.Host, &leader.Host) {
			continue
		}
		if !n.terms.Chance(40) {
			return
		}
		for _, o := range s.servers {
			if o != v && o != leader {
				n.slowsDown(o, n.terms.Between(150*machine.Millisecond, 400*machine.Millisecond), 600*machine.Millisecond)
			}
		}
		s.Do(Act{Kind: Kill, A: int(v.id)})
		s.Do(Act{Kind: Join, A: int(v.id)})
		s.Do(Act{Kind: Start, A: int(v.id)})
		return
	}
}

// isAhead reports whether a server has more history than another one.
func (v *server) isAhead(o *server) bool {
	if v.tree == nil || v.saved.Current != o.saved.Current {
		return v.saved.Current > o.saved.Current
	}
	return v.reaches() > o.reaches()
}

// slowsDown makes the disk of a server slower for a time, unless it is slow already.
func (n *nemesis) slowsDown(v *server, by, time int64) {
	if v.slowDisk == 0 {
		n.do(Act{Kind: SlowDisk, A: int(v.id), Value: by}, time, SlowDisk)
	}
}

// napsOf is the number of heartbeats of which one is followed by a suspend of its leader, on average.
const napsOf = 1500

// naps is called when a leader sends a heartbeat. With careless clients, its machine is sometimes suspended before the answers are
// taken, for a little longer than its lease.
func (n *nemesis) naps(leader *server) {
	if n.terms == nil || n.sim.calm || n.sim.opt.Careless < 0 || n.terms.Below(napsOf) != 0 {
		return
	}
	n.later(n.terms.Below(100), func() {
		n.do(Act{Kind: Suspend, A: int(leader.id)}, n.terms.Between(600*machine.Millisecond, 950*machine.Millisecond), Awake)
	})
}

// endProposed is called when a leader proposes the end of a session because of its timeout. The careless client of the session,
// if it is connected to another server, sends a ping, and often the end takes a while to be committed.
func (n *nemesis) endProposed(leader *server, session wire.SessionID) {
	slow := n.terms != nil && n.terms.Below(2) == 0
	for _, o := range leader.sim.servers {
		if o == leader {
			continue
		}
		if slow {
			n.slowsDown(o, 40*machine.Millisecond, 100*machine.Millisecond)
		}
		o.clientsOf(session, (*client.Client).PingNow)
	}
}

// namesSilent stops a follower for a while, again and again, and lets the leader transfer leadership to it meanwhile. It does so in
// runs with few requests, because a follower that lacks transactions is named in no case.
func (n *nemesis) namesSilent(d *machine.Random) {
	n.later(d.Between(2*machine.Second, 8*machine.Second), func() {
		l, v := n.sim.leader(), n.sim.servers[d.Below(int64(len(n.sim.servers)))]
		if l != nil && v != l && v.up && !v.paused {
			n.do(Act{Kind: Pause, A: int(v.id)}, 1500*machine.Millisecond, Resume)
			n.later(d.Between(550*machine.Millisecond, 900*machine.Millisecond), func() {
				n.sim.Do(Act{Kind: TransferLeadership, A: int(l.id), B: int(v.id)})
			})
		}
		n.namesSilent(d)
	})
}

// missReconfigurations cuts a server off from all others, again and again, while clients change the membership several times. So
// its log gets several memberships at once.
func (n *nemesis) missReconfigurations(d *machine.Random) {
	n.later(d.Between(machine.Second, 6*machine.Second), func() {
		s := n.sim
		if v := s.servers[d.Below(int64(len(s.servers)))]; s.leader() != nil && s.leader() != v {
			until := d.Between(1500*machine.Millisecond, 3*machine.Second)
			for _, o := range s.servers {
				if o != v {
					n.do(Act{Kind: Cut, A: int(v.id), B: int(o.id)}, until, Join)
				}
			}
			for i := range int64(4) {
				n.later((2*i+1)*150*machine.Millisecond, func() {
					s.Do(Act{Kind: Reconfigure, A: 1 + int(d.Below(int64(len(s.servers)))), Value: n.places(d)})
				})
			}
		}
		n.missReconfigurations(d)
	})
}
