package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// FrameMax is the default limit of a frame's payload in bytes (jute.maxbuffer).
const FrameMax = 0xfffff

// FrameError says that the length of a frame is negative or above the limit.
type FrameError struct{ Len, Max int }

func (e *FrameError) Error() string {
	return fmt.Sprintf("frame of %d bytes, at most %d are accepted (jute.maxbuffer)", e.Len, e.Max)
}

// frameHeaderLen is the length of what precedes a frame's payload, in bytes.
const frameHeaderLen = 4

// ReadFrame reads one frame and returns its payload, in buf's memory if that is large
// enough. The content of buf up to its capacity is lost in any case. If the length is
// above max or below 0 the error is a *FrameError, and nothing behind the length was
// read. Memory is allocated only as the payload arrives, so a length alone costs the
// receiver nothing. The error is io.EOF if r ended between two frames, and
// io.ErrUnexpectedEOF if it ended inside one.
func ReadFrame(r io.Reader, buf []byte, max int) ([]byte, error) {
	head, err := frameHeader(r, buf)
	if err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head)))
	if n < 0 || n > max {
		return nil, &FrameError{n, max}
	}
	payload, err := readGrowing(r, buf, n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return payload, nil
}

// frameHeader reads a frame's first bytes. It allocates no memory if r is a bufio.Reader
// or buf is large enough.
func frameHeader(r io.Reader, buf []byte) ([]byte, error) {
	if br, ok := r.(*bufio.Reader); ok {
		head, err := br.Peek(frameHeaderLen)
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			br.Discard(frameHeaderLen) // cannot fail: the bytes were just seen
		}
		return head, err
	}
	if cap(buf) < frameHeaderLen {
		buf = make([]byte, frameHeaderLen)
	}
	buf = buf[:frameHeaderLen]
	_, err := io.ReadFull(r, buf)
	return buf, err
}

// BeginFrame reserves room for the length of a frame at the end of dst. The caller
// appends the payload, and EndFrame fills in the length.
func BeginFrame(dst []byte) (out []byte, mark int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// EndFrame writes the length of the frame that began at mark. It panics if the payload has
// 2^31 bytes or more, because a frame cannot hold them and a wrong length would make all
// later frames unreadable. Only a caller that fails to limit its payload gets there.
func EndFrame(buf []byte, mark int) []byte {
	binary.BigEndian.PutUint32(buf[mark:], frameLen(len(buf)-mark-frameHeaderLen))
	return buf
}

func frameLen(n int) uint32 {
	if n < 0 || n > math.MaxInt32 {
		panic(fmt.Sprintf("wire: a frame cannot hold %d bytes", n))
	}
	return uint32(n)
}

// AppendFrame appends a whole frame that holds the records in order.
func AppendFrame(dst []byte, records ...Record) []byte {
	dst, mark := BeginFrame(dst)
	c := Encoder(dst)
	for _, r := range records {
		r.Code(&c)
	}
	return EndFrame(c.buf, mark)
}
