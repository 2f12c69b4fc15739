// Package survey recognises recipes in znodes that were read from a tree: which elections, locks,
// semaphores, queues, barriers, groups, services and transactions there are, who holds and who waits.
// It knows the znodes of this project's recipes, and of those of Curator, kazoo, go-zookeeper and Apache.
//
// A caller walks over the tree. For each znode it reads the children that [Parent.Reads] names and calls
// [Recognise]; then it calls [Assemble] once with all that was recognised. [Deadlocks] finds sessions
// that wait for each other.
//
// The package is pure: it reads nothing by itself. Read survey.go first; bids.go is about elections and
// locks, members.go about groups, barriers and transactions.
package survey
