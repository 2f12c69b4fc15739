// Package realpeers compares the simulated servers that behave like Apache ZooKeeper's with
// ZooKeeper itself. A run of the simulator with one such server is recorded. Then a
// process of Apache ZooKeeper takes its place, and the replay plays the other servers from
// the recording. What ZooKeeper sends is compared with what the simulated server has sent.
//
// The order of events comes from the recording: the replay sends a packet when ZooKeeper has
// sent everything that comes before. So the comparison does not depend on time.
//
// The simulator records a run (internal/sim, recording.go). replay_test.go goes through it,
// step_test.go carries out its steps, and await_test.go waits for what ZooKeeper must send.
// A peer (peer_test.go) has the connections of a server that is played, wires_test.go keeps
// them. votes_test.go decides which notifications must be sent. The lines that are compared come
// from text_test.go, difference_test.go lists the differences, and the known ones are in docs/testing.md (known_test.go).
//
// Goroutines: each listener of a peer has one, each connection one that reads it, a dial of
// an election connection one. The end of the test waits for all of them. A client of a step has
// one, for which the end of the step waits.
//
// Read realpeers_test.go first.
package realpeers
