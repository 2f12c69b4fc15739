package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// FrameMax is the default limit of a frame's payload in bytes (jute.maxbuffer).
const FrameMax = 0xfffff

// FrameError: a frame's length is negative or above the limit.
type FrameError struct{ Len, Max int }

func (e *FrameError) Error() string {
	return fmt.Sprintf("frame of %d bytes, at most %d are accepted (jute.maxbuffer)", e.Len, e.Max)
}

// ReadFrame reads one frame and returns its payload, in buf's memory where
// that is large enough. The length is checked against max before any byte
// of the payload is read or allocated for.
func ReadFrame(r io.Reader, buf []byte, max int) ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(h[:])))
	if n < 0 || n > max {
		return nil, &FrameError{n, max}
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf, nil
}

// BeginFrame reserves the length of a frame at the end of dst; EndFrame
// fills it in. Between the two the payload is appended.
func BeginFrame(dst []byte) (out []byte, mark int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// EndFrame writes the length of the frame that began at mark.
func EndFrame(buf []byte, mark int) []byte {
	binary.BigEndian.PutUint32(buf[mark:], uint32(len(buf)-mark-4))
	return buf
}

// AppendFrame appends a whole frame made of the records in order.
func AppendFrame(dst []byte, records ...Record) []byte {
	dst, mark := BeginFrame(dst)
	for _, r := range records {
		dst = Append(dst, r)
	}
	return EndFrame(dst, mark)
}
