package schedule

import "sync/atomic"

// The types below stand for those of sync/atomic. Each operation stops first, except Add of
// Int64 and Uint64: where the server adds to such a number, it only counts.

// number stands for an atomic integer.
type number[T int32 | int64 | uint32 | uint64] struct{ v T }

// Int32, Int64, Uint32 and Uint64 stand for the types of the same names.
type (
	Int32  struct{ number[int32] }
	Int64  struct{ number[int64] }
	Uint32 struct{ number[uint32] }
	Uint64 struct{ number[uint64] }
)

// Add adds to the value and returns the new one.
func (n *Int64) Add(d int64) int64 { return count(&n.number, d) }

// Add adds to the value and returns the new one.
func (n *Uint64) Add(d uint64) uint64 { return count(&n.number, d) }

func count[T int64 | uint64](n *number[T], d T) T {
	state.Lock()
	defer state.Unlock()
	n.v += d
	return n.v
}

// Load returns the value.
func (n *number[T]) Load() (v T) {
	stop("Load", nil, func() { v = n.v })
	return v
}

// Store sets the value.
func (n *number[T]) Store(v T) { stop("Store", nil, func() { n.v = v }) }

// Add adds to the value and returns the new one.
func (n *number[T]) Add(d T) (v T) {
	stop("Add", nil, func() { n.v += d; v = n.v })
	return v
}

// Swap sets the value and returns the old one.
func (n *number[T]) Swap(v T) (old T) {
	stop("Swap", nil, func() { old, n.v = n.v, v })
	return old
}

// CompareAndSwap sets the value if it is old.
func (n *number[T]) CompareAndSwap(old, v T) (ok bool) {
	stop("CompareAndSwap", nil, func() {
		if ok = n.v == old; ok {
			n.v = v
		}
	})
	return ok
}

// Bool stands for atomic.Bool.
type Bool struct{ v atomic.Bool }

// Load returns the value.
func (b *Bool) Load() bool { Point("Load"); return b.v.Load() }

// Store sets the value.
func (b *Bool) Store(v bool) { Point("Store"); b.v.Store(v) }

// Swap sets the value and returns the old one.
func (b *Bool) Swap(v bool) bool { Point("Swap"); return b.v.Swap(v) }

// CompareAndSwap sets the value if it is old.
func (b *Bool) CompareAndSwap(old, v bool) bool {
	Point("CompareAndSwap")
	return b.v.CompareAndSwap(old, v)
}

// Pointer needs no stand-in: the pointers of the server are replaced as a whole, and rarely.
type Pointer[T any] = atomic.Pointer[T]
