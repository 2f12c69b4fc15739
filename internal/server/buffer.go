package server

import "sync"

// buffer is a byte slice that is lent by a pool, the long part of a reply that
// stands behind it, and what an output counts about the replies in both.
type buffer struct {
	b       []byte
	long    *long // nil: none
	packets int64
	replies int64 // bytes of replies to requests
	last    int64 // length of the last reply or event, and of the shortest and longest; 0: there is none
	min     int64
	max     int64
}

// The sizes of pooled buffers.
const (
	bufferStart = 1 << 10  // capacity of a fresh one
	bufferKept  = 64 << 10 // capacity of a large one; those of other sizes are left to the collector
)

// Two pools, so that those who need much rarely get little.
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

// packet counts a reply or an event of n bytes, its frame's length left out.
func (b *buffer) packet(n int64, event bool) {
	if b.packets++; b.max == 0 {
		b.min = n
	}
	b.last, b.min, b.max = n, min(b.min, n), max(b.max, n)
	if !event {
		b.replies += n
	}
}
