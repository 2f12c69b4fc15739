// Package barrier holds the state machines of barriers: [Barrier] closes, opens and passes one; [Member] is one
// member of a double barrier.
package barrier
