package shadow

import (
	"bytes"
	"encoding/binary"
	"errors"
)

const (
	// frameMax is the longest frame that a Tap believes. A longer one means that the bytes are not of the protocol. The
	// first bytes of TLS and of a four-letter word are longer lengths.
	frameMax = 1 << 28
	// requestMax and replyMax are the longest frames whose content is kept. requestMax is twice the default of
	// jute.maxbuffer. A list of 100,000 children is longer than that.
	requestMax = 2 << 20
	replyMax   = 16 << 20
	// headKept is how many bytes of a longer frame are kept: more than any header has.
	headKept = 64
)

var errFrameLength = errors.New("a length that no frame has")

// framer splits the bytes of one direction into frames, however they arrive.
type framer struct {
	max   int // the longest frame whose content is kept
	head  [4]byte
	got   int    // bytes of head that have arrived
	left  int    // bytes of the payload that have not arrived
	body  []byte // the payload so far; of a long frame only its begin; nil between frames
	whole bool   // body has or will have the whole payload
}

// feed takes the next bytes. It calls frame for each frame that they complete. frame may keep body.
func (f *framer) feed(p []byte, frame func(body []byte, whole bool) error) error {
	for len(p) > 0 {
		if f.got < len(f.head) {
			n := copy(f.head[f.got:], p)
			f.got, p = f.got+n, p[n:]
			if f.got < len(f.head) {
				return nil
			}
			f.left = int(int32(binary.BigEndian.Uint32(f.head[:])))
			if f.left < 0 || f.left > frameMax {
				return errFrameLength
			}
			f.body, f.whole = nil, f.left <= f.max
		}
		n := min(len(p), f.left)
		f.keep(p[:n])
		f.left, p = f.left-n, p[n:]
		if f.left == 0 {
			body := f.body
			f.got, f.body = 0, nil
			if err := frame(body, f.whole); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut drops the content of the frame that has arrived in part, as if the frame were too long.
func (f *framer) cut() {
	f.whole, f.body = false, bytes.Clone(f.body[:min(len(f.body), headKept)])
}

// keep adds bytes to the body. The memory grows with the bytes that have arrived, not with the length that the
// frame claims.
func (f *framer) keep(p []byte) {
	if !f.whole {
		p = p[:min(len(p), max(0, headKept-len(f.body)))]
	}
	f.body = append(f.body, p...)
}
