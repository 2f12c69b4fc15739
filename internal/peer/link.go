package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

const (
	// readChunk is how many bytes of a link are read at a time.
	readChunk = 64 << 10
	// receivedMax is how many packets one event carries at most.
	receivedMax = 256
	// progressEvery is how often the arrival of a snapshot is reported.
	progressEvery = 50 * time.Millisecond
)

// link is one connection between a leader and a learner. Its reader, run, reports all its
// events; its writer sends what is queued.
type link struct {
	l    *Links
	id   peerwire.LinkID
	conn net.Conn
	in   *input
	r    *bufio.Reader
	linkKind
	began   time.Time
	traffic traffic
	written chan struct{}
	through wire.Zxid // up to where the last snapshot that was sent may contain transactions; only the writer uses it

	mu        sync.Mutex
	arrived   sync.Cond // on mu: something is queued, or the link ends
	queue     []outgoing
	waiting   int // bytes queued or being written
	gauge     gauge
	finishing bool // nothing more is queued or received
	ended     bool
	why       string // why it ended; the first reason counts
}

// linkKind says what a link is for.
type linkKind struct {
	learner  bool // this end is the learner, which has dialled
	queueMax int  // how many bytes may wait to be sent
}

func newLink(l *Links, id peerwire.LinkID, in *input, r *bufio.Reader, kind linkKind) *link {
	k := &link{l: l, id: id, conn: in.Conn, in: in, r: r, linkKind: kind, began: time.Now(), written: make(chan struct{})}
	k.arrived.L = &k.mu
	in.figures = &l.figures
	in.progress = func() { k.tell(Progress{id}) }
	return k
}

// run reports the events of the link from the first to the last.
func (k *link) run(first Event) {
	k.l.o.Handle(first)
	k.l.done.Go(k.write)
	err := k.read()
	k.mu.Lock()
	finishing := k.finishing
	k.mu.Unlock()
	if finishing {
		<-k.written // the writer still sends what was queued
	}
	k.end(reason(err))
	k.l.forget(k)
	k.l.o.Handle(Closed{k.id, k.why})
	<-k.written
	k.conn.Close()
}

// end stops both goroutines; the reader closes the connection.
func (k *link) end(why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endLocked(why)
}

func (k *link) endLocked(why string) {
	if k.why == "" {
		k.why = why
	}
	k.ended = true
	k.conn.SetDeadline(past)
	k.arrived.Broadcast()
}

// finish makes the writer end the link after everything queued is sent.
func (k *link) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.finishing || k.ended {
		return
	}
	k.finishing, k.why = true, "this server closed the connection"
	k.conn.SetDeadline(time.Now().Add(k.l.o.FlushTimeout))
	k.arrived.Broadcast()
}

// tell reports an event unless the link is finishing.
func (k *link) tell(e Event) {
	k.mu.Lock()
	finishing := k.finishing
	k.mu.Unlock()
	if !finishing {
		k.l.o.Handle(e)
	}
}

// read passes on packets until the connection ends.
func (k *link) read() error {
	for first := true; ; {
		batch, err := k.batch()
		if len(batch) > 0 {
			if first && k.learner {
				k.l.leaderAnswered()
			}
			first = false
			k.received(batch)
		}
		if err != nil {
			return err
		}
	}
}

// received counts packets and reports them.
func (k *link) received(batch []*peerwire.QuorumPacket) {
	k.l.figures.Received.Add(int64(len(batch)))
	k.traffic.arrived(batch)
	k.tell(Received{k.id, batch})
}

// batch reads one packet and those that have arrived with it. A SNAP comes alone: the
// packets before it are passed on before its snapshot is read.
func (k *link) batch() ([]*peerwire.QuorumPacket, error) {
	p := new(peerwire.QuorumPacket)
	if err := peerwire.ReadPacket(k.r, p, k.l.o.PacketMax); err != nil {
		return nil, k.malformed(err)
	}
	batch := []*peerwire.QuorumPacket{p}
	for p.Type != peerwire.PacketSnap && len(batch) < receivedMax {
		if p = k.arrivedPacket(); p == nil {
			return batch, nil
		}
		batch = append(batch, p)
	}
	if p.Type != peerwire.PacketSnap {
		return batch, nil
	}
	if before := batch[:len(batch)-1]; len(before) > 0 {
		k.received(before)
	}
	if err := k.snapshot(p); err != nil {
		return nil, err
	}
	return []*peerwire.QuorumPacket{p}, nil
}

// arrivedPacket decodes a packet that is completely in memory; nil if there is none.
func (k *link) arrivedPacket() *peerwire.QuorumPacket {
	b, _ := k.r.Peek(k.r.Buffered())
	c := wire.Decoder(b)
	var p peerwire.QuorumPacket
	p.Code(&c)
	if len(b) == 0 || c.Err() != nil || c.Offset() > k.l.o.PacketMax {
		return nil // the next read waits for it, or reports it
	}
	if p.Data != nil {
		p.Data = append(make([]byte, 0, len(p.Data)), p.Data...)
	}
	k.r.Discard(c.Offset()) // this cannot fail, because the bytes were just seen
	return &p
}

// errSnapshot says that a snapshot came and Options.ReadSnapshot is not set.
var errSnapshot = errors.New("a snapshot arrived, but this server does not accept one")

// snapshot passes the stream behind a SNAP to Options.ReadSnapshot.
func (k *link) snapshot(p *peerwire.QuorumPacket) error {
	if !k.learner || k.l.o.ReadSnapshot == nil {
		return k.malformed(errSnapshot)
	}
	k.in.telling = true
	defer func() { k.in.telling = false }()
	if err := k.l.o.ReadSnapshot(k.id, p, k.r); err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	return nil
}

// RemoteAlert is net.OpError.Op of an error that the other end of a TLS connection has sent.
const RemoteAlert = "remote error"

// refusedByAlert reports whether the other end has ended a TLS connection with an alert. With TLS 1.3 a
// server that refuses this end's certificate does that after the handshake.
func refusedByAlert(err error) bool {
	op := (*net.OpError)(nil)
	return errors.As(err, &op) && op.Op == RemoteAlert
}

// malformed logs an error that a correct peer does not cause.
func (k *link) malformed(err error) error {
	switch {
	case refusedByAlert(err) && k.learner:
		k.l.notices.Say(slog.LevelWarn, "the leader refused the connection of this server", k.conn.RemoteAddr().String(), "err", err)
		k.l.leaderRefused()
		return err
	case refusedByAlert(err):
		k.l.notices.Say(slog.LevelWarn, "a server ended its connection", k.conn.RemoteAddr().String(), "err", err)
		return err
	}
	if err != io.EOF && !endedRemotely(err) && !errors.Is(err, net.ErrClosed) && !timedOut(err) {
		k.l.notices.Say(slog.LevelWarn, "a server sent bytes that are not a packet", k.conn.RemoteAddr().String(), "err", err)
	}
	return err
}

// reason says, for operators, how a link ended.
func reason(err error) string {
	switch {
	case err == nil:
		return "this server closed the connection"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the other side closed the connection in the middle of a packet"
	case errors.Is(err, io.EOF):
		return "the other side closed the connection"
	case connectionReset(err):
		return "the other side reset the connection"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "the other side has stopped reading"
	}
	return err.Error()
}

// input is the stream that a link reads. It counts bytes, and reports progress while a
// snapshot arrives. Only the reader uses it.
type input struct {
	net.Conn
	figures  *Figures // nil before the link is open
	progress func()
	telling  bool
	told     time.Time
}

func (in *input) Read(p []byte) (int, error) {
	n, err := in.Conn.Read(p)
	if in.figures != nil {
		in.figures.BytesReceived.Add(int64(n))
	}
	if in.telling && n > 0 && time.Since(in.told) >= progressEvery {
		in.told = time.Now()
		in.progress()
	}
	return n, err
}
