// Package commit holds the state machines of two-phase commit. A [Coordinator] and several [Site]s carry
// out one transaction; commit.go holds their common part. They need no lease, because the decision is a
// znode that is created once. [Serving] chooses the transactions in which a site takes part.
//
// Read site.go and coordinator.go first, then commit.go.
package commit
