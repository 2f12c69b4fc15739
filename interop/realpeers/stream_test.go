package realpeers

import (
	"bufio"
	"io"
	"net"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// stream is one direction of a connection. Its bytes wait in chunks while the servers are
// cut off from each other. The lock of the network guards chunks and ended.
type stream struct {
	*proxy
	link   zab.LinkID
	back   bool // from the server that was dialled to the one that dialled
	chunks [][]byte
	ended  bool // no more bytes will come
}

// read reads everything that a server sends, records the packets in it, and keeps the
// bytes for write.
func (s *stream) read(conn net.Conn) {
	r := io.Reader(&tee{conn, s})
	var err error
	switch {
	case !s.election:
		err = s.readPackets(bufio.NewReader(r))
	case s.back:
		err = s.readNotifications(r)
	default:
		first := bufio.NewReader(conn)
		if err = s.readInitial(first); err == nil {
			err = s.readNotifications(&tee{first, s})
		}
	}
	if err != nil {
		_, _ = io.Copy(io.Discard, r) // bytes that cannot be understood are passed on as well
	}
	s.net.set(func() { s.ended = true })
}

// tee keeps a copy of all bytes that are read.
type tee struct {
	from io.Reader
	s    *stream
}

func (t *tee) Read(b []byte) (int, error) {
	n, err := t.from.Read(b)
	if n > 0 {
		t.s.keep(b[:n])
	}
	return n, err
}

func (s *stream) keep(b []byte) {
	c := append([]byte(nil), b...)
	s.net.set(func() { s.chunks = append(s.chunks, c) })
}

// readInitial passes on the first message of an election connection, which says where the
// sender listens. The address becomes that of a proxy: a server that has the larger id
// closes the connection and dials this address.
func (s *stream) readInitial(r *bufio.Reader) error {
	var m peerwire.InitialMessage
	if err := wire.ReadRecord(r, &m, peerwire.InitialMax); err != nil {
		return err
	}
	m.Addresses = []string{s.net.find(s.to, s.from, true).addr}
	s.keep(wire.Append(nil, &m))
	return nil
}

func (s *stream) readNotifications(r io.Reader) error {
	for {
		b, err := peerwire.ReadElectionFrame(r, nil)
		if err != nil {
			return err
		}
		n := new(peerwire.Notification)
		if err := wire.Decode(b, n); err != nil {
			return err
		}
		s.record(sim.SentPacket{Notification: n})
	}
}

func (s *stream) readPackets(r *bufio.Reader) error {
	for {
		p := new(peerwire.QuorumPacket)
		if err := peerwire.ReadPacket(r, p, peerwire.PacketMax); err != nil {
			return err
		}
		s.record(sim.SentPacket{Packet: p, Link: s.link})
		if p.Type == peerwire.PacketSnap {
			if err := skipSnapshot(r); err != nil {
				return err
			}
		}
	}
}

// skipSnapshot reads until the end of a snapshot.
func skipSnapshot(r *bufio.Reader) error {
	end := "\x00\x00\x00\x0a" + peerwire.SnapshotEnd
	var last []byte
	for string(last) != end {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		last = append(last, b)
		last = last[max(0, len(last)-len(end)):]
	}
	return nil
}

// record records a packet of this stream.
func (s *stream) record(p sim.SentPacket) {
	if p.From, p.To = s.from, s.to; s.back {
		p.From, p.To = s.to, s.from
	}
	s.net.record(p)
}

// write passes the bytes on until their end, and then closes both connections.
func (s *stream) write(to, from net.Conn) {
	for {
		chunk := s.next()
		if chunk == nil {
			break
		}
		if _, err := to.Write(chunk); err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}

// next waits for bytes that may pass. It returns nil at their end.
func (s *stream) next() []byte {
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for s.cutLocked() || len(s.chunks) == 0 && !s.ended {
		n.changed.Wait()
	}
	if len(s.chunks) == 0 {
		return nil
	}
	chunk := s.chunks[0]
	s.chunks = s.chunks[1:]
	return chunk
}
