package tree

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"weak"

	"bellwether/wire"
)

// Listing is the answer to getChildren and getChildren2. A few children are in Children,
// many are in Many; the other field is nil.
type Listing struct {
	Children []string
	Many     *Names
	Stat     wire.Stat
}

// All returns all names.
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

// manyChildren is the smallest number of children whose names are encoded once for all
// readers.
const manyChildren = 64

// Names are the names of many children as they are encoded in a reply, after the count.
// All readers of an unchanged znode share one Names, which never changes. It stays in
// memory as long as somebody uses it, and then until the next garbage collection.
type Names struct {
	Count int
	Bytes int
	text  []byte   // nil if there are parts
	parts []*Names // a part has no parts of its own
	holds atomic.Int32
}

// Texts calls yield for each piece of the encoded names, in order.
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

// Hold adds a user. It returns the number of bytes that had no user before. A part that
// several Names share counts once.
func (n *Names) Hold() (bytes int) { return n.count(1, 1) }

// Release removes a user. It returns the number of bytes that have no user any more.
func (n *Names) Release() (bytes int) { return n.count(-1, 0) }

// partCost is what one part costs the Names that contains it.
const partCost = 8

// count adds by to the number of users. It returns the bytes of the parts whose number
// of users becomes 1 (edge 1, adding) or 0 (edge 0, removing).
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

// encoded holds the encoded names of children. A reader that finds none encodes them and
// stores the result; a change of the children removes it.
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

// encode returns the encoded names of all children. It encodes only parts that have
// changed since they were last encoded.
func (k *childSet) encode() *Names {
	if n := k.encoded.get(); n != nil {
		return n
	}
	n := &Names{}
	if k.parts == nil {
		n.text = k.appendNames()
		n.Count, n.Bytes = k.len(), len(n.text)
	} else {
		n.parts = make([]*Names, 0, childParts)
		for i := range k.parts {
			p := k.parts[i].encode()
			n.parts = append(n.parts, p)
			n.Count, n.Bytes = n.Count+p.Count, n.Bytes+p.Bytes
		}
	}
	k.encoded.set(n)
	return n
}

// appendNames encodes names that are not divided into parts. It reads each child only
// once, because the children may be far apart in memory, and estimates the total length
// from the first child.
func (k *childSet) appendNames() (text []byte) {
	k.each(func(kid *node) {
		if text == nil {
			text = make([]byte, 0, (4+kid.nameLen())*k.len())
		}
		text = binary.BigEndian.AppendUint32(text, uint32(kid.nameLen()))
		text = append(text, kid.name()...)
	})
	return text
}

// EncodeNames encodes the names of a znode's children in steps, so that writers can go on
// between them. After that Children finds most of them encoded. The caller must keep the
// result until it has called Children.
func (t *Tree) EncodeNames(path string) (ready []*Names) {
	for i := 0; i < childParts; i++ {
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
	case at == nil || at.children.len() < manyChildren:
		return nil, false
	case at.children.parts == nil:
		return at.children.encode(), false
	}
	return at.children.parts[i].encode(), true
}
