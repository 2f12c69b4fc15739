package sim

import (
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// link is a connection of a learner to a leader. The learner has end 0.
type link struct {
	id    zab.LinkID
	tcp   *tcpConn
	ends  [2]*server
	lives [2]int // the lives of the two processes; an end belongs only to the process of that life
	// What a compatible learner has received: the transactions of a DIFF that it has not
	// acknowledged, whether the DIFF goes on, and whether UPTODATE has come.
	diff             []wire.Zxid
	inDiff, upToDate bool

	heard  [2]int64    // ms of the clock of each end at which it has taken a packet, or has begun a part of the term
	syncs  int         // syncs that the leader has taken from a ZooKeeper learner, or as a ZooKeeper leader, in the batch under way
	term   wire.Epoch  // the epoch that the leader has announced
	stream *snapStream // the snapshot that the leader is sending; nil: there is none
	pieces int         // pieces of a snapshot that have arrived at the learner, while the rest has not
}

// peer returns the id of the server at the other end of the link.
func (l *link) peer(v *server) ensemble.ServerID {
	if l.ends[0] == v {
		return l.ends[1].id
	}
	return l.ends[0].id
}

// at returns which end of the link the present process of a server has. It returns false if the
// process has no open end.
func (l *link) at(v *server) (int, bool) {
	for i, e := range l.ends {
		if e == v && l.lives[i] == v.life && l.tcp.ends[i].open {
			return i, true
		}
	}
	return 0, false
}

// packet is a packet between servers on its way. A SNAP packet carries the bytes of the
// snapshot.
type packet struct {
	packet      *peerwire.QuorumPacket
	snapshot    []byte
	undelivered []*record.Txn
	reaches     wire.Zxid // as in receivedSnapshot
}

// redial is how long a learner waits before it dials a server again that does not lead yet,
// in µs.
const redial = 10 * machine.Millisecond

// dialLeader dials the leader that Ready names until there is a link. As in internal/server, another leader is dialled at once.
func (v *server) dialLeader(leader ensemble.ServerID) {
	if leader == v.dialsLeader {
		return
	}
	v.dialsLeader = leader
	v.dials++
	v.dialAgain(v.dials)
}

// dialAgain dials the leader once more, unless Ready has named another one since it named this one, when v.dials was dials.
func (v *server) dialAgain(dials int) {
	if dials != v.dials || v.dialsLeader == peerwire.NoServer {
		return
	}
	o := v.sim.server(v.dialsLeader)
	v.dialPort(o, func(outcome string) {
		switch {
		case dials != v.dials:
		case outcome == connected && o.up && o.listens:
			v.link(o)
		default:
			v.later(redial, func() { v.dialAgain(dials) })
		}
	})
}

// dialPort dials a server's port for learners.
func (v *server) dialPort(o *server, done func(outcome string)) {
	if v.sim.net.filters[o.Place] != 0 {
		v.sim.reach(situationFiltered)
		v.later(dialTimeout, func() { done(timedOut) })
		return
	}
	v.dial(o, done)
}

// link connects a learner to its leader.
func (v *server) link(o *server) {
	s := v.sim
	s.lastLink++
	l := &link{id: s.lastLink, tcp: s.net.newConn(&v.Host, &o.Host), ends: [2]*server{v, o}, lives: [2]int{v.life, o.life}}
	for i := range l.tcp.ends {
		l.tcp.ends[i].out.port = &o.Host
	}
	for i, self := range l.ends {
		self.links = append(slices.DeleteFunc(self.links, func(o *link) bool { _, open := o.at(self); return !open }), l)
		life := self.life
		l.tcp.ends[i].take = func(load any) {
			if self.life != life {
				return
			}
			if p, whole := load.(packet); whole {
				self.receive(l, p)
			} else {
				self.pieceArrived(l)
			}
		}
		l.tcp.ends[i].gone = func(why string) {
			if i == 0 {
				l.cutOff(s)
			}
			if self.life == life {
				self.linkEnds(l, i)
				self.push(replica.Zab{Event: zab.Closed{Link: l.id, Why: why}})
			}
		}
	}
	s.detail("%d links to %d as %d", v.id, o.id, l.id)
	v.push(replica.Linked{Server: o.id, Link: l.id})
	o.push(replica.Zab{Event: zab.Opened{Link: l.id}})
}

// receive encodes a packet and decodes it again, as the wire would.
func (v *server) receive(l *link, p packet) {
	q := new(peerwire.QuorumPacket)
	if err := wire.Decode(wire.Append(nil, p.packet), q); err != nil {
		v.sim.fail("Wire", "%d sent %v, which cannot be read: %v", l.ends[0].id, p.packet.Type, err)
		return
	}
	for _, o := range v.links {
		if o.id > l.id && o.ends == l.ends {
			v.sim.reach(situationOldLink)
			break
		}
	}
	if v.sim.detailed && q.Type != peerwire.PacketPing {
		v.sim.detail("%d gets %v %v on link %d", v.id, q.Type, q.Zxid, l.id)
	}
	if v.compatible && v == l.ends[0] {
		l.noteReceived(q)
	}
	if q.Type == peerwire.PacketTouch && v == l.ends[0] {
		v.sim.reach(situationTouched)
	}
	if q.Type == peerwire.PacketSnap {
		v.receivedSnapshots[l.id] = l.received(p)
	}
	v.exchange(Exchange{Peer: l.peer(v), Packet: q, Snapshot: p.snapshot, Link: l.id})
	v.push(replica.Zab{Event: zab.Received{Link: l.id, Packet: q}})
}

// findLink returns the link of which this server has an open end; nil: there is none.
func (v *server) findLink(id zab.LinkID) (*link, int) {
	for _, l := range v.links {
		if l.id == id {
			if i, open := l.at(v); open {
				return l, i
			}
		}
	}
	return nil, 0
}

// sendPacket sends a packet on its link. The checkers compare what the packet promises with
// the disk.
func (v *server) sendPacket(m zab.Message) {
	l, i := v.findLink(m.Link)
	if l == nil {
		return
	}
	v.sim.see(v.promises(l, i, m.Packet))
	if v.lacksTree && i == 0 && m.Packet.Type == peerwire.PacketAck {
		v.sim.fail("Snapshot", "server %d acknowledges %v before it has the tree of the snapshot that it has installed", v.id, m.Packet.Zxid)
		return
	}
	switch {
	case m.Snapshot:
		v.stream(l, i, m)
	case i == 1 && l.stream != nil:
		l.stream.behind = append(l.stream.behind, packet{packet: m.Packet})
	default:
		l.tcp.send(i, packet{packet: m.Packet})
	}
	v.exchange(Exchange{Peer: l.ends[1-i].id, Sent: true, Packet: m.Packet, Link: l.id})
	if v.compatible && i == 0 {
		v.acknowledgeDiff(l, m.Packet)
	}
}

// hears records that a server takes a packet of a link. A packet that is nil says that the link is there.
func (v *server) hears(id zab.LinkID, p *peerwire.QuorumPacket) {
	for _, l := range v.links {
		if l.id != id {
			continue
		}
		i := l.end(v)
		l.heard[i] = v.at.Mono
		if i == 1 && p != nil && p.Type == peerwire.PacketRequest && v.leads() && (v.compatible || l.ends[0].compatible) {
			var q peerwire.ForwardedRequest
			if wire.Decode(p.Data, &q) == nil && q.Op == wire.OpSync {
				l.syncs++
			}
		}
	}
}

// sawSyncs shows the checkers which syncs a leader has taken in a batch.
func (v *server) sawSyncs() {
	for _, l := range v.links {
		if l.syncs > 0 && l.end(v) == 1 {
			v.sim.see(check.SyncsTaken{Link: l.id, N: l.syncs, Log: v.log.Last()})
			l.syncs = 0
		}
	}
}

// end returns which end of the link a server has.
func (l *link) end(v *server) int {
	if l.ends[0] == v {
		return 0
	}
	return 1
}

// promises returns what the checkers see of a packet to another server.
func (v *server) promises(l *link, end int, p *peerwire.QuorumPacket) check.Promised {
	to, byLearner := l.ends[1-end], end == 0
	switch p.Type {
	case peerwire.PacketLeaderInfo:
		l.term = p.Zxid.Epoch()
		v.sim.nemesis.announced(v, to, l.term)
	case peerwire.PacketNewLeader:
		v.sim.nemesis.begins(v, to, l.term)
	case peerwire.PacketUpToDate:
		l.heard[end] = v.at.Mono
	case peerwire.PacketPing:
		if !byLearner {
			v.sim.nemesis.naps(v)
		}
	}
	return check.Promised{
		Server: v.id, ByLearner: byLearner, Packet: p, Link: l.id, At: v.sim.now, Since: v.began, Term: l.term, Epoch: v.standing.Epoch, Log: v.log.Last(), SilentMS: v.at.Mono - l.heard[end],
		Disk: v.diskFor(p),
		To:   check.Receiver{Server: to.id, Zxid: to.durable(), Wiped: to.unknown && !to.has || to.forgetful},
	}
}

// hangUp ends a link from this side.
func (v *server) hangUp(id zab.LinkID) {
	if l, i := v.findLink(id); l != nil {
		v.linkEnds(l, i)
		if v.sim.random.Chance(30) {
			l.tcp.abort(i)
		} else {
			l.tcp.close(i)
		}
	}
}

// unlisten ends the links of learners when this server stops leading.
func (v *server) unlisten() {
	for _, l := range v.links {
		if i, open := l.at(v); open && i == 1 {
			v.linkEnds(l, i)
			l.tcp.close(i)
		}
	}
}
