// Package realpeers compares the simulated servers that behave like Apache ZooKeeper's with
// ZooKeeper itself. A run of the simulator with one such server is recorded. Then real
// processes repeat it: the server in question is Apache ZooKeeper, the others are
// Bellwether. The packets of both runs are compared, phase by phase.
//
// The simulator records a run as steps (internal/sim, recording.go). The steps are repeated
// by replay_test.go, over connections that the proxies of network_test.go cut and read
// (stream_test.go). compare_test.go lists the differences. What may differ by chance is
// removed in text_test.go; known_test.go explains the differences that remain.
//
// Goroutines: a proxy has one that accepts connections, and up to four for each connection:
// two that read and two that write. The end of the test waits for all of them.
//
// Read realpeers_test.go first.
package realpeers
