// Package commit holds the state machines of transactions of two phases. [Site] and [Coordinator] are the
// parts in one transaction; commit.go is what they have in common. They need no lease: all they act on is a
// znode that is created once. [Serving] says in which transactions a site takes part, and when.
//
// Read site.go and coordinator.go first, then commit.go.
package commit
