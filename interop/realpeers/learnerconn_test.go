package realpeers

import (
	"bufio"
	"net"
	"sync"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// learnerConn is a connection of a learner to its leader, one of which is ZooKeeper.
type learnerConn struct {
	*wires
	conn  net.Conn
	leads bool // ZooKeeper is the leader

	writing sync.Mutex

	// The lock of the wires guards these.
	upToDate bool
	sent     map[phase][]string // what ZooKeeper has sent, apart from pings, which are only counted
	requests []peerwire.ForwardedRequest
	pings    int
	used     bool // it belongs to a connection of the recorded run
	over     bool
}

// newLearnerConn reads everything that ZooKeeper sends on a connection.
func (w *wires) newLearnerConn(conn net.Conn, leads bool) *learnerConn {
	c := &learnerConn{wires: w, conn: conn, leads: leads, sent: map[phase][]string{}}
	w.wait.Go(func() {
		c.read()
		w.drop(conn)
		w.set(func() { c.over = true })
	})
	return c
}

func (c *learnerConn) read() {
	r := bufio.NewReader(c.conn)
	for {
		p := new(peerwire.QuorumPacket)
		if peerwire.ReadPacket(r, p, peerwire.PacketMax) != nil {
			return
		}
		if p.Type == peerwire.PacketPing && c.leads && c.upToDate { // only this goroutine changes upToDate
			c.write(wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: p.Zxid, Data: []byte{}})) // it has heard from no sessions
		}
		c.set(func() { c.take(p) })
		if p.Type == peerwire.PacketSnap && skipSnapshot(r) != nil {
			return
		}
	}
}

// take records a packet of ZooKeeper.
func (c *learnerConn) take(p *peerwire.QuorumPacket) {
	if p.Type == peerwire.PacketPing {
		c.pings++
		return
	}
	ph := phaseOf(p, c.leads, &c.upToDate)
	c.sent[ph] = append(c.sent[ph], packetText(p))
	var q peerwire.ForwardedRequest
	if p.Type == peerwire.PacketRequest && wire.Decode(p.Data, &q) == nil {
		c.requests = append(c.requests, q)
	}
}

// write sends bytes to ZooKeeper. If they are lost, what should follow will be missing.
func (c *learnerConn) write(b []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, _ = c.conn.Write(b)
}

// skipSnapshot reads until the end of a snapshot.
func skipSnapshot(r *bufio.Reader) error {
	var last []byte
	for string(last) != snapshotEnd {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		last = append(last, b)
		last = last[max(0, len(last)-len(snapshotEnd)):]
	}
	return nil
}

// snapshotEnd is what follows a snapshot: a string with its length.
const snapshotEnd = "\x00\x00\x00\x0a" + peerwire.SnapshotEnd
