// Package operate carries out what operators change through the admin port: leadership
// transfers, bids that are kicked, sessions that are closed, snapshots, and znodes that are
// created, set or deleted. [New] makes a [Changes] of a server; the API and the page call its
// methods.
//
// A change of the tree is a request of a client of package zk, on a connection within the
// process and with the rights of super. The server handles it like any other request. The audit
// log and the log name the operator of every change, including changes that fail.
//
// The callers check that the operator may change something. The package starts no goroutine,
// except those of the client, which end with the change. Read operate.go first.
package operate
