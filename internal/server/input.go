package server

import (
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"

	"bellwether/wire"
)

// inputIdle is the size of the buffer that an idle connection keeps. inputBusy is the
// size of the buffer that it borrows from a pool while more arrives at once, and inputSome
// the size of the buffer that it gets instead while memory is short. A larger frame gets a buffer
// that grows with the bytes that arrive, so that announcing a large length alone uses no
// memory.
const (
	inputIdle = 512
	inputSome = 2 << 10
	inputBusy = bufferKept
)

// input reads frames from a connection. While buf is larger than idle, it counts in the
// budget, until the connection has taken all of its requests. Invariant: 0 <= r <= w <=
// len(buf).
type input struct {
	src    io.Reader
	max    int    // longest frame allowed
	idle   []byte // inputIdle bytes, always there
	buf    []byte // idle or a larger one
	lent   *buffer
	r, w   int // the unread part of buf
	filled bool

	budget *budget
	claim  func(n int) bool // waits for memory; false: there will be none
	clock  func() int64     // the server's clock
	size   atomic.Int64     // bytes that the budget counts for buf
	since  atomic.Int64     // when the connection began to wait with a buffer larger than idle; 0: it does not wait
}

// errNoMemory: the connection ended while its input waited for memory.
var errNoMemory = errors.New("connection ended while it waited for memory for its input")

// read waits for more input. It invalidates all frames that were returned before.
func (in *input) read() error {
	if !in.makeRoom() {
		return errNoMemory
	}
	in.waits()
	n, err := in.src.Read(in.buf[in.w:])
	in.w += n
	in.filled = in.w == len(in.buf)
	if n > 0 {
		return nil
	}
	return err
}

// makeRoom makes space after w. It returns false if the connection has ended.
func (in *input) makeRoom() bool {
	if in.buf == nil {
		in.idle = make([]byte, inputIdle)
		in.buf = in.idle
	}
	rest := in.buf[in.r:in.w]
	need := frameEnd(rest)
	bigger := min(2*len(in.buf), need)
	switch {
	case len(rest) == 0 && !in.filled:
		in.swap(in.idle)
	case len(in.buf) < inputBusy && (in.filled || need > len(in.buf)) && in.borrow(rest):
	case len(in.buf) < inputSome && in.filled:
		in.budget.add(inputSome)
		in.move(make([]byte, inputSome), rest)
	case need > len(in.buf) && len(rest) > len(in.buf)/2:
		if !in.claim(bigger) {
			return false
		}
		in.move(make([]byte, bigger), rest)
	default:
		copy(in.buf, rest)
	}
	in.r, in.w = 0, len(rest)
	return true
}

// move changes to a larger buffer, which the budget counts.
func (in *input) move(b, rest []byte) {
	copy(b, rest)
	in.swap(b)
	in.size.Store(int64(len(b)))
}

// frameEnd returns the length of the frame at the start of rest, including its length
// field.
func frameEnd(rest []byte) int {
	if len(rest) < 4 {
		return 4
	}
	return int(binary.BigEndian.Uint32(rest)) + 4
}

// borrow changes to a pooled buffer. It returns false if memory is short.
func (in *input) borrow(rest []byte) bool {
	if in.budget.busy() || !in.budget.claim(inputBusy) {
		return false
	}
	b := takeLarge()
	in.move(b.b[:inputBusy], rest)
	in.lent = b
	return true
}

// swap changes to another buffer and returns the old one to its pool.
func (in *input) swap(b []byte) {
	if in.lent != nil {
		giveBuffer(in.lent)
	}
	in.buf, in.lent = b, nil
	if n := in.size.Swap(0); n > 0 {
		in.since.Store(0)
		in.budget.add(-int(n))
	}
}

// waits records when the connection began to wait while the budget counts its input.
func (in *input) waits() {
	if in.size.Load() > 0 && in.since.Load() == 0 {
		in.since.Store(in.clock())
	}
}

// held returns how many bytes the budget counts for the input if no request has been taken
// from it since before the given time; 0 otherwise.
func (in *input) held(before int64) int {
	if since := in.since.Load(); since == 0 || since >= before {
		return 0
	}
	return int(in.size.Load())
}

// release returns a borrowed buffer when the connection ends.
func (in *input) release() { in.swap(nil) }

// frame returns the payload of the next complete frame; nil if there is none.
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
	if in.since.Load() != 0 {
		in.since.Store(0)
	}
	return have[4 : 4+n : 4+n], nil
}
