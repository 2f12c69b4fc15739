package sim

import (
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// splitsVoters is the least number of voters that have a quorum without two of them.
const splitsVoters = 5

// announced is called when a leader announces its epoch to a learner. Sometimes the nemesis cuts the two of them off
// from all others, and then ends the leader. So the learner has promised an epoch that the others do not know, and
// that they give to the next leader.
func (n *nemesis) announced(leader, learner *server, epoch wire.Epoch) {
	n.fillsAtEpoch(learner)
	n.joinsAhead(leader, epoch)
	if n.splits == nil || n.sim.calm || epoch <= n.lastSplit || n.sim.opt.Voters < splitsVoters {
		return
	}
	n.lastSplit = epoch
	if !n.splits.Chance(20) {
		return
	}
	cut := n.splits.Between(machine.Second, 3*machine.Second)
	for _, o := range n.sim.servers {
		if o == leader || o == learner {
			continue
		}
		n.do(Act{Kind: Cut, A: int(leader.id), B: int(o.id)}, cut+machine.Second, Join)
		n.do(Act{Kind: Cut, A: int(learner.id), B: int(o.id)}, cut, Join)
	}
	n.later(cut-machine.Millisecond, func() { n.do(Act{Kind: Kill, A: int(leader.id)}, 2*machine.Second, Start) })
}
