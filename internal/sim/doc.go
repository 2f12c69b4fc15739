// Package sim runs whole ensembles in one goroutine, under a seed: servers
// (a replica over a store on a memory disk), clients with sessions, watches
// and candidacies, and a network, clocks and disks that fail in the ways real
// ones do. The same seed and options give the same run, to the last packet.
//
// [Run] plays a seed: first with faults, then, healed, until everything is
// well again. [New] gives a [Sim] without faults of its own, for scenarios
// that say what happens.
//
// A run is a queue of things to happen, by simulated time (sim.go, queue.go).
// Each machine has its own clock (clock.go); connections are directed queues
// of packets that behave as TCP does (net.go); above them are the election's
// connections (election_net.go), the links of learners (links.go) and those
// of clients (conn.go). A server (server.go) drives its
// replica with internal/driver, as internal/server does: the order of a batch, the
// grouping of duties, what is void after a refusal of the disk, the sealing of
// sessions and what is answered without the loop are the code that ships. Some
// batches take long (busy.go). Its log writer (disk.go, snapshot.go) does one action
// after the other. Clients are in client.go; candidate.go drives
// the bids that lines.go makes, for what a fence protects (resource.go); transact.go the
// parts in transactions of two phases, guest.go the members of a double barrier,
// sharer.go and owner.go members that share parts, gatherer.go those who take
// several locks, speaker.go leaders that
// announce configurations, and who follows them, tenant.go those who keep
// registrations.
// What goes wrong is in faults.go.
//
// Checkers (observe.go, check_….go) stand outside and see every step; those of
// the history bear the names of ZooKeeper's TLA+ specification. The first rule
// that is broken ends the run with an [*Failure], which has the seed, the options
// and the story. [Shrink] leaves out of a failing run what it does not need.
//
// The package draws all its randomness from the seed and ranges over no map
// where the order shows. Read sim.go first, then server.go.
package sim
