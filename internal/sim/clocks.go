package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
)

// jump moves the monotonic clock of a server forward, unless the server leads. A leader
// whose clock jumps ends sessions too early, and cannot know it: to the leader the jump
// looks as if its process had been stopped. So nothing is promised then.
func (v *server) jump(by int64) {
	if v.standing.Role != peerwire.Leading {
		v.leap(by)
		v.sim.reach(situationJumped)
	}
}

// jumpAny moves the monotonic clock of a server forward, also if it leads.
func (v *server) jumpAny(by int64) {
	if v.standing.Role == peerwire.Leading && v.up && by > 0 {
		v.sim.jumpedAt = v.sim.now
		v.sim.reach(situationLeaderJumped)
	}
	v.leap(by)
}

func (v *server) leap(by int64) {
	v.Clock.Jump(by)
	v.sim.see(check.Jumped{Server: v.id, At: v.sim.now, By: by})
}

// timeRules are the rules that rest on the clocks of leaders. After the clock of a leader has
// jumped, one of them may be broken, and the run ends there without a failure. All other
// rules hold in any case: they are about histories, and do not depend on time.
var timeRules = []string{"Expiry", "Claims", "PossibleLeaders", "Promises", "Leases", "Shares", "MultiLocks"}

// jumpLeaders moves the clocks of servers forward, most often of leaders, again and again.
func (n *nemesis) jumpLeaders(d *machine.Random) {
	n.later(d.Between(500*machine.Millisecond, 8*machine.Second), func() {
		a := Act{Kind: JumpAny, A: 1 + int(d.Below(int64(len(n.sim.servers)))), Value: d.Between(100*machine.Millisecond, 20*machine.Second)}
		if l := n.sim.leader(); l != nil && d.Chance(70) {
			a.A = int(l.id)
		}
		n.sim.Do(a)
		n.jumpLeaders(d)
	})
}

func (v *server) wakeUp() {
	if v.Clock.Slept >= 0 {
		v.Clock.Resume(v.sim.now)
		v.sim.reach(situationSlept)
		v.resume()
	}
}
