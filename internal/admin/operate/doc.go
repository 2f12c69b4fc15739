// Package operate carries out what operators change through the admin port: leadership
// transfers, bids that are kicked, sessions that are closed, snapshots, and znodes that are
// created, set or deleted. [New] makes a [Changes] of a server; the API and the page call its
// methods.
//
// A change of the tree is the request of a client of package zk on a connection within the
// process, with super's rights, so that it takes the way of all other requests. The audit log
// and the log name the operator of every change, also of one that fails.
//
// The callers check that the operator may change something. The package starts no goroutine,
// except those of the client, which end with the change. Read operate.go first.
package operate
