package replica

import (
	"bellwether/internal/election"
	"bellwether/wire"
)

// A leader may not take a server in, however often it is asked: one of Apache
// ZooKeeper leads on in an epoch older than the server has promised, and one of
// any kind closes what it cannot agree with. To look for a leader is to be told
// of the same one. The second attempt comes at once, for the first may have met
// the leader at its beginning; those behind it after pauses that grow. In a pause
// the server looks for a leader, so that whatever the others elect counts on it.
const (
	vainMinMS = 10
	vainMaxMS = 1000 // below readOnlyGraceMin, so that this is no time without a leader
)

// vain counts the terms under one leader that ended before they served.
type vain struct {
	leader       wire.ServerID
	round, epoch wire.Epoch
	times        int
}

// note counts one more.
func (v *vain) note(d election.Decision) {
	if d.Vote.Leader != v.leader || d.Round > v.round || d.Vote.PeerEpoch > v.epoch {
		*v = vain{leader: d.Vote.Leader, round: d.Round, epoch: d.Vote.PeerEpoch}
	}
	v.times++
}

// until is what an election that begins now is to leave alone.
func (v *vain) until(now int64) election.Vain {
	if v.times < 2 {
		return election.Vain{}
	}
	pause := min(vainMinMS<<min(v.times-2, 10), vainMaxMS)
	return election.Vain{Leader: v.leader, Round: v.round, Epoch: v.epoch, Until: now + int64(pause)}
}

// Vain reports whether this server has tried more than once to join the leader
// that there is, and was not taken in.
func (r *Replica) Vain() bool { return r.member != nil && r.member.vain.times > 1 }
