// Package interop tests Bellwether through clients that others wrote: kazoo,
// Apache's command line and C library, Curator, go-zookeeper and
// node-zookeeper-client. Each test body runs over Apache ZooKeeper 3.8.0 and
// over Bellwether; what holds on one must hold on the other.
//
// It is a module of its own, so that what these tests import never becomes a
// dependency of the product. The programs in other languages stand in python/,
// c/, java/ and node/; each asserts for itself, exits with 1 and says what it
// expected. They get two addresses, one direct and one through a proxy, and
// print @cut, @down or @up to have the latter cut, refused or let through; where
// the server is the program's own, @restart kills it and starts it again.
//
// Read main_test.go first, then the test of one client.
package interop
