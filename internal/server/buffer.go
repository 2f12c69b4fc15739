package server

import "sync"

// buffer is a byte slice from a pool, the long part of a reply that follows it, and what
// an output counts about the replies in both.
type buffer struct {
	b       []byte
	long    *longPart // nil: none
	packets int64
	replies int64 // bytes of replies to requests
	last    int64 // length of the last reply or event; 0: there is none
	min     int64
	max     int64
}

// Sizes of pooled buffers.
const (
	bufferStart = 1 << 10  // capacity of a new buffer
	bufferKept  = 64 << 10 // capacity of a large buffer; a buffer of any other size is left to the garbage collector
)

// There are two pools, so that a caller that needs a large buffer rarely gets a small
// one.
var (
	smallBuffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, bufferStart)} }}
	largeBuffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, bufferKept)} }}
)

// takeBuffer returns an empty buffer that may grow.
func takeBuffer() *buffer { return smallBuffers.Get().(*buffer) }

// takeLarge returns an empty buffer of bufferKept bytes.
func takeLarge() *buffer { return largeBuffers.Get().(*buffer) }

// giveBuffer returns a buffer to its pool; the caller must not use it again.
func giveBuffer(b *buffer) {
	switch {
	case b == nil:
		return
	case cap(b.b) == bufferStart:
		*b = buffer{b: b.b[:0]}
		smallBuffers.Put(b)
	case cap(b.b) == bufferKept:
		*b = buffer{b: b.b[:0]}
		largeBuffers.Put(b)
	}
}

// isLong reports whether the buffer is written in pieces, in turns.
func (b *buffer) isLong() bool { return b.long != nil || len(b.b) > bufferKept }

// packet counts a reply or an event of n bytes, without the length field of its frame.
func (b *buffer) packet(n int64, event bool) {
	if b.packets++; b.max == 0 {
		b.min = n
	}
	b.last, b.min, b.max = n, min(b.min, n), max(b.max, n)
	if !event {
		b.replies += n
	}
}
