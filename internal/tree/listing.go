package tree

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"weak"

	"bellwether/wire"
)

// Listing is the answer to getChildren and getChildren2. Few children are in
// Children, many in Many; the other field is nil.
type Listing struct {
	Children []string
	Many     *Names
	Stat     wire.Stat
}

// All returns the names, whether they are many or few.
func (l *Listing) All() []string {
	if l.Many == nil {
		return l.Children
	}
	all := make([]string, 0, l.Many.Count)
	for text := range l.Many.Texts {
		for len(text) > 0 {
			end := 4 + int(binary.BigEndian.Uint32(text))
			all, text = append(all, string(text[4:end])), text[end:]
		}
	}
	return all
}

// manyChildren is how many children a znode has at least whose names are
// encoded once for all readers.
const manyChildren = 64

// Names are the names of many children as they stand on the wire behind the
// count. All readers of an unchanged znode share one; it never changes. It
// stays in memory for as long as somebody uses it, and then until the next
// garbage collection.
type Names struct {
	Count int
	Bytes int
	text  []byte   // nil where there are parts
	parts []*Names // none of them has parts itself
	holds atomic.Int32
}

// Texts calls yield for each piece of the encoded names, in their order.
func (n *Names) Texts(yield func([]byte) bool) {
	if len(n.parts) == 0 {
		yield(n.text)
		return
	}
	for _, p := range n.parts {
		if !yield(p.text) {
			return
		}
	}
}

// Code encodes the names with their count; it cannot decode.
func (n *Names) Code(c *wire.Coder) {
	count := int32(n.Count)
	c.Int32(&count)
	b := slices.Grow(c.Bytes(), n.Bytes)
	for text := range n.Texts {
		b = append(b, text...)
	}
	*c = wire.Encoder(b)
}

// Hold notes one more user, and returns how many bytes nobody used before.
// Parts that are shared with other Names count once.
func (n *Names) Hold() (bytes int) { return n.count(1, 1) }

// Release undoes one Hold, and returns how many bytes nobody uses any more.
func (n *Names) Release() (bytes int) { return n.count(-1, 0) }

// partCost is what one part costs the Names that it belongs to.
const partCost = 8

// count changes the number of users; edge is the number at which bytes count.
func (n *Names) count(by, edge int32) (bytes int) {
	if n.holds.Add(by) != edge {
		return 0
	}
	if len(n.parts) == 0 {
		return cap(n.text)
	}
	bytes = partCost * len(n.parts)
	for _, p := range n.parts {
		bytes += p.count(by, edge)
	}
	return bytes
}

// encoded is where children keep their encoded names. Readers that find
// nothing encode them and leave the result; a change of the children clears it.
type encoded struct {
	names atomic.Pointer[weak.Pointer[Names]]
}

func (e *encoded) get() *Names {
	if w := e.names.Load(); w != nil {
		return w.Value()
	}
	return nil
}

func (e *encoded) set(n *Names) {
	w := weak.Make(n)
	e.names.Store(&w)
}

func (e *encoded) clear() {
	if e.names.Load() != nil {
		e.names.Store(nil)
	}
}

// encode returns the encoded names of all children. Only parts that have changed
// since they were last encoded are encoded again.
func (k *kids) encode() *Names {
	if n := k.encoded.get(); n != nil {
		return n
	}
	n := &Names{}
	if k.parts == nil {
		n.text = k.appendNames()
		n.Count, n.Bytes = k.len(), len(n.text)
	} else {
		n.parts = make([]*Names, 0, kidParts)
		for i := range k.parts {
			p := k.parts[i].encode()
			n.parts = append(n.parts, p)
			n.Count, n.Bytes = n.Count+p.Count, n.Bytes+p.Bytes
		}
	}
	k.encoded.set(n)
	return n
}

// appendNames encodes names that are not divided into parts. Each child is looked
// at once, as many of them are far apart; the first one's length is the guess for
// all.
func (k *kids) appendNames() (text []byte) {
	k.each(func(kid *node) {
		if text == nil {
			text = make([]byte, 0, (4+kid.nameLen())*k.len())
		}
		text = binary.BigEndian.AppendUint32(text, uint32(kid.nameLen()))
		text = append(text, kid.name()...)
	})
	return text
}

// EncodeNames encodes the names of a znode's children in steps between which
// writers may go on, so that Children finds most of them ready. What it returns
// has to be kept until then.
func (t *Tree) EncodeNames(path string) (ready []*Names) {
	for i := 0; i < kidParts; i++ {
		n, more := t.encodePart(path, i)
		ready = append(ready, n)
		if !more {
			break
		}
	}
	return ready
}

// encodePart encodes part i, or all of a znode that is not divided.
func (t *Tree) encodePart(path string, i int) (n *Names, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	at := t.find(path)
	switch {
	case at == nil || at.kids.len() < manyChildren:
		return nil, false
	case at.kids.parts == nil:
		return at.kids.encode(), false
	}
	return at.kids.parts[i].encode(), true
}
