// Package driver is the part of driving a replica that needs no socket, file,
// clock, lock or goroutine. The server and the simulator both use it, so that the
// simulator tests the code that ships.
//
//   - [Batch] says in which order the loop carries out one batch of events: step
//     them, report time, log, send, apply, send what waited for that, connect.
//   - [Journal] queues the duties for the log writer, groups them so that many
//     share one fsync, and drops those that are void after a refusal of the disk.
//   - [Heard] seals the sessions that may be about to expire; [Access] and [Lease]
//     say which requests may be answered without the loop.
//   - [StallBound] says how long a call of the disk may take before it counts as a
//     stall.
//
// The types are values that are told what has happened and say what to do next.
// They do nothing themselves: the server does it with sockets and files, the
// simulator with simulated ones. None of them locks; each method says which
// goroutine calls it.
//
// The package decides nothing about votes, epochs, transactions or sessions; the
// replica does. Read batch.go first, then journal.go.
package driver
