// Package sim simulates whole ensembles with their clients in one goroutine, from a
// seed: servers (a replica over a store on a memory disk), clients with sessions,
// watches and recipes, and a network, clocks and disks that fail as real ones do. The
// same seed and options give the same run, to the last packet.
//
// [Run] plays a seed: first with faults, then, after they are healed, until everything
// is well again. [New] gives a [Sim] without faults of its own, for scenarios that say
// what happens.
//
// A run is a queue of what is to happen, by simulated time (sim.go, queue.go). Each
// machine has its own clock (clock.go). Connections are directed queues of packets that
// behave as TCP does (net.go); above them are the connections of the election
// (election_net.go), the links of learners (links.go) and the connections of clients
// (conn.go).
//
// A server (server.go) drives its replica with internal/driver, as internal/server does:
// the order of a batch, the grouping of duties, what is void after a refusal of the
// disk, the sealing of sessions, and which requests are answered without the loop are
// the code that ships. Some batches take long (busy.go). The log writer (disk.go,
// snapshot.go) does one action after the other. What Apache ZooKeeper's servers do
// differently is in compatible.go.
//
// Clients are in client.go. A client with a part in a recipe drives a state machine of
// internal/claim through a runner (runner.go):
//
//   - candidate.go, lines.go: elections, locks and semaphores; what a fence protects is
//     in resource.go
//   - multilock.go: several locks at once
//   - transact.go: two-phase commit
//   - worker.go: queues, counters, ids, barriers
//   - barriermember.go: double barriers
//   - sharer.go, owner.go: parts that members share
//   - announcer.go: configurations that leaders announce, and who follows them
//   - registrant.go: registrations
//   - cacheclient.go: caches
//
// What goes wrong is in faults.go.
//
// The checkers see every step. Those of the servers and their history are in
// internal/sim/check, and see values (delivered.go makes most of them); those of clients
// and recipes are here (observe.go, check_….go). The first rule that is broken ends the run
// with a [*Failure], which has the seed, the options and the trace. [Shrink] leaves out
// of a failing run what it does not need.
//
// The package draws all its randomness from the seed, and ranges over no map where the
// order shows. Read sim.go first, then server.go.
package sim
