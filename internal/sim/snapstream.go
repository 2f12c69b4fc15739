package sim

import (
	"bytes"

	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/internal/zab"
)

// snapStream is a snapshot on its way to a learner. The leader reads its tree while further
// transactions are applied, and sends the snapshot in pieces. Packets that the leader sends
// to the learner in the meantime wait behind it.
type snapStream struct {
	v      *server
	link   *link
	end    int // the leader's end of the link
	packet packet
	snap   *snapshotting
	began  int64
	behind []packet
}

// piece is a part of a snapshot. The last part is in the packet itself.
type piece struct{}

// pieceLen is the number of bytes of a piece. It is small, because simulated trees are.
const pieceLen = 512

// piecesMax bounds the number of pieces.
const piecesMax = 40

// stream begins to send a snapshot behind a SNAP.
func (v *server) stream(l *link, end int, m zab.Message) {
	p := packet{packet: m.Packet, undelivered: upTo(v.undelivered, m.Packet.Zxid)}
	s := &snapStream{v: v, link: l, end: end, packet: p, snap: &snapshotting{Snapshot: v.tree.Snapshot()}, began: v.sim.now}
	l.stream = s
	v.sim.nemesis.streams(v, l)
	s.next(v.sim.random.Below(5*machine.Millisecond), s.readSessions)
}

// next continues the stream after d µs, unless the link has ended by then.
func (s *snapStream) next(d int64, do func()) {
	s.v.later(d, func() {
		if s.link.tcp.ends[s.end].open {
			do()
		}
	})
}

// readSessions reads the sessions. The znodes are read some time later.
func (s *snapStream) readSessions() {
	s.snap.readSessions()
	d := s.v.sim.random.Below(10 * machine.Millisecond)
	if s.v.sim.random.Chance(30) {
		d = s.v.sim.random.Below(300 * machine.Millisecond)
	}
	s.next(d+s.v.slowSnap, s.readNodes)
}

// readNodes reads the znodes, and then sends the pieces.
func (s *snapStream) readNodes() {
	var b bytes.Buffer
	if err := store.EncodeStream(&b, s.snap); err != nil {
		s.v.sim.fail("Snapshot", "%d cannot send its tree: %v", s.v.id, err)
	}
	s.packet.reaches, _ = s.snap.Digest()
	if s.packet.reaches > s.snap.Zxid() {
		s.v.sim.reach(situationSnapOfChanges)
	}
	s.packet.snapshot = b.Bytes()
	s.sendPieces(min(b.Len()/pieceLen+1, piecesMax))
}

// sendPieces sends the pieces that are left, one after the other, and then the packet and
// what waits behind it.
func (s *snapStream) sendPieces(left int) {
	tcp := s.link.tcp
	if left > 0 {
		tcp.send(s.end, piece{})
		s.next(s.v.sim.random.Below(machine.Millisecond)+s.v.slowSnap, func() { s.sendPieces(left - 1) })
		return
	}
	s.link.stream = nil
	for _, p := range append([]packet{s.packet}, s.behind...) {
		tcp.send(s.end, p)
	}
	if s.v.sim.now-s.began > slowStream {
		s.v.sim.reach(situationSnapSlow)
	}
}

// slowStream is how long a slow snapshot is sent, in µs.
const slowStream = machine.Second

// pieceArrived tells a learner that a piece of a snapshot has arrived.
func (v *server) pieceArrived(l *link) {
	l.pieces++
	v.push(replica.Zab{Event: zab.Progress{Link: l.id}})
}

// received is a snapshot that has arrived as a whole.
func (l *link) received(p packet) receivedSnapshot {
	l.pieces = 0
	return receivedSnapshot{p.packet.Zxid, p.snapshot, p.undelivered, p.reaches}
}

// cutOff records that a link ends at the learner, perhaps in the middle of a snapshot.
func (l *link) cutOff(s *Sim) {
	if l.pieces > 0 {
		l.pieces = 0
		s.reach(situationSnapCut)
	}
}

// streams often disturbs a snapshot that a leader has begun to send: it breaks the link,
// ends one of the two servers, or makes the leader slow.
func (n *nemesis) streams(v *server, l *link) {
	if n.streamed == nil || n.sim.calm {
		return
	}
	d, to := n.streamed, l.ends[0]
	long := d.Between(100*machine.Millisecond, 4*machine.Second)
	if d.Chance(25) {
		n.do(Act{Kind: SlowSnapshot, A: int(v.id), Value: d.Below(200 * machine.Millisecond)}, long, SlowSnapshot)
	}
	a, end := Act{}, Start
	switch d.Below(12) {
	case 0:
		a = Act{Kind: Reset, A: int(v.id), B: int(to.id)}
		end = ""
	case 1:
		a = Act{Kind: Kill, A: int(v.id)}
	case 2:
		a = Act{Kind: []Kind{Kill, PowerOff}[d.Below(2)], A: int(to.id)}
	case 3:
		a, end = Act{Kind: Cut, A: int(v.id), B: int(to.id)}, Join
	default:
		return
	}
	n.later(d.Below(50*machine.Millisecond), func() { n.do(a, long, end) })
}
