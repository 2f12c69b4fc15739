// Package blackbox tests ensembles from outside: real server processes, each on its own host,
// and clients on other hosts. The hosts are network namespaces inside a user namespace, so root
// is not needed: the test binary starts itself again under unshare. The tests cut links by taking
// them down or by one-way blackhole routes, slow them with tbf, and delay them with a relay. A
// small tmpfs serves as a disk that becomes full. If hosts cannot be created, every test fails and
// says why. A disk that hangs is an ext4 image that fsfreeze freezes, which only root can do
// (frozen_test.go).
//
// In each scene, writers and readers use different servers while something fails. Afterwards the
// network is restored, and these conditions must hold: one server leads, all servers have the
// same tree, every acknowledged write is in it, the history of the registers is linearizable
// (porcupine), no session went backwards, and two candidates never held a claim at the same time.
//
// Read scene_test.go first, then a scene such as kill_test.go. network_test.go creates the hosts.
//
// Goroutines: a load has one for each client, a claims one for each candidate, a relay one for
// its listener and four for each connection; stop waits for all of them. load.mu and claims.mu
// guard their records.
package blackbox
