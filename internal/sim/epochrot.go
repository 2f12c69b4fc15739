package sim

import (
	"path/filepath"

	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
)

// This file is about epoch files that decay. A file that is empty or holds no number makes
// the server refuse to start, and its disk is replaced. So does a currentEpoch above
// acceptedEpoch. Another number that is too small makes the server forget a promise, which
// lies.go weighs. A number that is too large in acceptedEpoch only makes the next epoch
// larger, unless the server is no member: then it can follow no leader of an earlier epoch, and an
// operator replaces its disk. Nothing can detect a currentEpoch that is too large and not above acceptedEpoch:
// the server then claims a history that it does not have. A run ends when that happens.

// epochRotMax is the largest amount of the act: it flips bits of the first ten characters.
const epochRotMax = 2*(10*8+1) - 1

// rotEpoch lets an epoch file decay, if the others can do without the disk.
func (v *server) rotEpoch(how int64) {
	path := filepath.Join(historyDir, []string{"currentEpoch", "acceptedEpoch"}[how%2])
	if v.store == nil || v.blank || !v.expendable() {
		return
	}
	hit, bit := false, how/2-1
	if bit < 0 {
		hit = v.fs.Empty(path)
	} else {
		hit = v.fs.Rot(path, bit/8, uint(bit%8))
	}
	if hit {
		v.rotten, v.epochRotten = true, true
		v.sim.reach(situationEpochDecayed)
		v.sim.tell("server %d: %s decays", v.id, filepath.Base(path))
	}
}

// noteEpochs compares decayed epoch files, which a server has just read, with what it had
// promised.
func (v *server) noteEpochs(has store.Epochs) {
	if !v.epochRotten {
		return
	}
	v.epochRotten = false
	if has.Current > v.saved.Current {
		v.sim.reach(situationEpochTooLarge)
		v.sim.endEarly("the decayed currentEpoch of a server is too large, and nothing can detect that")
		return
	}
	if !v.lied && (has.Current < v.saved.Current || has.Accepted < v.saved.Accepted) {
		v.claims = promise{v.durable(), max(v.claims.accepted, v.saved.Accepted), v.saved.Current}
		v.lied = true // begin weighs what is lost
	}
}

// replaceAhead replaces the disk of a server that is no member and has promised a later epoch than that of the leader.
// Only members raise the epoch.
func (v *server) replaceAhead() {
	l := v.sim.leader()
	if l == nil || !v.up || !v.expendable() || v.saved.Accepted <= l.standing.Epoch {
		return
	}
	if _, member := v.sim.roster.newest.Server(v.id); member {
		return // the leader ends its term
	}
	v.sim.tell("server %d has promised epoch %d, and is no member for which the leader of epoch %d would end its term", v.id, v.saved.Accepted, l.standing.Epoch)
	v.kill()
	v.wipe()
}

// rotEpochs makes epoch files decay, again and again. The servers that are hit are started
// again soon.
func (n *nemesis) rotEpochs(d *machine.Random) {
	n.later(d.Between(500*machine.Millisecond, 6*machine.Second), func() {
		a := Act{Kind: RotEpoch, A: 1 + int(d.Below(int64(len(n.sim.servers)))), Value: d.Below(2*8 + 2)}
		n.sim.Do(a)
		n.later(d.Below(2*machine.Second), func() {
			n.do(Act{Kind: PowerOff, A: a.A}, d.Between(100*machine.Millisecond, 2*machine.Second), Start)
		})
		n.rotEpochs(d)
	})
}
