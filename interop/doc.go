// Package interop tests Bellwether with clients that others wrote: kazoo, ZooKeeper's
// command line and C library, Curator, go-zookeeper and node-zookeeper-client. Each test
// runs against Apache ZooKeeper 3.8.0 and against Bellwether; what holds for one server
// must hold for the other.
//
// It is a separate module, so that what these tests import never becomes a dependency of
// the product. The programs in other languages are in python/, c/, java/ and node/. Each
// checks its own expectations, exits with 1 and prints what it expected. A program gets two
// addresses, a direct one and one through a proxy. It prints @cut, @down or @up to have the
// proxy's connections cut, refused or let through. If the server belongs to the program
// alone, @restart kills it and starts it again.
//
// Read main_test.go first, then the test of one client.
package interop
