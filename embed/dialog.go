package embed

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/wire"
)

// dialog parses what a client and a server send on one connection, frame by frame. It finds the session of the
// connection, the replies that must be lost, and the frames that are watch events.
type dialog struct {
	link  *link
	plain atomic.Bool // the connection does not carry frames but a four-letter word

	requests    sync.Mutex // held while the client's end writes
	asked       frames
	requestSeen bool // the client's first frame has passed

	replies      sync.Mutex // held while the server's end writes; mu may be locked while requests or replies is held
	answered     frames
	responseSeen bool // the server's first frame has passed
	lost         bool

	mu     sync.Mutex
	toLose map[int32]*loss // replies that must be lost, by the xid of their request
}

// loss is a call of LoseNextReply: the reply to one request must be lost.
type loss struct {
	ops  []wire.OpCode
	done chan struct{} // closed when the reply was lost
}

// frames cuts a stream of bytes into frames.
type frames struct{ rest []byte }

// frameMax is larger than every frame. A longer length shows that the bytes are not frames.
const frameMax = 1 << 28

// each calls do for every complete frame and keeps the rest for the next call. It returns errPlain for a length
// that no frame has.
func (f *frames) each(b []byte, do func(frame []byte) error) error {
	if len(f.rest) > 0 {
		b = append(f.rest, b...)
	}
	for len(b) >= 4 {
		n := int(int32(binary.BigEndian.Uint32(b)))
		if n < 0 || n > frameMax {
			f.rest = b
			return errPlain
		}
		if len(b) < 4+n {
			break
		}
		if err := do(b[:4+n]); err != nil {
			return err
		}
		b = b[4+n:]
	}
	f.rest = slices.Clone(b)
	return nil
}

// errPlain means that the bytes are not frames.
var errPlain = errors.New("no frame")

// word returns the 8-byte integer at an offset of a frame's payload, or 0 if the payload is shorter.
func word(frame []byte, at int) uint64 {
	if len(frame) < 4+at+8 {
		return 0
	}
	return binary.BigEndian.Uint64(frame[4+at:])
}

// The offsets of the session id in the first frames.
const (
	sessionInRequest  = 16
	sessionInResponse = 8
)

// request forwards what the client sends.
func (d *dialog) request(b []byte, send func([]byte, time.Duration) error) error {
	d.requests.Lock()
	defer d.requests.Unlock()
	if d.plain.Load() {
		return send(b, 0)
	}
	var out []byte
	err := d.asked.each(b, func(frame []byte) error {
		if d.requestSeen {
			d.noteRequest(frame)
		} else {
			d.requestSeen = true
			d.belongs(Session(word(frame, sessionInRequest)))
		}
		out = append(out, frame...)
		return nil
	})
	if err == errPlain {
		d.plain.Store(true)
		out = append(out, d.asked.rest...)
	}
	if len(out) == 0 {
		return nil
	}
	return send(out, 0)
}

// noteRequest checks whether the reply to a request must be lost.
func (d *dialog) noteRequest(frame []byte) {
	head := word(frame, 0)
	if l := d.link.n.takeLoss(wire.OpCode(int32(head))); l != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.toLose == nil {
			d.toLose = map[int32]*loss{}
		}
		d.toLose[int32(head>>32)] = l
	}
}

// reply forwards what the server sends. If watch events must be late, it delays them and everything after them.
func (d *dialog) reply(b []byte, send func([]byte, time.Duration) error) error {
	d.replies.Lock()
	defer d.replies.Unlock()
	switch {
	case d.lost:
		return errPipe
	case d.plain.Load():
		return send(b, 0)
	}
	var out []byte // frames that can be forwarded together
	flush := func() error {
		if len(out) == 0 {
			return nil
		}
		err := send(out, 0)
		out = nil
		return err
	}
	err := d.answered.each(b, func(frame []byte) error {
		late, lost := d.treatment(frame)
		if lost || late > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		switch {
		case lost:
			return d.lose()
		case late > 0:
			return send(frame, late)
		}
		out = append(out, frame...)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// treatment returns whether a reply must be lost, or by how much it must be delayed. The caller holds d.replies.
func (d *dialog) treatment(frame []byte) (late time.Duration, lost bool) {
	if !d.responseSeen {
		d.responseSeen = true
		d.belongs(Session(word(frame, sessionInResponse)))
		return 0, false
	}
	xid := int32(word(frame, 0) >> 32)
	if xid == wire.XidEvent {
		return d.link.n.watchDelay(), false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.toLose[xid]
	if l == nil {
		return 0, false
	}
	delete(d.toLose, xid)
	close(l.done)
	return 0, true
}

// lose ends the connection instead of forwarding a reply. The caller holds d.replies.
func (d *dialog) lose() error {
	d.lost = true
	d.link.there.abandon()
	d.link.there.finish(true)
	d.link.back.finish(false)
	return errPipe
}

func (d *dialog) belongs(session Session) {
	if session != 0 {
		d.link.n.belongs(d.link, session)
	}
}

// ended records that the connection has ended, so that none of its replies will arrive.
func (d *dialog) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.toLose {
		close(l.done)
	}
	clear(d.toLose)
}

// takeLoss removes and returns the first loss for an operation, or nil if there is none.
func (n *network) takeLoss(op wire.OpCode) *loss {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.losses, func(l *loss) bool { return slices.Contains(l.ops, op) })
	if i < 0 {
		return nil
	}
	l := n.losses[i]
	n.losses = slices.Delete(n.losses, i, i+1)
	return l
}

func (n *network) watchDelay() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.watches
}
