// Package queues holds the state machines of queues. [Put] adds an item, [Take] waits for an item and
// takes it, and [Acknowledgement] ends the claim of an item. Items that are not due yet are kept below a
// separate znode; see delayed.go.
//
// Read take.go first.
package queues
