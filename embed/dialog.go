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

// dialog follows what a client and a server say on one connection, frame by frame: it
// knows whose session it is, which replies must be lost, and which frames are events.
type dialog struct {
	link  *link
	plain atomic.Bool // they do not speak in frames: a four-letter word

	requests sync.Mutex // held by who writes a request
	asked    frames
	greeted  bool // the client's first frame has passed

	replies  sync.Mutex // held by who writes a reply; mu may be taken under both
	answered frames
	welcomed bool // the server's first frame has passed
	lost     bool

	mu        sync.Mutex
	forgotten map[int32]*loss // replies to be lost, by xid
}

// loss is a reply that must be lost.
type loss struct {
	ops  []wire.OpCode
	done chan struct{} // closed when it was
}

// frames cuts a stream of bytes into frames.
type frames struct{ rest []byte }

// frameMax is larger than every frame: a longer length means that the bytes are no
// frames.
const frameMax = 1 << 28

// each calls do for every whole frame, and keeps the rest. It returns an error for a
// length that no frame has.
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

// errPlain says that the bytes are no frames.
var errPlain = errors.New("no frame")

// word returns the integer at an offset of a frame's payload, 0 behind its end.
func word(frame []byte, at int) uint64 {
	if len(frame) < 4+at+8 {
		return 0
	}
	return binary.BigEndian.Uint64(frame[4+at:])
}

// Where sessions stand in the first frames.
const (
	sessionInRequest  = 16
	sessionInResponse = 8
)

// request passes on what the client says.
func (d *dialog) request(b []byte, send func([]byte, time.Duration) error) error {
	d.requests.Lock()
	defer d.requests.Unlock()
	if d.plain.Load() {
		return send(b, 0)
	}
	var out []byte
	err := d.asked.each(b, func(frame []byte) error {
		if d.greeted {
			d.noteRequest(frame)
		} else {
			d.greeted = true
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
		if d.forgotten == nil {
			d.forgotten = map[int32]*loss{}
		}
		d.forgotten[int32(head>>32)] = l
	}
}

// reply passes on what the server says. If events must be late, it delays them and
// everything behind them.
func (d *dialog) reply(b []byte, send func([]byte, time.Duration) error) error {
	d.replies.Lock()
	defer d.replies.Unlock()
	switch {
	case d.lost:
		return errPipe
	case d.plain.Load():
		return send(b, 0)
	}
	var out []byte // frames that may leave together
	flush := func() error {
		if len(out) == 0 {
			return nil
		}
		err := send(out, 0)
		out = nil
		return err
	}
	err := d.answered.each(b, func(frame []byte) error {
		late, lost := d.fate(frame)
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

// fate returns what to do with a reply. The lock of replies is held.
func (d *dialog) fate(frame []byte) (late time.Duration, lost bool) {
	if !d.welcomed {
		d.welcomed = true
		d.belongs(Session(word(frame, sessionInResponse)))
		return 0, false
	}
	xid := int32(word(frame, 0) >> 32)
	if xid == wire.XidEvent {
		return d.link.n.watchDelay(), false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.forgotten[xid]
	if l == nil {
		return 0, false
	}
	delete(d.forgotten, xid)
	close(l.done)
	return 0, true
}

// lose ends the connection instead of passing a reply on. The lock of replies is held.
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

// ended notes that the connection is over and no reply of it will come.
func (d *dialog) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.forgotten {
		close(l.done)
	}
	clear(d.forgotten)
}

// takeLoss returns the first loss that is due for an operation.
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
