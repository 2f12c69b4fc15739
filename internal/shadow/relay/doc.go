// Package relay forwards the connections of clients to the servers of an ensemble, and compares the replies with the
// answers of an observer. It is the I/O of `bellwether shadow`; package shadow above it decides.
//
// Main types: [Relay] accepts clients; a lane compares the replies to clients with the same identity; an observer is
// one session at the observer.
//
// Goroutines: Run accepts; each client connection has one goroutine for each direction, and each lane has one. Run
// waits for all of them. The two of a connection share a shadow.Tap, guarded by the mutex of the connection.
//
// Bytes are forwarded unchanged, and forwarding never waits for a comparison: a reply goes to the queue of its lane
// after it was sent, and is counted as dropped if the queue is full. The observer's fate does not matter to the clients.
//
// The mutex of Relay guards the lanes and the report, and no other lock is taken while it is held. Read relay.go
// first.
package relay
