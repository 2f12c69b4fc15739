package rate

import "container/list"

// Table maps keys to values, and keeps a bounded number of them: a new key replaces the
// one that was used longest ago. Invariant: byKey and order hold the same entries, at most
// max.
type Table[K comparable, V any] struct {
	max   int
	byKey map[K]*list.Element // their values are *entry[K, V]
	order list.List           // last used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// NewTable returns an empty table for at most max keys.
func NewTable[K comparable, V any](max int) *Table[K, V] {
	return &Table[K, V]{max: max, byKey: map[K]*list.Element{}}
}

// Len returns the number of keys.
func (t *Table[K, V]) Len() int { return len(t.byKey) }

// Find returns the value of a key; nil: there is none. It does not count as a use.
func (t *Table[K, V]) Find(k K) *V {
	if e := t.byKey[k]; e != nil {
		return &e.Value.(*entry[K, V]).value
	}
	return nil
}

// Use returns the value of a key, the zero value if the key is new. The pointer is valid
// until the next Use.
func (t *Table[K, V]) Use(k K) *V {
	e := t.byKey[k]
	switch {
	case e != nil:
		t.order.MoveToFront(e)
	case len(t.byKey) < t.max:
		e = t.order.PushFront(&entry[K, V]{key: k})
		t.byKey[k] = e
	default:
		e = t.order.Back()
		oldest := e.Value.(*entry[K, V])
		delete(t.byKey, oldest.key)
		*oldest = entry[K, V]{key: k}
		t.byKey[k] = e
		t.order.MoveToFront(e)
	}
	return &e.Value.(*entry[K, V]).value
}
