package server

import (
	"slices"
	"sync"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// longBytes is what makes a reply too long to be copied for each client, and to be
// encoded under the output's lock, for which an event waits with the tree's lock
// held.
const longBytes = 16 << 10

// long is the part of a long reply that is written from where it lies, behind
// what is encoded of it in a buffer. The memory of names and data is shared:
// by readers, and by the tree.
type long struct {
	names  *tree.Names // of a listing; nil: none
	data   []byte      // instead of names
	chunks []*buffer   // instead of either: a reply that is encoded already, in memory of its own
	tail   []byte      // behind names or data
	bytes  int         // in all
}

// manyChildren answers getChildren, and getChildren2 if there is a stat, for a
// znode with many children.
type manyChildren struct {
	names *tree.Names
	stat  *wire.Stat
}

// Code encodes the reply; it cannot be decoded.
func (m *manyChildren) Code(c *wire.Coder) {
	m.names.Code(c)
	if m.stat != nil {
		m.stat.Code(c)
	}
}

// head encodes what stands before the names.
func (m *manyChildren) head(c *wire.Coder) {
	n := int32(m.names.Count)
	c.Int32(&n)
}

// longOf returns what need not be copied of a reply, nil if nothing of it is long.
func longOf(r wire.Record) *long {
	switch r := r.(type) {
	case *wire.DataResponse:
		if len(r.Data) > longBytes {
			return newLong(&long{data: r.Data}, &r.Stat)
		}
	case *manyChildren:
		if r.names.Bytes > longBytes {
			return newLong(&long{names: r.names}, r.stat)
		}
	}
	return nil
}

// newLong adds a stat, if there is one, and the length.
func newLong(l *long, stat *wire.Stat) *long {
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

// longHead encodes what stands before the long part of a record.
func longHead(c *wire.Coder, r wire.Record) {
	switch r := r.(type) {
	case *wire.DataResponse:
		n := int32(len(r.Data))
		c.Int32(&n)
	case *manyChildren:
		r.head(c)
	}
}

// pieces calls yield for the memory of a long part, in order.
func (l *long) pieces(yield func([]byte) bool) {
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

// frames are buffers in which long replies are encoded, one after the other.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// longFrame encodes a whole reply that is long. It lies in pooled buffers, so that
// many of them, one after the other, leave no garbage.
func longFrame(h wire.ReplyHeader, r wire.Record) *long {
	room := frames.Get().(*[]byte)
	defer frames.Put(room)
	*room = wire.AppendFrame((*room)[:0], &h, r)
	l := &long{bytes: len(*room)}
	for piece := range slices.Chunk(*room, bufferKept) {
		c := takeLarge()
		c.b = append(c.b, piece...)
		l.chunks = append(l.chunks, c)
	}
	return l
}

// framedAlone reports whether a reply without a long part may be so long that it
// is encoded as a frame of its own, before the output is locked.
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
