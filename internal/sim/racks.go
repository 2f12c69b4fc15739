package sim

import "bellwether/internal/sim/machine"

// This file is about faults of one cause that hit several machines at once. Machines stand
// in racks: those of a rack share a power supply, a switch, and the storage of their disks.

// racks is the number of racks. The machines fill them one after the other: with three
// racks, servers 1 and 4 and clients 1 and 4 stand in the first one.
const racks = 3

// rackOf returns the rack of the server or client with a number.
func rackOf(number int) int { return (number-1)%racks + 1 }

// doRack carries out a fault of a rack. It reports whether an act is one.
func (s *Sim) doRack(a Act) bool {
	switch a.Kind {
	case RackOff:
		s.rackOff(a.A)
	case RackOn:
		for _, v := range s.inRack(a.A) {
			v.start()
		}
	case FullRack:
		for _, v := range s.inRack(a.A) {
			v.space = a.Value
			v.restore()
		}
	case SwitchOff, SwitchOn:
		s.doSwitch(a)
	default:
		return false
	}
	return true
}

// inRack returns the servers of a rack.
func (s *Sim) inRack(rack int) (all []*server) {
	for _, v := range s.servers {
		if rackOf(int(v.id)) == rack {
			all = append(all, v)
		}
	}
	return all
}

// rackOff ends the power of all servers of a rack in the same moment.
func (s *Sim) rackOff(rack int) {
	lost := 0
	for _, v := range s.inRack(rack) {
		if v.up {
			lost++
		}
		if v.On {
			v.powerOff()
		}
	}
	if lost > 1 {
		s.reach(situationRackOff)
	}
}

// doSwitch makes the switch of a rack fail, or repairs it. While it is out of order, no
// packet passes to or from a machine of the rack, not even between two of them.
func (s *Sim) doSwitch(a Act) {
	behind := map[*machine.Host]bool{}
	links := 0
	for _, v := range s.inRack(a.A) {
		behind[&v.Host] = true
		if v.up && len(v.links) > 0 {
			links++
		}
	}
	for _, c := range s.clients.All {
		behind[&c.Host] = behind[&c.Host] || rackOf(c.ID) == a.A
	}
	for i, x := range s.net.hosts {
		for _, o := range s.net.hosts[:i] {
			switch {
			case !behind[x] && !behind[o]:
			case a.Kind == SwitchOff:
				s.net.block(x, o)
				s.net.block(o, x)
			default:
				s.net.unblock(x, o)
				s.net.unblock(o, x)
			}
		}
	}
	if a.Kind == SwitchOff && links > 1 {
		s.reach(situationSwitchOff)
	}
}

// fullTogether records that the disks of several servers are full at the same time.
func (s *Sim) fullTogether() {
	full := 0
	for _, v := range s.servers {
		if v.up && v.writer.full {
			full++
		}
	}
	if full > 1 {
		s.reach(situationFullTogether)
	}
}

// hitRacks lets a rack fail, again and again. Sometimes the storage of all racks is full.
func (n *nemesis) hitRacks(d *machine.Random) {
	n.later(d.Between(machine.Second, 12*machine.Second), func() {
		a, long := Act{A: int(d.Between(1, racks))}, d.Between(100*machine.Millisecond, 6*machine.Second)
		switch d.Below(3) {
		case 0:
			a.Kind = RackOff
			n.do(a, long, RackOn)
		case 1:
			a.Kind = SwitchOff
			n.do(a, long, SwitchOn)
		case 2:
			first, last := a.A, a.A
			if d.Chance(50) {
				first, last = 1, racks
			}
			for rack := first; rack <= last; rack++ {
				n.fillRack(rack, d.Below(5000), long)
			}
		}
		n.hitRacks(d)
	})
}

// fillRack leaves the disks of a rack little room for some time.
func (n *nemesis) fillRack(rack int, bytes, until int64) {
	n.sim.Do(Act{Kind: FullRack, A: rack, Value: bytes})
	n.later(until, func() { n.sim.Do(Act{Kind: FullRack, A: rack, Value: -1}) })
}
