package schedule

import "reflect"

// anyCase says that the runtime chooses the case of a select.
const anyCase = -1

// Select stops the goroutine before a select that receives from these channels. If any are
// known to be ready, the seed chooses one of those, to which Only then restricts the select.
// Without that, the runtime would choose at random. It is not known of a timer, nor of a
// channel without a buffer that is not closed, whether it is ready; the select takes them
// when no other one is.
func Select(channels ...any) {
	Point("channel")
	state.Lock()
	defer state.Unlock()
	if current == nil {
		return
	}
	var ready []int
	for i, ch := range channels {
		v := reflect.ValueOf(ch)
		if _, closed := current.closed[v.Pointer()]; closed || v.Len() > 0 {
			ready = append(ready, i)
		}
	}
	g := current.self()
	g.only = anyCase
	if len(ready) > 0 {
		g.only = ready[current.rng.IntN(len(ready))]
	}
}

// Only returns the i-th channel of the last Select of this goroutine, or nil if another one
// was chosen.
func Only[C any](i int, ch C) C {
	state.Lock()
	defer state.Unlock()
	var none C
	if current != nil {
		if g := current.self(); g.only != anyCase && g.only != i {
			return none
		}
	}
	return ch
}

// Close closes a channel.
func Close[T any](ch chan<- T) {
	Point("channel")
	state.Lock()
	if current != nil {
		current.closed[reflect.ValueOf(ch).Pointer()] = ch // kept, so that no other channel gets its address
	}
	state.Unlock()
	close(ch)
}
