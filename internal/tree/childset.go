package tree

// childSet are the children of a znode, found by name. They begin as a short list and become
// an open-addressing table. At divideAt children they are divided by the first bits of
// the hash into childParts tables that grow independently, so that no single create waits
// for more than a few thousand entries to move.
//
// In a table, an entry is at the place that the next bits of its hash name, or after it
// with no empty place in between. So the entries of a range of hashes always form one
// stretch, however the table changes. The walk of a snapshot relies on that.
type childSet struct {
	slots   []*node               // list of count entries, or table of a power of two
	tags    []uint8               // of a table: the tag of the entry at each place; 0: the place is empty
	parts   *[childParts]childSet // once divided
	encoded encoded
	count   int32
	skip    uint8 // number of bits of the hash that the division into parts has used
}

const (
	childListMax = 8
	childBits    = 8
	childParts   = 1 << childBits
	divideAt     = 8192
)

func (k *childSet) len() int {
	if k == nil {
		return 0
	}
	return int(k.count)
}

func (k *childSet) table() bool { return len(k.slots) > childListMax }

func (k *childSet) part(hash uint32) *childSet { return &k.parts[hash>>(32-childBits)] }

// home returns the place where an entry's search begins.
func (k *childSet) home(hash uint32) int {
	return int(uint64(hash<<k.skip) * uint64(len(k.slots)) >> 32)
}

func (k *childSet) get(name string, hash uint32) *node {
	if k == nil {
		return nil
	}
	if k.parts != nil {
		k = k.part(hash)
	}
	if !k.table() {
		for _, n := range k.slots {
			if n.hash == hash && string(n.name()) == name {
				return n
			}
		}
		return nil
	}
	mask := len(k.slots) - 1
	for i := k.home(hash); k.tags[i] != 0; i = (i + 1) & mask {
		if k.tags[i] != tag(hash) {
			continue
		}
		if n := k.slots[i]; n.hash == hash && string(n.name()) == name {
			return n
		}
	}
	return nil
}

// tag returns a part of a hash, not 0, by which a search in a table passes most other entries without reading their
// znodes, which are far apart in memory.
func tag(hash uint32) uint8 { return uint8(hash) | 1 }

// add adds a child that is not there yet.
func (k *childSet) add(n *node) {
	k.encoded.clear()
	if k.parts != nil {
		k.count++
		k.part(n.hash).add(n)
		return
	}
	switch {
	case !k.table() && k.count < childListMax:
		k.slots = append(k.slots, n)
		k.count++
		return
	case !k.table():
		k.resize(4 * childListMax)
	case k.count >= divideAt && k.skip == 0:
		k.divide()
		k.add(n)
		return
	case int(k.count) >= len(k.slots)/4*3:
		k.resize(2 * len(k.slots))
	}
	k.put(n)
	k.count++
}

func (k *childSet) put(n *node) {
	mask := len(k.slots) - 1
	i := k.home(n.hash)
	for k.tags[i] != 0 {
		i = (i + 1) & mask
	}
	k.slots[i], k.tags[i] = n, tag(n.hash)
}

func (k *childSet) resize(size int) {
	old := k.slots
	k.slots, k.tags = make([]*node, size), make([]uint8, size)
	for _, n := range old {
		if n != nil {
			k.put(n)
		}
	}
}

func (k *childSet) divide() {
	old := k.slots
	k.slots, k.tags, k.parts = nil, nil, new([childParts]childSet)
	for i := range k.parts {
		k.parts[i].skip = childBits
	}
	for _, n := range old {
		if n != nil {
			k.part(n.hash).add(n)
		}
	}
}

// remove removes a child that is there.
func (k *childSet) remove(n *node) {
	k.encoded.clear()
	k.count--
	if k.parts != nil {
		k.part(n.hash).remove(n)
		return
	}
	if !k.table() {
		for i, other := range k.slots {
			if other == n {
				end := len(k.slots) - 1
				k.slots[i] = k.slots[end]
				k.slots[end] = nil
				k.slots = k.slots[:end]
				return
			}
		}
		return
	}
	k.unput(n)
	if k.count <= childListMax/2 {
		k.shrink()
	} else if len(k.slots) > 4*childListMax && int(k.count) < len(k.slots)/8 {
		k.resize(len(k.slots) / 4)
	}
}

// unput empties a child's place, and moves up those later entries that a search could not
// find otherwise.
func (k *childSet) unput(n *node) {
	mask := len(k.slots) - 1
	i := k.home(n.hash)
	for k.slots[i] != n {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; k.slots[j] != nil; j = (j + 1) & mask {
		if home := k.home(k.slots[j].hash); (j-home)&mask >= (j-i)&mask {
			k.slots[i], k.tags[i] = k.slots[j], k.tags[j]
			i = j
		}
	}
	k.slots[i], k.tags[i] = nil, 0
}

// shrink turns a small table into a list.
func (k *childSet) shrink() {
	old := k.slots
	k.slots, k.tags = make([]*node, 0, childListMax), nil
	for _, n := range old {
		if n != nil {
			k.slots = append(k.slots, n)
		}
	}
}

// each calls yield for every child, in no particular order.
func (k *childSet) each(yield func(*node)) {
	if k == nil {
		return
	}
	for _, n := range k.slots {
		if n != nil {
			yield(n)
		}
	}
	if k.parts != nil {
		for i := range k.parts {
			k.parts[i].each(yield)
		}
	}
}

// hashEnd is the end of the range of hashes.
const hashEnd = uint64(1) << 32

// scan appends the children whose hash is in [from, next) and returns them with next; it
// looks at about limit places. A walk calls scan again with each returned next until that
// is hashEnd. It sees every child that is in the set during the whole walk, and none
// twice.
func (k *childSet) scan(dst []*node, from uint64, limit int) ([]*node, uint64) {
	if k == nil {
		return dst, hashEnd
	}
	if k.parts == nil {
		return k.scanPart(dst, from, hashEnd, limit)
	}
	p := from >> (32 - childBits)
	return k.parts[p].scanPart(dst, from, (p+1)<<(32-childBits), limit)
}

// scanPart is like scan, but for one part.
func (k *childSet) scanPart(dst []*node, from, end uint64, limit int) ([]*node, uint64) {
	if !k.table() {
		for _, n := range k.slots {
			if h := uint64(n.hash); h >= from && h < end {
				dst = append(dst, n)
			}
		}
		return dst, end
	}
	mask := len(k.slots) - 1
	first := k.home(uint32(from))
	next, stop := end, len(k.slots)
	if first+limit < stop {
		stop = first + limit
		next = from>>(32-k.skip)<<(32-k.skip) | (uint64(stop)<<32/uint64(len(k.slots)))>>k.skip
	}
	for i := first; i < first+len(k.slots); i++ {
		n := k.slots[i&mask]
		if n == nil {
			if i >= stop {
				break
			}
			continue
		}
		if h := uint64(n.hash); h >= from && h < next {
			dst = append(dst, n)
		}
	}
	return dst, next
}
