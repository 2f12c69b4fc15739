package wire

import (
	"strings"
	"unicode/utf8"
	"unsafe"
)

// NullString is a string that may be null; the zero value is null.
type NullString struct {
	String string
	Valid  bool // false: null
}

// Text returns a NullString that is not null.
func Text(s string) NullString { return NullString{String: s, Valid: true} }

// String encodes or decodes a string that must not be null. Malformed UTF-8 does not fail: each bad
// sequence reads as U+FFFD, as in ZooKeeper. No path may contain that character.
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

// NullString encodes or decodes a string that may be null.
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

// nullReadsEmpty encodes or decodes a string whose null reads as the empty string, because the
// receiver answers both with the same error.
func (c *Coder) nullReadsEmpty(v *string) {
	s := Text(*v)
	c.NullString(&s)
	if c.decoding {
		*v = s.String
		c.lossy = c.lossy || !s.Valid
	}
}

// checkedPath encodes or decodes a path. A null path reads as the empty path, because ZooKeeper refuses
// both when it checks the form of the path. Inside a multi, a null path is an error at once.
func (c *Coder) checkedPath(v *string) {
	if c.inMulti {
		c.String(v)
		return
	}
	c.nullReadsEmpty(v)
}

// notedPath encodes or decodes a path that may be null, and records in null whether it is. ZooKeeper
// refuses a null path only after other checks, so the server must do the same. Inside a multi, a null
// path is an error at once.
func (c *Coder) notedPath(v *string, null *bool) {
	if c.inMulti {
		c.String(v)
		return
	}
	s := NullString{*v, !*null}
	c.NullString(&s)
	*v, *null = s.String, !s.Valid
}

// UTF8 decodes text that arrives outside of a record's strings, such as the credentials
// of an auth packet. As in strings of records, each malformed sequence becomes U+FFFD,
// with the boundaries of Java's decoder, so that every server computes the same identity
// from the same bytes.
func UTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return repair(b)
}

// text makes a string of decoded bytes.
func (c *Coder) text(b []byte) string {
	switch {
	case !utf8.Valid(b):
		c.lossy = true
		return repair(b)
	case c.Alias || c.src != nil:
		return unsafe.String(unsafe.SliceData(b), len(b))
	default:
		return string(b)
	}
}

// repair replaces each bad sequence of b by U+FFFD.
func repair(b []byte) string {
	size := 0
	for r, rest := nextRune(b); r >= 0; r, rest = nextRune(rest) {
		size += utf8.RuneLen(r)
	}
	var out strings.Builder
	out.Grow(size)
	for r, rest := nextRune(b); r >= 0; r, rest = nextRune(rest) {
		out.WriteRune(r)
	}
	return out.String()
}

// nextRune returns the first character of b and what follows it; -1 at the end.
func nextRune(b []byte) (r rune, rest []byte) {
	if len(b) == 0 {
		return -1, nil
	}
	r, size := utf8.DecodeRune(b)
	if r == utf8.RuneError && size == 1 {
		size = badSequence(b)
	}
	return r, b[size:]
}

// badSequence returns how many bytes Java's decoder counts as one bad sequence at the start
// of b. b must not begin with a valid sequence. They are as many bytes as could begin a
// valid one; the three bytes of an encoded surrogate count as one sequence.
func badSequence(b []byte) int {
	want, low, high := 1, byte(0x80), byte(0xbf) // whole length, range of the second byte
	switch lead := b[0]; {
	case lead >= 0xc2 && lead <= 0xdf:
		want = 2
	case lead >= 0xe0 && lead <= 0xef:
		want = 3
		if lead == 0xe0 {
			low = 0xa0
		}
	case lead >= 0xf0 && lead <= 0xf4:
		want = 4
		switch lead {
		case 0xf0:
			low = 0x90
		case 0xf4:
			high = 0x8f
		}
	}
	n := 1
	for n < want && n < len(b) && b[n] >= low && b[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}
