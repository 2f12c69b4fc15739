// Package survey recognises recipes in znodes that were read from a tree: elections, locks, semaphores,
// queues, barriers, groups, services and transactions. It reports which clients hold and which wait. It
// recognises the znodes of this project's recipes, and of those of Curator, kazoo, go-zookeeper and
// Apache.
//
// A caller walks the tree. For each znode it reads the children that [Parent.Reads] names, and calls
// [Recognise]. At the end it calls [Assemble] once with everything that was recognised. [Deadlocks] finds
// sessions that wait for each other.
//
// The package is pure: it reads nothing by itself. Read survey.go first. bids.go covers elections and
// locks. members.go covers groups, barriers and transactions.
package survey
