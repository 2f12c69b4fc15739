package wire

import (
	"encoding/binary"
	"fmt"
)

// Nested encodes or decodes a buffer that holds the record r and nothing else. what names the
// record in errors.
func (c *Coder) Nested(what string, r Record) {
	if !c.decoding {
		mark := len(c.buf)
		c.length(0)
		r.Code(c)
		binary.BigEndian.PutUint32(c.buf[mark:], uint32(len(c.buf)-mark-4))
		return
	}
	b := c.takeElement()
	if c.err != nil {
		return
	}
	outer := *c
	*c = Decoder(b)
	c.Alias = outer.Alias || outer.src != nil
	r.Code(c)
	if c.err == nil && c.Left() != 0 {
		c.fail(ErrLength)
	}
	err, lossy := c.err, c.lossy
	*c = outer
	c.lossy = c.lossy || lossy
	if err != nil {
		c.Fail(len(b), fmt.Errorf("%s: %w", what, err))
	}
}
