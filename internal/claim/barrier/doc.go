// Package barrier holds the state machines of barriers. [Barrier] closes, opens or passes a barrier.
// [Member] is one member of a double barrier.
package barrier
