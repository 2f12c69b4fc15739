package sim

import "bellwether/internal/sim/machine"
import "slices"

// network decides how long a packet takes from one machine to another, and whether it
// arrives at all. The keys of blocked and lag are the places of sender and receiver, and those
// of filters and portLag are the place of one machine.
type network struct {
	sim     *Sim
	hosts   []*machine.Host
	blocked map[[2]int]int64 // packets do not arrive in this direction
	lag     map[[2]int]int64 // additional µs in this direction
	filters map[int]int64    // what is dropped at a machine's port for learners: filterIn, filterOut or both
	portLag map[int]int64    // additional µs for packets from a machine's port for learners
	stalled []*pipe          // pipes whose first packet is blocked
}

func (n *network) add(h *machine.Host) {
	h.Place = len(n.hosts)
	n.hosts = append(n.hosts, h)
}

// open reports whether packets pass from one machine to the other.
func (n *network) open(from, to *machine.Host) bool {
	_, blocked := n.blocked[[2]int{from.Place, to.Place}]
	return !blocked
}

// through reports whether packets pass in both directions.
func (n *network) through(a, b *machine.Host) bool { return n.open(a, b) && n.open(b, a) }

// resendRate is the rate of lost packets: one in 64 times this. Such a packet is lost
// several times and is sent again after growing pauses, while other connections go on.
const resendRate = 24

// filterIn and filterOut say which packets a filter in front of the port for learners
// drops.
const (
	filterIn  = 1
	filterOut = 2
)

// filter drops packets to or from the port for learners of a machine; 0: none.
func (n *network) filter(h *machine.Host, what int64) {
	n.filters[h.Place] = what
	n.restart()
}

// passes reports whether the next packet of a pipe arrives.
func (n *network) passes(p *pipe) bool {
	if !n.open(p.from, p.to) {
		return false
	}
	switch p.port {
	case nil:
		return true
	case p.to:
		return n.filters[p.to.Place]&filterIn == 0
	}
	return n.filters[p.from.Place]&filterOut == 0
}

// latency draws how long the next packet takes.
func (n *network) latency(from, to *machine.Host) int64 {
	d := n.sim.random.Between(100, 800)
	switch n.sim.random.Below(64) {
	case 0:
		d += n.sim.random.Below(20 * machine.Millisecond)
	case 1:
		d += n.sim.random.Below(3 * machine.Millisecond)
	case 2:
		if n.sim.random.Below(resendRate) == 0 && n.sim.nemesis.sim != nil && !n.sim.calm {
			d += n.sim.random.Between(200*machine.Millisecond, 4*machine.Second)
		}
	}
	return d + n.lag[[2]int{from.Place, to.Place}]
}

// block stops packets from one machine to another. Packets on their way wait, because TCP
// sends them again and again.
func (n *network) block(from, to *machine.Host) {
	if n.open(from, to) {
		n.blocked[[2]int{from.Place, to.Place}] = n.sim.now
	}
}

func (n *network) unblock(from, to *machine.Host) {
	delete(n.blocked, [2]int{from.Place, to.Place})
	n.restart()
}

// heal removes every block, delay and filter.
func (n *network) heal() {
	clear(n.blocked)
	clear(n.lag)
	clear(n.filters)
	clear(n.portLag)
	n.restart()
}

// restart lets waiting packets arrive when TCP sends them again.
func (n *network) restart() {
	stalled := n.stalled
	n.stalled = nil
	for _, p := range stalled {
		p.stalled = false // TCP pauses longer between resends, the longer a packet has waited
		if n.passes(p) {
			p.moving = true
			n.sim.after(n.sim.random.Below(200*machine.Millisecond+n.sim.now-p.since), p.pump)
		} else {
			n.stall(p)
		}
	}
}

func (n *network) stall(p *pipe) {
	if !p.stalled {
		p.stalled, p.since = true, n.sim.now
		n.stalled = append(n.stalled, p)
	}
}

// pipe is one direction of a connection: first in, first out. While moving is true, one
// call that moves its packets is scheduled.
type pipe struct {
	net      *network
	from, to *machine.Host
	port     *machine.Host // the machine whose port for learners this pipe belongs to; nil: the pipe belongs to no such port
	queue    []parcel
	deliver  func(load any, last bool)
	moving   bool // a call that moves the packets is scheduled
	stalled  bool
	since    int64 // when the stall began
}

// parcel is something on its way. The last parcel is the end of the connection.
type parcel struct {
	at   int64
	load any
	last bool
}

func (p *pipe) send(load any, last bool) {
	at := p.net.sim.now + p.net.latency(p.from, p.to)
	if p.port == p.from {
		at += p.net.portLag[p.from.Place]
	}
	if n := len(p.queue); n > 0 {
		at = max(at, p.queue[n-1].at)
	}
	p.queue = append(p.queue, parcel{at, load, last})
	p.start()
}

// start makes sure that the first parcel in the queue will arrive.
func (p *pipe) start() {
	if !p.moving && !p.stalled && len(p.queue) > 0 {
		p.moving = true
		p.net.sim.at(p.queue[0].at, p.pump)
	}
}

func (p *pipe) pump() {
	p.moving = false
	switch {
	case len(p.queue) == 0:
		return
	case !p.net.passes(p):
		if p.net.open(p.to, p.from) {
			p.net.sim.reach(situationOneWay)
		}
		p.net.stall(p)
		return
	}
	if first := p.queue[0]; first.at <= p.net.sim.now {
		p.queue = slices.Delete(p.queue, 0, 1)
		p.deliver(first.load, first.last)
	}
	p.start()
}

// lose drops the parcels on their way, except for the first few.
func (p *pipe) lose() {
	keep := p.net.sim.random.Below(int64(len(p.queue)) + 1)
	if int(keep) < len(p.queue) {
		p.net.sim.reach(situationResetLoses)
	}
	p.queue = slices.Delete(p.queue, int(keep), len(p.queue))
}

// tcpConn is a TCP connection. An end learns that the other end has closed only when the
// message arrives.
type tcpConn struct {
	net  *network
	ends [2]end
}

// end is one end of a connection. Its owner sets take and gone.
type end struct {
	host *machine.Host
	out  pipe
	open bool
	cut  bool // packets that are sent from now on are lost
	// userTimeout is how long sent data may stay unacknowledged, in µs; 0: for ever.
	userTimeout int64
	awaitsAck   bool // a check of the user timeout is scheduled
	take        func(load any)
	gone        func(why string)
}

// newConn connects two machines.
func (n *network) newConn(a, b *machine.Host) *tcpConn {
	c := &tcpConn{net: n}
	for i, h := range [2]*machine.Host{a, b} {
		other := [2]*machine.Host{b, a}[i]
		c.ends[i] = end{host: h, open: true, out: pipe{net: n, from: h, to: other}}
		c.ends[i].out.deliver = func(load any, last bool) { c.arrive(1-i, load, last) }
	}
	return c
}

func (c *tcpConn) send(i int, load any) {
	if c.ends[i].open && !c.ends[i].cut {
		c.ends[i].out.send(load, false)
		c.awaitAck(i)
	}
}

// awaitAck ends the connection at end i, which has sent something, once the machines have been
// cut off from each other for the user timeout of that end. The other end does not learn of it.
func (c *tcpConn) awaitAck(i int) {
	e, n := &c.ends[i], c.net
	a, b := e.host, c.ends[1-i].host
	if e.userTimeout == 0 || e.awaitsAck || n.through(a, b) {
		return
	}
	e.awaitsAck = true
	n.sim.at(n.cutSince(a, b)+e.userTimeout, func() {
		e.awaitsAck = false
		switch {
		case !e.open || n.through(a, b):
		case n.sim.now-n.cutSince(a, b) < e.userTimeout: // they were connected in the meantime
			c.awaitAck(i)
		default:
			n.sim.reach(situationUserTimeout)
			c.vanish(i)
			e.gone("connection timed out")
		}
	})
}

// cutSince returns since when packets between two machines do not pass in at least one
// direction. The caller has checked that they do not.
func (n *network) cutSince(a, b *machine.Host) int64 {
	since := n.sim.now
	for _, pair := range [2][2]int{{a.Place, b.Place}, {b.Place, a.Place}} {
		if at, blocked := n.blocked[pair]; blocked {
			since = min(since, at)
		}
	}
	return since
}

// close ends the connection from one end. What was sent still arrives.
func (c *tcpConn) close(i int) {
	if e := &c.ends[i]; e.open {
		e.open = false
		if !e.cut {
			e.out.send("end of file", true)
		}
	}
}

// abort ends the connection from one end. Some of what was sent is lost.
func (c *tcpConn) abort(i int) {
	if e := &c.ends[i]; e.open {
		e.open = false
		e.out.lose()
		e.out.send("connection reset by peer", true)
	}
}

// sever breaks the connection between its ends. Each end learns of this after a time of its own,
// perhaps much later than the other. Machine x learns of it after late µs at the earliest.
func (c *tcpConn) sever(x *machine.Host, late int64) {
	for i := range c.ends {
		if e := &c.ends[i]; e.open || len(e.out.queue) > 0 || c.ends[1-i].open { // an end is cut also if the other one has vanished
			e.out.lose()
			e.cut = true
			delay := c.net.sim.random.Below(20 * machine.Millisecond)
			if c.net.sim.random.Chance(35) {
				delay = c.net.sim.random.Below(2 * machine.Second)
			}
			if c.ends[1-i].host == x { // end i sends to x: x must not learn of the reset before late
				delay = max(delay, late)
			}
			c.net.sim.after(delay, func() { e.out.send("connection reset", true) })
		}
	}
}

// vanish ends one end silently, as when a machine loses power. It does not change an end
// that was severed before.
func (c *tcpConn) vanish(i int) {
	e := &c.ends[i]
	e.open = false
	if !e.cut {
		e.out.queue = nil
	}
}

// arrive delivers a load to an end. If that end no longer exists, its machine answers with
// a reset, provided that the machine is on.
func (c *tcpConn) arrive(i int, load any, last bool) {
	e, other := &c.ends[i], &c.ends[1-i]
	switch {
	case !e.open:
		c.net.sim.reach(situationOneSide)
		if e.host.On && !last && other.open && len(e.out.queue) == 0 {
			e.out.send("connection reset by peer", true)
		}
	case last:
		e.open = false
		e.gone(load.(string))
	default:
		e.take(load)
	}
}
