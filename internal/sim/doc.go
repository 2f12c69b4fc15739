// Package sim simulates whole ensembles with their clients, from a seed and in one
// goroutine. It simulates servers (a replica over a store on a memory disk), clients with
// sessions, watches and recipes, and a network, clocks and disks that fail as real ones do.
// The same seed and options give the same run, down to the last packet.
//
// [Run] plays a seed: first with faults, and then, after they are healed, until the
// ensemble and all clients have recovered. [New] returns a [Sim] without faults of its own,
// for scenarios that decide what happens.
//
// The package is the harness. It has three parts below it, which know nothing of it:
// internal/sim/client simulates clients and the parts that they have in recipes,
// internal/sim/check holds the checkers, and internal/sim/machine the clocks and the random
// source.
//
// A run is a queue of events, ordered by simulated time (sim.go, queue.go). Connections are
// directed queues of packets that behave as TCP does (net.go). Above them are the election
// connections (election_net.go), the links of learners (links.go) and the connections of
// clients (conn.go).
//
// A server's state is in server.go, the start and end of its process in process.go, and its
// loop in batch.go. The loop drives the replica with internal/driver, as internal/server does. So
// this part of the server is the code that ships: the order of a batch, the grouping of
// duties, which duties are void after the disk has refused one, the sealing of sessions,
// and which requests are answered without the loop. Some batches take long (busy.go). The
// log writer (disk.go, snapshot.go) carries out one action after the other. The differences
// of Apache ZooKeeper's servers are in compatible.go.
//
// The clients are in internal/sim/client. They see the simulation through an interface,
// which clientworld.go implements.
//
// The faults are in faults.go, their written form in kinds.go and act.go, and nemesis.go
// draws them. Some have files of their own: disks that hang (hang.go), decay (rot.go), lie
// (lies.go) or are replaced (newdisk.go), snapshots on their way (snapstream.go), clocks
// (clocks.go), and racks (racks.go). Moments that are rare by chance alone are brought about in critical.go
// and terms.go, and spoilt.go changes a tree in memory at the end of some runs. What seldom happens to disks is tried
// on copies of them (trials.go).
//
// [Record] plays a run that real servers can repeat, and records its packets (recording.go,
// recordingdraw.go).
//
// The checkers are in internal/sim/check. They see every step as an observation, which is a
// value (observe.go). The first rule that is broken ends the run with a [*Failure], which
// holds the seed, the options and the trace. [Shrink] removes from a failing run what the
// failure does not need.
//
// The package draws all its randomness from the seed, and never ranges over a map where the
// order could be observed. Read sim.go first, then server.go.
package sim
