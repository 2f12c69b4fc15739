// Package barrier holds the state machines of barriers. [Barrier] sets, removes or waits for a barrier.
// [Member] is one member of a double barrier.
package barrier
