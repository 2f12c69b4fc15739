package server

import (
	"slices"
	"sync"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// longBytes is the length above which a reply is not copied for each client and not
// encoded under the output's lock: while that lock is held, an event can wait for it with
// the tree's lock held.
const longBytes = 16 << 10

// longPart is the part of a long reply that is written directly from the memory where it is,
// after the part that is encoded in a buffer. Names and data are shared with other
// readers and with the tree, and must not be changed. At most one of names, data and
// chunks is set.
type longPart struct {
	names  *tree.Names // names of a listing
	data   []byte      // data of a znode
	chunks []*buffer   // a reply that is encoded already, in pooled buffers
	tail   []byte      // follows names or data
	bytes  int         // total length
}

// manyChildren is the reply for a znode with many children: to getChildren, or to
// getChildren2 if stat is set.
type manyChildren struct {
	names *tree.Names
	stat  *wire.Stat
}

// Code encodes the reply. It cannot decode.
func (m *manyChildren) Code(c *wire.Coder) {
	m.names.Code(c)
	if m.stat != nil {
		m.stat.Code(c)
	}
}

// head encodes what precedes the names.
func (m *manyChildren) head(c *wire.Coder) {
	n := int32(m.names.Count)
	c.Int32(&n)
}

// longOf returns the part of a reply that need not be copied; nil if the reply is short.
func longOf(r wire.Record) *longPart {
	switch r := r.(type) {
	case *wire.DataResponse:
		if len(r.Data) > longBytes {
			return newLongPart(&longPart{data: r.Data}, &r.Stat)
		}
	case *manyChildren:
		if r.names.Bytes > longBytes {
			return newLongPart(&longPart{names: r.names}, r.stat)
		}
	}
	return nil
}

// newLongPart sets the length and, if there is a stat, the tail.
func newLongPart(l *longPart, stat *wire.Stat) *longPart {
	l.bytes = len(l.data)
	if l.names != nil {
		l.bytes = l.names.Bytes
	}
	if stat != nil {
		l.tail = wire.Append(nil, stat)
	}
	l.bytes += len(l.tail)
	return l
}

// longHead encodes what precedes the long part of a record.
func longHead(c *wire.Coder, r wire.Record) {
	switch r := r.(type) {
	case *wire.DataResponse:
		n := int32(len(r.Data))
		c.Int32(&n)
	case *manyChildren:
		r.head(c)
	}
}

// pieces calls yield with each piece of memory of a long part, in order.
func (l *longPart) pieces(yield func([]byte) bool) {
	switch {
	case l.names != nil:
		for text := range l.names.Texts {
			if !yield(text) {
				return
			}
		}
	case l.chunks != nil:
		for _, c := range l.chunks {
			if !yield(c.b) {
				return
			}
		}
	case !yield(l.data):
		return
	}
	yield(l.tail)
}

// frames is a pool of buffers in which long replies are encoded.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// longFrame encodes a complete long reply. The result is in pooled buffers, so that a
// series of such replies leaves no garbage.
func longFrame(h wire.ReplyHeader, r wire.Record) *longPart {
	room := frames.Get().(*[]byte)
	defer frames.Put(room)
	*room = wire.AppendFrame((*room)[:0], &h, r)
	l := &longPart{bytes: len(*room)}
	for piece := range slices.Chunk(*room, bufferKept) {
		c := takeLarge()
		c.b = append(c.b, piece...)
		l.chunks = append(l.chunks, c)
	}
	return l
}

// framedAlone reports whether a reply without a long part may be so long that it must be
// encoded as a frame of its own before the output is locked.
func framedAlone(r wire.Record) bool {
	switch r := r.(type) {
	case *wire.ChildrenResponse:
		return namesCost(r.Children) > longBytes
	case *wire.ChildrenStatResponse:
		return namesCost(r.Children) > longBytes
	case *wire.EphemeralsResponse:
		return namesCost(r.Paths) > longBytes
	case *wire.MultiResponse:
		return textCost(r) > longBytes
	}
	return false
}
