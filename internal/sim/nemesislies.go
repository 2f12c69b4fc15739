package sim

import "bellwether/internal/sim/machine"

// beginAsked starts the faults that are drawn only if an option asks for them.
func (n *nemesis) beginAsked() {
	o := &n.sim.opt
	if o.PartLies > 0 {
		n.lie(machine.NewRandom(o.Seed^0x9a271), true)
	}
	if o.EpochRot > 0 {
		n.rotEpochs(machine.NewRandom(o.Seed ^ 0xe90c))
	}
	if o.LeaderJumps > 0 {
		n.jumpLeaders(machine.NewRandom(o.Seed ^ 0x1ead))
	}
}

// lie makes some disks lie, again and again. Most often a minority of the servers has such
// a disk, and only sometimes any number of them.
// If partly is set, the disks lie about some files only.
func (n *nemesis) lie(d *machine.Random, partly bool) {
	s := n.sim
	count := d.Between(1, int64(max(1, (s.opt.Voters-1)/2)))
	if d.Chance(20) {
		count = d.Between(1, int64(s.opt.Voters))
	}
	n.lieAgain(d, d.Shuffled(s.opt.Voters)[:count], partly)
}

func (n *nemesis) lieAgain(d *machine.Random, liars []int, partly bool) {
	n.later(d.Between(300*machine.Millisecond, 6*machine.Second), func() {
		if id := 1 + liars[d.Below(int64(len(liars)))]; d.Chance(7) {
			n.sim.Do(Act{Kind: Kill, A: id})
			n.do(Act{Kind: LoseDisk, A: id}, d.Between(100*machine.Millisecond, 3*machine.Second), Start)
		}
		a := Act{Kind: Lie, A: 1 + liars[d.Below(int64(len(liars)))]}
		if partly {
			a.Value = d.Between(1, lieLogs+lieSnapshots+lieEpochs)
		}
		n.do(a, d.Between(machine.Second, 20*machine.Second), EndLie)
		if d.Chance(75) {
			n.later(d.Below(3*machine.Second), func() { n.loseLies(d, a.A) })
		}
		n.lieAgain(d, liars, partly)
	})
}

// loseLies ends the power of a server whose disk may lie. Sometimes the leader fails at the
// same time.
func (n *nemesis) loseLies(d *machine.Random, id int) {
	n.do(Act{Kind: PowerOff, A: id}, d.Between(100*machine.Millisecond, 3*machine.Second), Start)
	if l := n.sim.leader(); l != nil && d.Chance(20) {
		n.do(Act{Kind: Kill, A: int(l.id)}, d.Between(machine.Second, 6*machine.Second), Start)
	}
}
