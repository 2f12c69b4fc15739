// Package blackbox tests ensembles from outside: real server processes, each
// on a host of its own, and clients on other hosts. The hosts are network
// namespaces, made inside a user namespace, so that no root is needed: the test
// binary starts itself again under unshare. Links between them are cut by
// taking them down or by one-way blackhole routes, slowed by tbf, and delayed
// by a relay; a small tmpfs is a disk that gets full. A machine on which hosts
// cannot be made fails every test by name. A disk that hangs is an ext4 image that
// fsfreeze freezes, which root of the machine has to do (frozen_test.go).
//
// In each scene writers and readers work through different servers while
// something breaks. Afterwards the network is healed, one server leads, all
// servers hold the same tree, every acknowledged write is in it, the history of
// the registers is linearizable (porcupine), no session went backwards, and of
// two candidates never both had a claim.
//
// Read scene_test.go first, then a scene such as kill_test.go; network_test.go
// is how hosts are made.
//
// Goroutines: a load runs one for each client, a claims one for each candidate,
// a relay one for its listener and four for each connection; stop waits for all
// of them. load.mu and claims.mu guard what they record.
package blackbox
