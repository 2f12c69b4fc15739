// Package interleave explores the orders in which the goroutines of one server can act:
// its loop, its log writer, its snapshotter, and the readers and flushers of its
// connections. It contains only tests. The simulator runs a server in one goroutine, and
// the race detector finds memory that is not synchronised, but no wrong order. This
// package finds wrong orders.
//
// TestOrders builds itself once more, with internal/server and internal/tree as package
// instrument changes them, and runs that program. There, package schedule decides which
// goroutine goes on at each lock, atomic and channel of the two packages, at each call of
// the file system, and at each read and write of a connection. The connections and the
// disk are in memory. A seed decides the order and what the clients do.
//
// A run ends with the checks of rules_test.go. They use only what the clients have sent
// and received, and what the disk would have kept of a power failure whenever a client
// received a reply.
//
// Read world_test.go first, then rules_test.go. docs/testing.md says how to use the tests.
package interleave
