// Package queues holds the state machines of queues: [Put] adds an item, [Take] waits for one and takes it, and an
// [Acknowledgement] ends the claim of an item. Items that are not due yet stand apart from the others: later.go.
//
// Read take.go first.
package queues
