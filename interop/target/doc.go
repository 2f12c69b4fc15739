// Package target starts the servers for the tests with other clients: Apache ZooKeeper as
// Debian packages it, and Bellwether built from this repository. Every test runs against
// each of [Kinds], so a difference between the two servers makes a test fail.
//
// Main types: [Server] is a running server with its data directory, [Ensemble] a set of
// servers that elect a leader, [Proxy] a connection to a server that can be cut, [Script] a
// client program in another language.
//
// The package does not judge a client's output, and it never installs anything: if a tool is
// missing, the test fails and names it.
//
// Goroutines: a Proxy has one for its listener and two for each connection; Close waits for
// all of them. A Server has one that waits for its process. A Script has one that reads the
// program's output while Run waits. No lock is held across I/O.
//
// Read server.go first.
package target
