package sim

import (
	"slices"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// nemesis draws faults, and keeps those that were carried out.
type nemesis struct {
	sim    *Sim
	random *machine.Random
	done   []Act
	// streamed draws the faults that hit snapshots on their way; nil: no faults are drawn.
	streamed  *machine.Random
	focus     *machine.Random // draws when the fault of Options.Focus comes; nil: there is none
	splits    *machine.Random // draws which announcements of epochs are hit; nil: none
	lastSplit wire.Epoch      // the last epoch for which that was drawn
	terms     *machine.Random // draws the critical moments of terms; nil: none
	// lastBegun and lastJoined are the last epochs for which begins and joinsAhead have drawn.
	lastBegun, lastJoined wire.Epoch
}

// begin starts the faults: the acts of the options or, if they contain none, random ones.
func (n *nemesis) begin(s *Sim) {
	n.sim, n.random = s, s.random.Fork()
	if s.opt.Acts == nil {
		n.next()
		n.streamed = machine.NewRandom(s.opt.Seed ^ 0x57ea)
		n.splits = machine.NewRandom(s.opt.Seed ^ 0x5b117)
		n.terms = machine.NewRandom(s.opt.Seed ^ 0x7e235)
		if s.opt.ThinkMS >= 1000 {
			n.namesSilent(machine.NewRandom(s.opt.Seed ^ 0x511e7))
		}
		if s.opt.Focus > 0 {
			n.focus = machine.NewRandom(s.opt.Seed ^ 0xf0c5d)
		}
		if s.opt.Moves > 0 {
			n.migrate()
		}
		if s.opt.Reconfig > 0 {
			n.reconfigure(machine.NewRandom(s.opt.Seed ^ 0x4ec0d))
			n.missReconfigurations(machine.NewRandom(s.opt.Seed ^ 0x2ec0d))
		}
		if s.opt.TermMS > 0 || !slices.Contains(client.Claims, s.opt.Recipe) {
			n.hitParticipants()
		}
		if s.opt.Racks > 0 {
			n.hitRacks(machine.NewRandom(s.opt.Seed ^ 0x2ac5d))
		}
		if s.opt.Rot > 0 {
			n.rot(machine.NewRandom(s.opt.Seed ^ 0x207d))
		}
		if s.opt.Lies > 0 {
			n.lie(machine.NewRandom(s.opt.Seed^0x11e5d), false)
		}
		n.beginAsked()
		return
	}
	for _, a := range s.opt.Acts {
		if a.Kind == Calm {
			s.until = a.At
			continue
		}
		s.at(a.At, func() {
			if !s.calm {
				s.Do(a)
			}
		})
	}
}

// next waits, and then carries out the next fault.
func (n *nemesis) next() {
	wait := n.random.Between(50*machine.Millisecond, 1200*machine.Millisecond)
	if n.sim.opt.TermMS > 0 {
		wait *= 10 // a change of holders needs servers that serve
	}
	n.sim.after(wait, func() {
		switch {
		case n.sim.calm:
			return
		case n.late():
			n.depose()
		default:
			n.act()
		}
		n.next()
	})
}

// late reports whether fewer leaders have been established than there should be by now.
func (n *nemesis) late() bool {
	s := n.sim
	return s.reached[situationLeader] < leadersMin && s.steps*(leadersMin+1) > s.opt.Events*(s.reached[situationLeader]+1)
}

// depose ends the leader. If there is no leader, it ends the faults that may prevent one.
func (n *nemesis) depose() {
	if l := n.sim.leader(); l != nil && l.up {
		n.do(Act{Kind: Kill, A: int(l.id)}, n.random.Between(100*machine.Millisecond, machine.Second), Start)
		return
	}
	n.sim.Do(Act{Kind: Heal, A: 1})
	for _, v := range n.sim.servers {
		n.sim.Do(Act{Kind: Start, A: int(v.id)})
		n.sim.Do(Act{Kind: Resume, A: int(v.id)})
	}
}

// migrate changes the list of servers, again and again.
func (n *nemesis) migrate() {
	n.sim.after(n.random.Between(500*machine.Millisecond, 5*machine.Second), func() {
		if !n.sim.calm {
			n.move()
			n.migrate()
		}
	})
}

// hitParticipants ends, hangs or disconnects a holder, again and again. In a recipe without holders
// it does so to any client with a part in the recipe.
func (n *nemesis) hitParticipants() {
	n.sim.after(n.random.Between(50*machine.Millisecond, 3*machine.Second), func() {
		if n.sim.calm {
			return
		}
		if c := n.participant(); c != nil {
			a := Act{Kind: Kill, A: -c.ID}
			switch n.random.Below(3) {
			case 0:
				n.sim.Do(a)
			case 1:
				a.Kind = Hang
				n.do(a, n.random.Between(10*machine.Millisecond, 4*machine.Second), Return)
			case 2:
				if c.At != 0 {
					n.sim.Do(Act{Kind: Reset, A: int(c.At), B: -c.ID})
				}
			}
		}
		n.hitParticipants()
	})
}

// participant returns the client that the next fault hits; nil: there is none.
func (n *nemesis) participant() *client.Client {
	s := n.sim
	switch {
	case slices.Contains(client.Claims, s.opt.Recipe):
		return s.clients.LastHolder()
	case s.opt.Candidates <= 0:
		return nil
	}
	return s.clients.All[max(s.opt.Clients, 0)+int(n.random.Below(int64(s.opt.Candidates)))]
}

// do carries out an act, and the act that ends it some time later.
func (n *nemesis) do(a Act, after int64, end Kind) {
	n.sim.Do(a)
	if end != "" {
		n.sim.after(after, func() {
			if !n.sim.calm {
				n.sim.Do(Act{Kind: end, A: a.A, B: a.B})
			}
		})
	}
}

// victim draws a server, the leader more often than others.
func (n *nemesis) victim() *server {
	if n.random.Chance(40) {
		for _, v := range n.sim.servers {
			if v.up && v.leads() {
				return v
			}
		}
	}
	return n.sim.servers[n.random.Below(int64(len(n.sim.servers)))]
}

// faultKinds is the number of kinds of faults that act draws.
const faultKinds = 30

// focusFull is the kind of fault that fills a disk.
const focusFull = 15

// act draws and carries out one fault.
func (n *nemesis) act() {
	d, v := n.random, n.victim()
	a := Act{A: int(v.id)}
	other := 1 + int(d.Below(int64(len(n.sim.servers))))
	short, long := d.Between(10*machine.Millisecond, machine.Second), d.Between(100*machine.Millisecond, 6*machine.Second)
	kind := d.Below(faultKinds)
	if n.focus != nil && n.focus.Chance(60) {
		kind = int64(n.sim.opt.Focus) - 1
		if kind == focusFull { // again and again little room, soon free again
			long = n.focus.Between(5*machine.Millisecond, 400*machine.Millisecond)
		}
	}
	switch kind {
	case 0, 1:
		a.Kind = Kill
		n.do(a, long, Start)
	case 2, 3:
		a.Kind = PowerOff
		n.do(a, long, Start)
	case 4:
		a.Kind, a.Value = CrashIn, d.Between(1, 20)
		n.do(a, long, Start)
	case 5:
		n.endMost(d.Chance(50))
	case 6:
		a.Kind = Pause
		n.do(a, long, Resume)
	case 7:
		a.Kind = Suspend
		n.do(a, long, Awake)
	case 8:
		if l := n.sim.leader(); l != nil && l != v && d.Chance(60) {
			n.do(Act{Kind: Cut, A: int(l.id), B: a.A}, d.Between(600*machine.Millisecond, 1200*machine.Millisecond), Join)
			return
		}
		a.Kind, a.B = Block, other
		n.do(a, long, Join)
	case 9:
		a.Kind = Block
		n.do(a, long, Join)
	case 10:
		a.Kind = Cut
		n.do(a, long, Join)
	case 11, 23:
		if d.Chance(70) {
			n.isolate(v, d.Between(700*machine.Millisecond, 5*machine.Second))
		} else {
			n.split()
		}
	case 12:
		a.Kind, a.B = Reset, other
		n.do(a, 0, "")
	case 13:
		a.Kind, a.B, a.Value = Slow, other, d.Below(300*machine.Millisecond)
		n.do(a, 0, "")
	case 14:
		a.Kind, a.Value = SlowDisk, short/4
		n.do(a, long, SlowDisk)
	case focusFull:
		a.Kind, a.Value = FullDisk, d.Below(20_000)
		if n.focus != nil {
			a.Value = n.focus.Below(1500)
		}
		if l := n.sim.leader(); n.focus != nil && l != nil && n.focus.Below(3) == 0 {
			n.fillsAlone(l)
			return
		}
		n.sim.Do(a)
		n.sim.after(long, func() { n.sim.Do(Act{Kind: FullDisk, A: a.A, Value: -1}) })
	case 16:
		a.Kind, a.Value = FailSync, d.Between(1, 5)
		if d.Chance(50) {
			a.Kind = FailWrite
		}
		n.do(a, long, Start)
	case 17:
		a.Kind, a.Value = SetClock, d.Between(-6*3600*machine.Second, 6*3600*machine.Second)
		if d.Chance(50) {
			a.A = n.someClient()
		}
		if d.Chance(30) {
			a.Kind, a.Value = Jump, short*d.Between(1, 20)
		}
		n.do(a, 0, "")
	case 18:
		n.wipe(v, long)
	case 19:
		n.do(Act{Kind: Hang, A: n.someClient()}, long, Return)
	case 20:
		n.hitClient(long)
	case 21:
		a.B = n.someClient()
		a.Kind = []Kind{Cut, Block}[d.Below(2)]
		n.do(a, long, Join)
	case 22:
		a.Kind, a.B = Reset, n.someClient()
		n.do(a, 0, "")
	case 24:
		a.Kind = HangDisk
		n.do(a, d.Between(500*machine.Millisecond, 8*machine.Second), FreeDisk)
	case 25:
		a.Kind, a.Value = Filter, d.Between(filterIn, filterIn+filterOut)
		n.do(a, long, Unfilter)
	case 26:
		a.Kind, a.Value = SlowPort, d.Below(5*machine.Second)
		n.do(a, long, SlowPort)
	default:
		n.transferLeadership(long)
	}
	if d.Chance(10) {
		n.sim.Do(Act{Kind: Heal, A: 1})
	}
}

// transferLeadership makes the leader transfer leadership. After that the old leader stops or goes on.
// Often a fault hits one of the two servers, or the network between them, during the transfer.
func (n *nemesis) transferLeadership(long int64) {
	old, d := n.sim.leader(), n.random
	if old == nil {
		return
	}
	next := n.sim.servers[d.Below(int64(len(n.sim.servers)))]
	a := Act{Kind: TransferLeadership, A: int(old.id)}
	if d.Chance(50) {
		a.B = int(next.id)
	}
	stops := d.Chance(50)
	if stops {
		a.Value = 1
	}
	if d.Chance(25) {
		for _, v := range n.sim.servers {
			n.do(Act{Kind: SlowDisk, A: int(v.id), Value: d.Below(500 * machine.Millisecond)}, long, SlowDisk)
		}
		n.later(d.Below(200*machine.Millisecond), func() { n.sim.Do(a) })
		return
	}
	n.sim.Do(a)
	if stops {
		n.later(d.Below(500*machine.Millisecond), func() { n.do(Act{Kind: Kill, A: a.A}, long, Start) })
	}
	if d.Chance(60) {
		n.later(d.Below(40*machine.Millisecond), func() { n.disturbTransfer(a.A, int(next.id), long) })
	}
}

// disturbTransfer causes a fault of the leader a, of server b, to which it may transfer leadership, or of the network.
func (n *nemesis) disturbTransfer(a, b int, long int64) {
	switch n.random.Below(6) {
	case 0:
		n.do(Act{Kind: Kill, A: b}, long, Start)
	case 1:
		n.do(Act{Kind: PowerOff, A: b}, long, Start)
	case 2:
		n.do(Act{Kind: PowerOff, A: a}, long, Start)
	case 3:
		n.do(Act{Kind: Reset, A: a, B: b}, 0, "")
	case 4:
		n.isolate(n.victim(), long)
	case 5:
		n.split()
	}
}

// later runs do after d µs, unless the faults have ended by then.
func (n *nemesis) later(d int64, do func()) {
	n.sim.after(d, func() {
		if !n.sim.calm {
			do()
		}
	})
}

// endMost ends most servers at once.
func (n *nemesis) endMost(power bool) {
	kind := Kill
	if power {
		kind = PowerOff
	}
	for _, v := range n.sim.servers {
		if n.random.Chance(85) {
			n.do(Act{Kind: kind, A: int(v.id)}, n.random.Below(2*machine.Second), Start)
		}
	}
}

// split divides the servers into two groups that cannot reach each other.
func (n *nemesis) split() {
	camp := map[*server]bool{}
	for _, v := range n.sim.servers {
		camp[v] = n.random.Chance(50)
	}
	until := n.random.Between(100*machine.Millisecond, 6*machine.Second)
	for _, v := range n.sim.servers {
		for _, o := range n.sim.servers {
			if camp[v] && !camp[o] {
				n.do(Act{Kind: Cut, A: int(v.id), B: int(o.id)}, until, Join)
			}
		}
	}
}

// isolate cuts a server off from all other servers, but not from its clients. So a leader
// still logs transactions that no other server will have. Some of its clients go to other
// servers.
func (n *nemesis) isolate(v *server, until int64) {
	for _, c := range n.sim.clients.All {
		if n.random.Chance(50) {
			continue
		}
		n.sim.after(n.random.Between(900*machine.Millisecond, 3*n.sim.opt.TickMS*machine.Millisecond), func() {
			if !n.sim.calm && c.At == v.id && c.Attached {
				n.sim.Do(Act{Kind: Reset, A: int(v.id), B: -c.ID, Value: n.random.Between(machine.Second, 8*machine.Second)})
			}
		})
	}
	for _, o := range n.sim.servers {
		if o != v {
			n.do(Act{Kind: Cut, A: int(v.id), B: int(o.id)}, until, Join)
		}
	}
}

// wipe replaces a server's disk, if the others can do without it.
func (n *nemesis) wipe(v *server, until int64) {
	n.sim.Do(Act{Kind: Kill, A: int(v.id)})
	n.do(Act{Kind: Wipe, A: int(v.id)}, until, Start)
}

// someClient draws a client, and returns its number as an act names it.
func (n *nemesis) someClient() int { return -1 - int(n.random.Below(int64(len(n.sim.clients.All)))) }

// hitClient stops a client's process, or suspends its machine, or ends the machine's
// power.
func (n *nemesis) hitClient(until int64) {
	a := Act{A: n.someClient()}
	if c := n.sim.clients.LastHolder(); c != nil && n.random.Chance(50) {
		a.A = -c.ID
	}
	switch n.random.Below(4) {
	case 0:
		a.Kind = Pause
		n.do(a, until, Resume)
	case 1, 2:
		a.Kind = Suspend
		n.do(a, until, Awake)
	case 3:
		a.Kind = PowerOff
		n.do(a, 0, "")
	}
}

// move gives one server another place, and then makes each server use the new list, one
// after the other in any order.
func (n *nemesis) move() {
	s, d := n.sim, n.random
	id, p := int(d.Between(1, int64(len(s.servers))+1)), place(d.Below(3))
	before := s.roster.newest
	if s.Do(Act{Kind: Enrol, A: id, Value: int64(p)}); s.roster.newest == before {
		return
	}
	when := int64(0)
	for _, i := range d.Shuffled(len(s.servers)) {
		a := Act{Kind: MoveOver, A: i + 1}
		s.after(when, func() {
			if !s.calm {
				n.do(a, d.Between(10*machine.Millisecond, machine.Second), Start)
			}
		})
		when += d.Between(50*machine.Millisecond, 2*machine.Second)
	}
}

// leads reports whether a server is an established leader.
func (v *server) leads() bool { return v.standing.Serving && v.standing.Role == peerwire.Leading }
