package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// readStep is how many bytes of memory a reader allocates before the first byte has
// arrived. After that it allocates at most twice as many bytes as have arrived. So a message
// that only claims to be long does not make its receiver allocate much memory.
const readStep = 8 << 10

// StreamDecoder returns a coder that reads r, at most max bytes in all; a longer record
// fails with ErrLength. What it decodes has memory of its own. It reads nothing ahead
// except into r's own buffer, so the bytes behind the record can still be read from r.
//
// r needs a buffer of at least 16 bytes, the least that bufio makes.
func StreamDecoder(r *bufio.Reader, max int) Coder {
	return Coder{decoding: true, src: r, left: max}
}

// ReadRecord fills rec from the stream r. It consumes exactly the record, at most max
// bytes. The error is io.EOF itself if r ended before the first byte, and wraps
// io.ErrUnexpectedEOF if it ended later.
func ReadRecord(r *bufio.Reader, rec Record, max int) error {
	c := StreamDecoder(r, max)
	rec.Code(&c)
	return c.err
}

// takeStream continues take when the input in memory is not enough.
func (c *Coder) takeStream(n int) []byte {
	if !c.mayRead(n) {
		return nil
	}
	b, err := c.src.Peek(n)
	if err != nil {
		c.failRead(len(b), err)
		return nil
	}
	c.src.Discard(n) // cannot fail: the bytes were just seen
	c.read(n)
	return b
}

// readBytes is like takeBytes, but for a stream.
func (c *Coder) readBytes(n int) []byte {
	if !c.mayRead(n) {
		return nil
	}
	b, err := readGrowing(c.src, nil, n)
	if err != nil {
		c.failRead(len(b), err)
		return nil
	}
	c.read(n)
	return b
}

// mayRead reports whether n more bytes may be read from a stream. If not, the decoder has
// failed, and mayRead has recorded the error.
func (c *Coder) mayRead(n int) bool {
	switch {
	case c.err != nil:
	case c.src == nil:
		c.fail(ErrShort)
	case n > c.left:
		c.fail(fmt.Errorf("%w: %d bytes where %d more are accepted", ErrLength, n, c.left))
	default:
		return true
	}
	return false
}

// read counts n bytes that came from the stream.
func (c *Coder) read(n int) {
	c.off += n
	c.left -= n
}

// failRead records that the stream ended, or failed, after only part bytes of a field.
func (c *Coder) failRead(part int, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if c.off+part == 0 {
			c.err = io.EOF
			return
		}
		err = io.ErrUnexpectedEOF
	}
	c.fail(err)
}

// readGrowing reads n bytes, into buf's memory while they fit, and otherwise into larger
// memory, which it makes in steps. After an error it returns what has arrived.
func readGrowing(r io.Reader, buf []byte, n int) ([]byte, error) {
	if buf = buf[:0]; buf == nil {
		buf = []byte{}
	}
	for len(buf) < n {
		if len(buf) == cap(buf) {
			bigger := make([]byte, len(buf), min(n, max(2*len(buf), readStep)))
			copy(bigger, buf)
			buf = bigger
		}
		have := len(buf)
		buf = buf[:min(n, cap(buf))]
		got, err := io.ReadFull(r, buf[have:])
		if err != nil {
			return buf[:have+got], err
		}
	}
	return buf, nil
}
