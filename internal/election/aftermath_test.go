package election

import (
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// synchronise does what Zab does after an election: if a leader's followers are a quorum,
// it serves a new epoch, and they all get its history.
func (w *world) synchronise(leader *server) bool {
	if leader.decision == nil || leader.decision.State != peerwire.Leading || leader.serving {
		return false
	}
	with := w.followers(leader)
	if !leader.members.HasQuorum(func(id ensemble.ServerID) bool { return slices.Contains(with, id) }) {
		return false
	}
	epoch := wire.Epoch(0)
	for _, id := range with {
		epoch = max(epoch, w.servers[id].look.Epoch)
	}
	w.tellf("%d serves epoch %d with %s", leader.id, epoch+1, list(with))
	for _, id := range with {
		s := w.servers[id]
		s.look.Zxid, s.look.Epoch, s.serving, s.look.Failed = leader.look.Zxid, epoch+1, true, nil
		w.step(s, Joined{})
		w.step(s, Established{epoch + 1})
	}
	return true
}

// followers returns the leader and the servers that can be its learners now.
func (w *world) followers(leader *server) []ensemble.ServerID {
	var with []ensemble.ServerID
	for _, id := range w.ids() {
		s := w.servers[id]
		if s.alive && s.decision != nil && s.decision.Vote.Leader == leader.id && !w.cut[pair(id, leader.id)] && (s == leader || !leader.filtered) {
			with = append(with, id)
		}
	}
	return with
}

// roles makes each server whose leader or followers have failed look again.
func (w *world) roles() {
	for _, id := range w.ids() {
		s := w.servers[id]
		if !s.alive || s.decision == nil {
			continue
		}
		again := func(why string) {
			s.noteFailed(w.now)
			w.lookAgain(s, why)
		}
		if s.giveUp != "" {
			again(s.giveUp)
			continue
		}
		leader := w.servers[s.decision.Vote.Leader]
		has := func(id ensemble.ServerID) bool { return slices.Contains(w.followers(s), id) }
		leads := leader.alive && leader.decision != nil && leader.decision.State == peerwire.Leading && (s == leader || !leader.filtered)
		switch {
		case s == leader && w.now-s.since > 3000 && !s.members.HasQuorum(has):
			again("no quorum follows")
		case s != leader && (!leads || w.cut[pair(id, leader.id)]) && (s.serving || w.now-s.since > s.dialTime()):
			again("the leader is gone")
		case s != leader && leads && leader.serving && !s.serving:
			w.tellf("%d is synchronised by %d", s.id, leader.id)
			s.look.Zxid, s.look.Epoch, s.serving, s.look.Failed = leader.look.Zxid, leader.look.Epoch, true, nil
			w.step(s, Established{leader.look.Epoch})
		case s == leader && !s.serving:
			w.synchronise(s)
		}
	}
}

// noteFailed makes a native server remember the term that it leaves, if that term has not served. The times are
// those of internal/replica.
func (s *server) noteFailed(now int64) {
	if s.foreign || s.decision == nil || s.serving || s.look.Abstains {
		return
	}
	f := Failed{Candidate: s.decision.Vote.Leader}
	all := slices.DeleteFunc(slices.Clone(s.look.Failed), func(o Failed) bool {
		if o.Candidate != f.Candidate {
			return false
		}
		f.Times = max(f.Times, o.Times)
		return true
	})
	f.Times++
	if f.Times > 1 {
		f.Again = now + min(int64(10)<<min(f.Times-2, 7), 1000)
	}
	f.Round, f.Epoch = s.decision.Round, s.decision.Vote.PeerEpoch
	all = append(all, f)
	for i := range all { // each failed term begins all pauses again
		all[i].Until = now + min(int64(1000)<<min(all[i].Times-1, 5), 30_000)
	}
	s.look.Failed = all
}

// dialTime returns how long a learner dials a leader that does not lead.
func (s *server) dialTime() int64 {
	if s.foreign {
		return 400
	}
	return 2500
}

// agreed reports whether all servers that are up have the same serving leader.
func (w *world) agreed() bool {
	leader := peerwire.NoServer
	for _, id := range w.ids() {
		s := w.servers[id]
		if !s.alive {
			continue
		}
		if s.decision == nil || !s.serving || leader != peerwire.NoServer && leader != s.decision.Vote.Leader {
			return false
		}
		leader = s.decision.Vote.Leader
	}
	return leader != peerwire.NoServer && w.servers[leader].alive && w.servers[leader].decision.State == peerwire.Leading
}

// converge runs without faults for at most ms.
func (w *world) converge(ms int64) bool {
	for range ms {
		for _, k := range w.busy() {
			for w.deliver(k[0], k[1]) {
			}
		}
		w.roles()
		if w.agreed() {
			return true
		}
		w.pass(1)
	}
	return false
}
