package peer

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"bellwether/internal/metrics"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

const (
	// writeChunk is about how many bytes are encoded for one write.
	writeChunk = 64 << 10
	// writeKept is the largest buffer that is kept for the next writes.
	writeKept = 1 << 20
	// packetCost is the memory of a queued packet without its data.
	packetCost = 64
)

// outgoing is a packet, perhaps with a snapshot after it.
type outgoing struct {
	packet   *peerwire.QuorumPacket
	snapshot func(io.Writer) (wire.Zxid, error)
}

// size returns the memory of a packet while it waits.
func (o outgoing) size() int {
	n := packetCost + len(o.packet.Data)
	for _, id := range o.packet.Auth {
		n += len(id.Scheme) + len(id.ID)
	}
	return n
}

// gauge measures a queue: how many packets wait when the writer takes them, and how long
// the first of them has waited, in ms.
type gauge struct {
	packets, wait *metrics.Summary // nil: not measured
	since         time.Time
}

// arrived is called when a packet is added to the empty queue.
func (g *gauge) arrived() {
	if g.packets != nil {
		g.since = time.Now()
	}
}

// taken is called when n packets are taken.
func (g *gauge) taken(n int) {
	if g.packets != nil && !g.since.IsZero() {
		g.packets.Observe(int64(n)*metrics.Unit, 1)
		g.wait.Observe(time.Since(g.since).Microseconds(), 1)
	}
}

// push adds a packet to the queue; it returns false if the link takes nothing any more. A
// queue that grows beyond its limit ends the link.
func (k *link) push(o outgoing) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.finishing || k.ended {
		return false
	}
	k.waiting += o.size()
	if k.waiting > k.queueMax {
		k.endLocked(fmt.Sprintf("it does not keep up: %d bytes wait to be sent, more than the limit of %d", k.waiting, k.queueMax))
		return false
	}
	if len(k.queue) == 0 {
		k.gauge.arrived()
	}
	k.queue = append(k.queue, o)
	k.arrived.Signal()
	return true
}

// take waits for something to send and returns all of it; it returns false at the end.
func (k *link) take(sent []outgoing) ([]outgoing, bool) {
	clear(sent)
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) == 0 && !k.finishing && !k.ended {
		k.arrived.Wait()
	}
	if k.ended || len(k.queue) == 0 {
		return nil, false
	}
	batch := k.queue
	k.gauge.taken(len(batch))
	k.queue = sent[:0]
	return batch, true
}

// sent subtracts what was written from the size of the queue.
func (k *link) sent(packets, bytes int) {
	k.l.figures.Sent.Add(int64(packets))
	k.traffic.sent.Add(int64(packets))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting -= bytes
}

// write sends what is queued, as much as possible with one write.
func (k *link) write() {
	defer close(k.written)
	var buf []byte
	var batch []outgoing
	for more := true; ; {
		if batch, more = k.take(batch); !more {
			break
		}
		var err error
		if buf, err = k.writeBatch(buf[:0], batch); err != nil {
			k.end(reason(err))
			return
		}
		if cap(buf) > writeKept {
			buf = nil
		}
	}
	closeWrite(k.conn) // the reader ends when the other side has seen that
}

// writeBatch sends packets in order.
func (k *link) writeBatch(buf []byte, batch []outgoing) ([]byte, error) {
	packets, bytes := 0, 0
	for i, o := range batch {
		p := o.packet
		if p.Zxid <= k.through && k.l.o.WithoutDigest != nil {
			p = k.l.o.WithoutDigest(p)
		}
		buf = wire.Append(buf, p)
		packets++
		bytes += o.size()
		if len(buf) < writeChunk && i < len(batch)-1 && o.snapshot == nil {
			continue
		}
		if _, err := (stream{k}).Write(buf); err != nil {
			return buf, err
		}
		k.sent(packets, bytes)
		buf, packets, bytes = buf[:0], 0, 0
		if o.snapshot == nil {
			continue
		}
		if err := k.writeSnapshot(o.snapshot); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func (k *link) writeSnapshot(snapshot func(io.Writer) (wire.Zxid, error)) (err error) {
	w := bufio.NewWriterSize(stream{k}, writeChunk)
	if k.through, err = snapshot(w); err != nil {
		return fmt.Errorf("sending the snapshot: %w", err)
	}
	return w.Flush()
}

// stream writes to a link. Each write gets a deadline, unless the link is to end and has
// one already.
type stream struct{ k *link }

func (s stream) Write(b []byte) (int, error) {
	s.k.mu.Lock()
	if !s.k.finishing && !s.k.ended {
		s.k.conn.SetWriteDeadline(time.Now().Add(s.k.l.o.WriteTimeout))
	}
	s.k.mu.Unlock()
	n, err := s.k.conn.Write(b)
	s.k.l.figures.BytesSent.Add(int64(n))
	return n, err
}
