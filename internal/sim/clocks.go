package sim

import "bellwether/internal/peerwire"

// jump moves the monotonic clock of a server forward, unless the server leads. A leader
// whose clock jumps ends sessions too early, and cannot know it: to the leader the jump
// looks as if its process had been stopped. So nothing is promised then.
func (v *server) jump(by int64) {
	if v.standing.Role != peerwire.Leading {
		v.Clock.Jump(by)
		v.sim.reach(situationJumped)
	}
}

func (v *server) wakeUp() {
	if v.Clock.Slept >= 0 {
		v.Clock.Resume(v.sim.now)
		v.sim.reach(situationSlept)
		v.resume()
	}
}
