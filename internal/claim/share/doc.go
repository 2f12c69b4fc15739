// Package share holds the state machines of members that share parts, or do tasks. [Share] says which member a
// part is meant for. A [Sharing] is one member: it makes no requests, but has its driver register, follow and
// bid. A [Task] is one task that a member does.
//
// Read sharing.go first.
package share
