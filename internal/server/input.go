package server

import (
	"encoding/binary"
	"io"

	"bellwether/wire"
)

// inputIdle is the size of the buffer that an idle connection keeps; inputBusy
// that of the one it borrows while more comes in at once, and inputSome that of
// the one it gets while too many are lent. A frame that is larger gets a buffer
// that grows with what arrives, so that a length alone costs nothing.
const (
	inputIdle = 512
	inputSome = 4 << 10
	inputBusy = bufferKept
)

// input reads frames from a connection.
type input struct {
	src    io.Reader
	max    int    // the longest frame
	idle   []byte // inputIdle bytes, always there
	buf    []byte // idle or a larger one
	lent   *buffer
	budget *budget // bounds what is lent; nil: unbounded
	r, w   int     // the unread part of buf
	filled bool
}

// read waits for more input. Frames returned before are invalid afterwards.
func (in *input) read() error {
	in.makeRoom()
	n, err := in.src.Read(in.buf[in.w:])
	in.w += n
	in.filled = in.w == len(in.buf)
	if n > 0 {
		return nil
	}
	return err
}

// makeRoom leaves space behind w.
func (in *input) makeRoom() {
	if in.buf == nil {
		in.idle = make([]byte, inputIdle)
		in.buf = in.idle
	}
	rest := in.buf[in.r:in.w]
	need := frameEnd(rest)
	switch {
	case len(rest) == 0 && !in.filled:
		in.swap(in.idle)
	case len(in.buf) < inputBusy && (in.filled || need > len(in.buf)) && in.borrow(rest):
	case len(in.buf) < inputSome && in.filled:
		some := make([]byte, inputSome)
		copy(some, rest)
		in.swap(some)
	case need > len(in.buf) && len(rest) > len(in.buf)/2:
		bigger := make([]byte, min(2*len(in.buf), need))
		copy(bigger, rest)
		in.swap(bigger)
	default:
		copy(in.buf, rest)
	}
	in.r, in.w = 0, len(rest)
}

// frameEnd is how long the frame is that rest begins, with its length.
func frameEnd(rest []byte) int {
	if len(rest) < 4 {
		return 4
	}
	return int(binary.BigEndian.Uint32(rest)) + 4
}

// borrow changes to a pooled buffer; false: too many are lent.
func (in *input) borrow(rest []byte) bool {
	if !in.budget.lendInput() {
		return false
	}
	b := takeLarge()
	room := b.b[:inputBusy]
	copy(room, rest)
	in.swap(room)
	in.lent = b
	return true
}

// swap changes to another buffer and gives back a pooled one.
func (in *input) swap(b []byte) {
	if in.lent != nil {
		giveBuffer(in.lent)
		in.budget.returnInput()
	}
	in.buf, in.lent = b, nil
}

// release gives back what is borrowed, at the end.
func (in *input) release() { in.swap(nil) }

// frame returns the payload of the next whole frame, nil if there is none.
func (in *input) frame() ([]byte, error) {
	have := in.buf[in.r:in.w]
	if len(have) < 4 {
		return nil, nil
	}
	n := int(int32(binary.BigEndian.Uint32(have)))
	if n < 0 || n > in.max {
		return nil, &wire.FrameError{Len: n, Max: in.max}
	}
	if len(have) < 4+n {
		return nil, nil
	}
	in.r += 4 + n
	return have[4 : 4+n : 4+n], nil
}
