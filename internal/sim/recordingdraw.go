package sim

import "bellwether/internal/ensemble"

// draw draws the next step of a recorded run. At least two servers stay connected once they
// were started, so that each step has one possible result.
func (r *recorder) draw(step int) Step {
	if step < RecordedServers {
		return Step{Kind: StepStart, Server: r.startOrder()[step]}
	}
	one := ensemble.ServerID(1 + r.random.Below(RecordedServers))
	away := r.isolated
	for _, v := range r.servers {
		if r.down[v.id] {
			away = v.id
		}
	}
	if r.random.Chance(40) {
		all := r.connected()
		at := all[r.random.Below(int64(len(all)))]
		return Step{Kind: StepWrite, Server: at.id, Value: int(r.random.Between(1, 3))}
	}
	switch {
	case away != 0 && away == r.isolated:
		return Step{Kind: StepJoin, Server: away}
	case away != 0:
		return Step{Kind: StepStart, Server: away}
	case r.random.Chance(50):
		return Step{Kind: StepKill, Server: one}
	case r.random.Chance(50):
		return Step{Kind: StepCut, Server: one}
	}
	return Step{Kind: StepCutWriting, Server: r.leading().id}
}

// startOrder returns the order in which the seed starts the servers.
func (r *recorder) startOrder() []ensemble.ServerID {
	if r.order == nil {
		for _, i := range r.random.Shuffled(RecordedServers) {
			r.order = append(r.order, ensemble.ServerID(i+1))
		}
	}
	return r.order
}
