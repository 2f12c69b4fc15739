// Package client simulates clients of an ensemble: sessions, requests, watches, and the
// parts that clients have in recipes.
//
// A [Client] sees the simulation through [World] only: the time, a random source,
// connections to servers, the trace, and the checkers, to which it shows observations. The
// harness (internal/sim) implements World and decides when clients fail. [Group] is the
// clients of a run with what they share, and tells the checkers who holds what now.
//
// A client without a part in a recipe reads and writes (client.go, requests.go, watch.go,
// stream.go; process.go ends and stops clients). A client with a part drives a state machine
// of internal/claim through a [Runner] (runner.go):
//
//   - candidate.go, bid.go: elections, locks and semaphores; resource.go: the resource that
//     a fencing token protects
//   - multilock.go: several locks at once
//   - transact.go, serving.go: two-phase commit
//   - worker.go: queues, counters, ids, barriers
//   - barriermember.go: double barriers
//   - sharer.go, owner.go: parts that members share
//   - announcer.go: configurations that leaders announce, and their followers
//   - registrant.go: registrations
//   - cacheclient.go: caches
//
// At the end of a run, the harness asks the group what is still missing until each recipe has
// recovered. The methods that answer this return an empty text if nothing is missing.
//
// The package checks no rule: internal/sim/check does. It draws all its randomness from the
// seed, and never ranges over a map where the order could be observed. Read world.go first,
// then client.go.
package client
