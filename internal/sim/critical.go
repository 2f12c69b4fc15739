package sim

import (
	"slices"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// This file brings about critical moments in runs with careless clients or repeated faults: something arrives just
// before or just after a server ends a session, loses its lease, hears of a refusal of its disk or replaces its tree.
// All of it can happen at any time; by chance alone it is rare. It has a random source of its own, so that other
// draws do not change.

// critical draws whether such a moment comes; nil: it does not.
func (s *Sim) critical() *machine.Random {
	if s.calm || s.opt.Careless < 0 && s.opt.Focus < 0 {
		return nil
	}
	if s.moments == nil {
		s.moments = machine.NewRandom(s.opt.Seed ^ 0xc417)
	}
	return s.moments
}

// clientsOf calls do for the careless clients that are connected to the server and have the session; 0: any.
func (v *server) clientsOf(id wire.SessionID, do func(*client.Client)) {
	if v.sim.opt.Careless < 0 {
		return
	}
	for _, k := range v.sim.clients.All {
		if k.At == v.id && k.Attached && (id == 0 || k.Session == id) {
			do(k)
		}
	}
}

// nearExpiry acts when a careless client of a leader has been silent for most of its session's timeout: the client
// sends a ping and then leaves, or the next batch of the leader takes several ticks.
func (v *server) nearExpiry() {
	d := v.sim.critical()
	if d == nil || !v.leads() {
		return
	}
	for _, c := range v.conns {
		silent, timeout := c.now()-c.heard.Load(), int64(c.timeoutMS)
		if c.session == 0 || c.heard.Load() == driver.Sealed || silent < timeout*3/4 || silent > timeout*95/100 {
			continue
		}
		switch now := d.Below(3) == 0; c.id % 3 { // every third session is left to expire
		case 0:
			if now {
				v.clientsOf(c.session, (*client.Client).LastPing)
			}
		case 1:
			if now && v.sim.opt.Busy > 0 {
				v.standsStill = v.sim.opt.TickMS * d.Between(2100, 3500)
			}
		}
	}
}

// expel ends the session of a careless client by order of an operator, while requests of the client wait at the leader
// behind a sync: the end is proposed before them. Holders of claims are left alone, because nothing is promised to them
// then.
func (c *conn) expel() {
	s := c.v.sim
	d := s.critical()
	if d == nil || !c.v.leads() || c.v.compatible || s.opt.LocalSessions > 0 || d.Below(4) == 0 {
		return
	}
	c.v.clientsOf(c.session, func(k *client.Client) {
		if k.Player == nil {
			s.see(check.Expelled{Session: c.session})
			c.v.push(replica.Expire{Session: c.session})
		}
	})
}

// endsOrdered makes the careless clients whose sessions a leader ends because of their timeout send a write at once, and those
// whose sessions have expired and end later a ping.
func (v *server) endsOrdered(d *replica.Duty) {
	if v.sim.critical() == nil {
		return
	}
	var ended []wire.SessionID
	for _, t := range d.Append {
		if t.Type == wire.OpCloseSession && t.Cxid == 0 && v.leads() {
			ended = append(ended, t.Session)
			for _, o := range v.sim.servers {
				o.clientsOf(t.Session, (*client.Client).WriteNow)
			}
			v.sim.nemesis.endProposed(v, t.Session)
		}
	}
	if len(ended) == 0 {
		return
	}
	for _, o := range v.sim.servers {
		o.clientsOf(0, func(k *client.Client) {
			if v.replica.Ending(k.Session) && !slices.Contains(ended, k.Session) {
				v.sim.reach(situationHeardLate)
				k.PingNow()
			}
		})
	}
}

// suspended makes the careless clients of a suspended server send pings.
func (v *server) suspended() {
	d := v.sim.critical()
	if d == nil {
		return
	}
	v.sim.after(d.Between(10*machine.Millisecond, 900*machine.Millisecond), func() {
		if v.Clock.Slept >= 0 {
			v.clientsOf(0, (*client.Client).PingNow)
		}
	})
}

// cuts returns how many of the events that wait the next batch takes, if that ends between the answers of one duty:
// between the installation of a snapshot and its tree. Otherwise it returns 0.
func (v *server) cuts() int {
	d := v.sim.critical()
	if d == nil {
		return 0
	}
	for i, e := range v.inbox[:max(len(v.inbox)-1, 0)] {
		if answersInstall(e) && answersInstall(v.inbox[i+1]) && d.Below(2) == 0 {
			return i + 1
		}
	}
	return 0
}

func answersInstall(e replica.Event) bool {
	switch e := e.(type) {
	case replica.Rebuilt:
		return true
	case replica.Zab:
		_, ok := e.Event.(zab.Installed)
		return ok
	}
	return false
}

// refusedLate passes the refusal of a duty to the loop, among other events: the process gets no processor for a while
// before and after.
func (w *writer) refusedLate(events []replica.Event, rest func()) {
	v := w.v
	d := v.sim.critical()
	if d == nil || !slices.ContainsFunc(events, driver.Refuses) || d.Below(3) == 0 {
		rest()
		return
	}
	v.crowded = true
	v.later(d.Below(20*machine.Millisecond), func() {
		rest()
		v.later(d.Below(10*machine.Millisecond), func() {
			v.crowded = false
			v.scheduleBatch()
		})
	})
}

// fillsAlone cuts all servers off from each other, and fills the disk of the leader for a moment while its clients go
// on writing. So proposals that nobody else has are refused, and no other leader is elected before the disk has room
// again.
func (n *nemesis) fillsAlone(leader *server) {
	d := n.focus
	until := d.Between(1200*machine.Millisecond, 2500*machine.Millisecond)
	for i, v := range n.sim.servers {
		for _, o := range n.sim.servers[i+1:] {
			n.do(Act{Kind: Cut, A: int(v.id), B: int(o.id)}, until, Join)
		}
	}
	n.sim.Do(Act{Kind: FullDisk, A: int(leader.id), Value: d.Below(600)})
	n.sim.after(d.Between(20*machine.Millisecond, 300*machine.Millisecond), func() {
		n.sim.Do(Act{Kind: FullDisk, A: int(leader.id), Value: -1})
	})
}

// fillsAtEpoch fills the disk of a learner for a moment while it must save the epoch that a leader announces, in runs
// with full disks.
func (n *nemesis) fillsAtEpoch(learner *server) {
	d := n.focus
	if d == nil || n.sim.calm || n.sim.opt.Focus-1 != focusFull || d.Below(8) != 0 {
		return
	}
	n.sim.Do(Act{Kind: FullDisk, A: int(learner.id), Value: d.Below(500)})
	n.sim.after(d.Between(5*machine.Millisecond, 60*machine.Millisecond), func() {
		n.sim.Do(Act{Kind: FullDisk, A: int(learner.id), Value: -1})
	})
}
