// Package target starts the servers that the foreign clients are tested
// against: Apache ZooKeeper as Debian packages it, and Bellwether built from
// this repository. Every test runs its body over each of [Kinds], so a
// difference between the two servers is a failing test.
//
// Main types: [Server] is one running server with its data directory,
// [Ensemble] several that elect a leader, [Proxy] a way to one that can be cut, [Script] a client program in another language.
//
// The package does not judge what a client prints, and it never installs
// anything: a missing tool fails the test by name.
//
// Goroutines: a Proxy runs one for its listener and two for each connection;
// Close waits for all of them. A Server has one that waits for its process. A
// Script has one that reads the program's output while Run waits. No lock is
// held across I/O.
//
// Read server.go first.
package target
