package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// What a decoder reports, wrapped with the offset at which it stopped.
var (
	// ErrShort says that the input ends inside a field.
	ErrShort = errors.New("record is cut short")
	// ErrLength says that a length or count is one that no well-formed record has.
	ErrLength = errors.New("unreasonable length")
	// ErrNull says that there is null where the field must have a value.
	ErrNull = errors.New("null where a value is required")
	// ErrValue says that a field holds a value that is not allowed.
	ErrValue = errors.New("value is not allowed here")
	// ErrNoEnd says that the caller tried to read from a stream a record that ends where
	// its input ends. This is a mistake of the caller.
	ErrNoEnd = errors.New("record has no end of its own and cannot be read from a stream")
)

// Record is anything that can be encoded. Code writes the record into an encoding coder,
// or fills it from a decoding one. After a decoding error the record's content is
// undefined.
type Record interface {
	Code(c *Coder)
}

// Coder carries one pass over a record, in one direction. It keeps the first error:
// after it a decoder reads nothing more, and what an encoder has appended must be
// dropped. A Coder is a plain value: keep it on the stack, or reuse it by assigning a
// new [Encoder] or [Decoder] to it. Only one goroutine at a time may use it.
type Coder struct {
	// Alias makes decoded strings share the input's memory. Set it only when
	// the input is never written again.
	Alias bool

	buf      []byte
	off      int
	decoding bool
	inMulti  bool // inside a multi's list, where a null path is an error
	lossy    bool // see Canonical
	err      error

	src  *bufio.Reader // where a stream's bytes come from, nil: buf is the input
	left int           // how many more bytes may be taken from src
}

// Encoder returns a coder that appends to dst.
func Encoder(dst []byte) Coder { return Coder{buf: dst} }

// Decoder returns a coder that consumes src. The records it fills may alias src.
func Decoder(src []byte) Coder { return Coder{buf: src, decoding: true} }

// Append appends r to dst and returns the extended slice.
func Append(dst []byte, r Record) []byte {
	c := Encoder(dst)
	r.Code(&c)
	return c.buf
}

// Decode fills r from the start of src. Bytes behind the record are ignored,
// as upstream ignores them.
func Decode(src []byte, r Record) error {
	c := Decoder(src)
	r.Code(&c)
	return c.Err()
}

// Decoding reports whether the coder decodes.
func (c *Coder) Decoding() bool { return c.decoding }

// Err returns the first error, nil if there was none. An encoder has an error only for a
// value that has no encoding: a string, buffer or vector whose length is 2^31 or more.
func (c *Coder) Err() error { return c.err }

// Bytes returns what an encoder has appended so far, the initial dst included.
func (c *Coder) Bytes() []byte { return c.buf }

// Offset returns how many bytes a decoder has read, or an encoder has written.
func (c *Coder) Offset() int {
	if c.decoding {
		return c.off
	}
	return len(c.buf)
}

// Left returns how many bytes a decoder still has; on a stream, how many more it would
// accept.
func (c *Coder) Left() int {
	if c.src != nil {
		return c.left
	}
	return len(c.buf) - c.off
}

// Rest returns the unread input of a decoder without consuming it; on a stream it
// returns nothing.
func (c *Coder) Rest() []byte {
	if c.src != nil {
		return nil
	}
	return c.buf[c.off:]
}

// Canonical reports whether encoding what was decoded so far gives the input again, byte
// for byte. It does unless the input held one of these, all of which are read as
// ZooKeeper reads them: a boolean other than 0 and 1, a negative count other than -1,
// malformed UTF-8, a null that reads as an empty text, or a length or header that is
// ignored and differs from what an encoder writes there. The caller can find bytes
// behind the record with [Coder.Left].
func (c *Coder) Canonical() bool { return c.err == nil && !c.lossy }

// fail records the first error with its place.
func (c *Coder) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("offset %d: %w", c.Offset(), err)
	}
}

// Fail records an error that a record's Code has found, with its place, unless
// there is an error already. The bad field is the last n bytes that a decoder
// has consumed.
func (c *Coder) Fail(n int, err error) {
	if c.err == nil {
		c.off -= n
		c.fail(err)
	}
}

// NotCanonical notes, if lossy is true, that encoding the record will not give the
// decoded bytes again; see [Coder.Canonical].
func (c *Coder) NotCanonical(lossy bool) { c.lossy = c.lossy || lossy }

// take consumes the n bytes of a fixed field, or fails and returns nil. The result is
// valid until the next call.
func (c *Coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > len(c.buf)-c.off {
		return c.takeStream(n)
	}
	b := c.buf[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// Byte encodes or decodes one byte.
func (c *Coder) Byte(v *byte) {
	if !c.decoding {
		c.buf = append(c.buf, *v)
	} else if b := c.take(1); b != nil {
		*v = b[0]
	}
}

// Bool encodes or decodes a boolean: written as 0 or 1, any other byte reads as true.
func (c *Coder) Bool(v *bool) {
	if !c.decoding {
		var b byte
		if *v {
			b = 1
		}
		c.buf = append(c.buf, b)
	} else if b := c.take(1); b != nil {
		*v = b[0] != 0
		c.lossy = c.lossy || b[0] > 1
	}
}

// Int32 encodes or decodes a jute int.
func (c *Coder) Int32(v *int32) {
	if !c.decoding {
		c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(*v))
	} else if b := c.take(4); b != nil {
		*v = int32(binary.BigEndian.Uint32(b))
	}
}

// Int64 encodes or decodes a jute long.
func (c *Coder) Int64(v *int64) {
	if !c.decoding {
		c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(*v))
	} else if b := c.take(8); b != nil {
		*v = int64(binary.BigEndian.Uint64(b))
	}
}

// length encodes or decodes the length of a string, buffer or vector; -1 means null.
func (c *Coder) length(n int) int {
	if !c.decoding && n > math.MaxInt32 {
		c.fail(ErrLength)
		return -1
	}
	v := int32(n)
	c.Int32(&v)
	if c.err != nil {
		return -1
	}
	return int(v)
}

// Buffer encodes or decodes a byte slice; nil is null. A decoded slice shares memory with the input;
// from a stream it has memory of its own.
func (c *Coder) Buffer(v *[]byte) {
	if c.decoding {
		*v = c.takeElement()
		return
	}
	if *v == nil {
		c.length(-1)
		return
	}
	c.length(len(*v))
	c.buf = append(c.buf, *v...)
}

// takeElement reads a length and that many bytes; nil for null or on error.
func (c *Coder) takeElement() []byte {
	n := c.length(0)
	if n == -1 || c.err != nil {
		return nil
	}
	if n < 0 {
		c.Fail(4, ErrLength)
		return nil
	}
	return c.takeBytes(n)
}

// takeBytes consumes n bytes, which the record may keep; nil only on error.
func (c *Coder) takeBytes(n int) []byte {
	if c.src != nil {
		return c.readBytes(n)
	}
	if n == 0 {
		return []byte{}
	}
	return c.take(n)
}

// Tail encodes or decodes bytes without a length, which go on to the end of the input.
func (c *Coder) Tail(v *[]byte) {
	switch {
	case !c.decoding:
		c.buf = append(c.buf, *v...)
	case c.err == nil && c.Bounded():
		*v = c.takeBytes(c.Left())
	}
}

// Bounded reports whether the end of the input is known. If the decoder reads a stream, the
// end is not known, and Bounded makes the decoder fail with ErrNoEnd. Records that end where
// their input ends call it.
func (c *Coder) Bounded() bool {
	if c.src != nil {
		c.fail(ErrNoEnd)
	}
	return c.src == nil
}
