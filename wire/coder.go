package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
	"unsafe"
)

// ElementMax is the largest string or buffer, in bytes, that a decoder
// accepts: jute.maxbuffer (0xfffff) plus the same again of extra size, the
// upstream default.
const ElementMax = 2 * 0xfffff

// What a decoder reports, wrapped with the offset at which it stopped.
var (
	// ErrShort: the input ends inside a field.
	ErrShort = errors.New("record is cut short")
	// ErrLength: a length or count that no well-formed record has.
	ErrLength = errors.New("unreasonable length")
	// ErrNull: null where the field must have a value.
	ErrNull = errors.New("null where a value is required")
	// ErrValue: a field holds a value outside its enumeration.
	ErrValue = errors.New("value is not allowed here")
)

// Record is anything that has a place on the wire. Code writes the record
// into an encoding coder or fills it from a decoding one.
type Record interface {
	Code(c *Coder)
}

// Coder carries one pass over a record, in one direction. The first error
// sticks; every later call is then without effect. A Coder is a plain value:
// keep it on the stack or reuse it, but give it to one goroutine at a time.
type Coder struct {
	// Alias makes decoded strings share the input's memory. Set it only when
	// the input is never written again.
	Alias bool

	buf      []byte
	off      int
	decoding bool
	err      error
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

// Decoding reports the direction.
func (c *Coder) Decoding() bool { return c.decoding }

// Err is the first error met, nil if none. An encoder meets an error only
// for a value that has no encoding.
func (c *Coder) Err() error { return c.err }

// Bytes is what an encoder has appended so far, the initial dst included.
func (c *Coder) Bytes() []byte { return c.buf }

// Offset is how far a decoder has read, or an encoder written.
func (c *Coder) Offset() int {
	if c.decoding {
		return c.off
	}
	return len(c.buf)
}

// Left is how many bytes a decoder still has.
func (c *Coder) Left() int { return len(c.buf) - c.off }

// Rest returns the unread input of a decoder without consuming it.
func (c *Coder) Rest() []byte { return c.buf[c.off:] }

// fail records the first error with its place.
func (c *Coder) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("offset %d: %w", c.Offset(), err)
	}
}

// take consumes n bytes of input, or fails and returns nil.
func (c *Coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > len(c.buf)-c.off {
		c.fail(ErrShort)
		return nil
	}
	b := c.buf[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// Byte codes one byte.
func (c *Coder) Byte(v *byte) {
	if !c.decoding {
		c.buf = append(c.buf, *v)
	} else if b := c.take(1); b != nil {
		*v = b[0]
	}
}

// Bool codes a boolean: written as 0 or 1, any other byte reads as true.
func (c *Coder) Bool(v *bool) {
	if !c.decoding {
		var b byte
		if *v {
			b = 1
		}
		c.buf = append(c.buf, b)
	} else if b := c.take(1); b != nil {
		*v = b[0] != 0
	}
}

// Int32 codes a jute int.
func (c *Coder) Int32(v *int32) {
	if !c.decoding {
		c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(*v))
	} else if b := c.take(4); b != nil {
		*v = int32(binary.BigEndian.Uint32(b))
	}
}

// Int64 codes a jute long.
func (c *Coder) Int64(v *int64) {
	if !c.decoding {
		c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(*v))
	} else if b := c.take(8); b != nil {
		*v = int64(binary.BigEndian.Uint64(b))
	}
}

// length codes the length of a string, buffer or vector; -1 stands for null.
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

// Buffer codes a byte slice; nil is null. A decoded slice aliases the input.
func (c *Coder) Buffer(v *[]byte) {
	if !c.decoding {
		if *v == nil {
			c.length(-1)
			return
		}
		c.length(len(*v))
		c.buf = append(c.buf, *v...)
		return
	}
	*v = c.takeElement()
}

// takeElement reads a length and that many bytes; nil for null or on error.
func (c *Coder) takeElement() []byte {
	n := c.length(0)
	if n == -1 || c.err != nil {
		return nil
	}
	if n < -1 || n > ElementMax {
		c.off -= 4
		c.fail(ErrLength)
		return nil
	}
	b := c.take(n)
	if b == nil && c.err == nil {
		b = []byte{}
	}
	return b
}

// String codes a string that must not be null.
func (c *Coder) String(v *string) {
	if !c.decoding {
		c.length(len(*v))
		c.buf = append(c.buf, *v...)
		return
	}
	b := c.takeElement()
	if b == nil {
		c.fail(ErrNull)
		return
	}
	*v = c.text(b)
}

// text makes a string of decoded bytes. Malformed UTF-8 does not fail: each
// bad sequence becomes U+FFFD, as upstream has it, which no path may contain.
func (c *Coder) text(b []byte) string {
	if !utf8.Valid(b) {
		return string([]rune(string(b)))
	}
	if c.Alias {
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	return string(b)
}

// NullString is a string that may be null; the zero value is null.
type NullString struct {
	String string
	Valid  bool // false: null
}

// Text returns a NullString that is not null.
func Text(s string) NullString { return NullString{String: s, Valid: true} }

// NullString codes a string that may be null.
func (c *Coder) NullString(v *NullString) {
	if !c.decoding {
		if !v.Valid {
			c.length(-1)
			return
		}
		c.String(&v.String)
		return
	}
	b := c.takeElement()
	if v.Valid = b != nil; v.Valid {
		v.String = c.text(b)
	} else {
		v.String = ""
	}
}

// vector codes a slice; nil is null. Each element takes at least min bytes,
// so that a count cannot make a decoder allocate more than the input backs.
// A negative count other than -1 reads as empty, as upstream has it.
func vector[T any](c *Coder, v *[]T, min int, each func(*Coder, *T)) {
	if !c.decoding {
		if *v == nil {
			c.length(-1)
			return
		}
		c.length(len(*v))
		for i := range *v {
			each(c, &(*v)[i])
		}
		return
	}
	n := c.length(0)
	switch {
	case c.err != nil || n == -1:
		*v = nil
		return
	case n < 0:
		n = 0
	case n > c.Left()/min:
		c.off -= 4
		c.fail(ErrLength)
		return
	}
	out := make([]T, n)
	for i := 0; i < n && c.err == nil; i++ {
		each(c, &out[i])
	}
	*v = out
}

// Strings codes a vector of strings.
func (c *Coder) Strings(v *[]string) { vector(c, v, 4, (*Coder).String) }

// ACLs codes an access-control list.
func (c *Coder) ACLs(v *[]ACL) { vector(c, v, 12, func(c *Coder, a *ACL) { a.Code(c) }) }

// IDs codes a list of identities.
func (c *Coder) IDs(v *[]ID) { vector(c, v, 8, func(c *Coder, a *ID) { a.Code(c) }) }
