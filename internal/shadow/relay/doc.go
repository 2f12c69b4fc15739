// Package relay forwards the connections of clients to the servers of an ensemble, and compares the replies with the
// answers of an observer. It is the I/O of `bellwether shadow`; package shadow above it decides.
//
// Main types: [Relay] accepts clients; a lane compares the replies to clients with the same identity, or to one client
// that watches; a seat is a place at the observer, and an observer one session there.
//
// Goroutines: Run accepts; each client connection has one goroutine for each direction, and each lane has one. Run
// waits for all of them. The two of a connection share a shadow.Tap, guarded by the mutex of the connection.
//
// Bytes are forwarded unchanged, and forwarding never waits for a comparison: a reply goes to the queue of its lane
// after it was sent, and is counted as dropped if the queue is full. The observer's fate does not matter to the clients.
//
// With TLS, Relay ends the client's encryption and begins another one. A client is connected only with a certificate of its own
// subject.
//
// The mutex of Relay guards the lanes and the report, and no other lock is taken while it is held. Read relay.go
// first.
package relay
